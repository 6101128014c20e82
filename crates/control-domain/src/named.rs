//! Enums with a stable name of each variant in the interface, the database and the documentation.

/// Declares an enum together with its names and the list of its variants, so that they cannot
/// disagree. JSON and the `OpenAPI` document use the names.
///
/// The names are matched as `tt`: a `literal` would reach the schema's derive in an invisible group
/// that it cannot read, and the schema would contain the variants' Rust names.
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
