//! A file of another server.

/// A file with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name, for places.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// Gives the files of an `include` or `import` for its pattern as written: `None` if they are not there, so that
/// directives are missing. A pattern with a wildcard may fit no file.
pub(crate) type Included<'i> = &'i dyn Fn(&str) -> Option<Vec<Source>>;
