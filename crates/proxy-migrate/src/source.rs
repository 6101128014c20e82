//! A file of another server.

/// A file with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name, for places.
    pub name: String,
    /// The whole text.
    pub text: String,
}
