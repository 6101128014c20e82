//! Links in pages.

/// A link to a page of this server.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) path: String,
    pub(crate) text: String,
}
