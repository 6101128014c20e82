//! A configuration file of another server.

/// A file with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name, used in places.
    pub name: String,
    /// Complete text.
    pub text: String,
}

/// Returns the files for the pattern of an `include` or `import`, as written; `None` if they are
/// missing, which leaves out directives. A pattern with a wildcard may match no file.
pub(crate) type Included<'i> = &'i dyn Fn(&str) -> Option<Vec<Source>>;
