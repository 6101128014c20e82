//! Enums with variants that have a name in the interface, the database and the documentation.

/// Declares an enum with its names and the list of its variants, which therefore cannot disagree.
/// The names are used in JSON and in the `OpenAPI` document.
///
/// The names are taken as `tt`: a `literal` reaches the derive of the schema in a group that it cannot read,
/// and the description would have the variants' names.
macro_rules! named {
    (
        $(#[$meta:meta])*
        $type:ident { $($(#[$doc:meta])* $variant:ident = $name:tt),* $(,)? }
    ) => {
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
            utoipa::ToSchema,
        )]
        $(#[$meta])*
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl $type {
            /// Every variant, in order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the interface and in the database.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The variant of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use named;
