//! Results of look-ups and purges.

use crate::stored_response::StoredResponse;
use std::sync::Arc;

/// The stored responses under a key.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The response selected by the request.
    pub response: Option<Arc<StoredResponse>>,
    /// True if responses for other values of request fields are stored.
    pub has_other_variants: bool,
}

/// Scope of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// Responses of this URL.
    Url(String),
    /// Responses of all URLs that begin with this prefix.
    Prefix(String),
    /// Responses with this tag in `Cache-Tag` or `Surrogate-Key`.
    Tag(String),
    /// All responses.
    All,
}

/// The effect of a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Responses removed.
    pub objects: u64,
    /// Bytes of memory released.
    pub bytes: u64,
}
