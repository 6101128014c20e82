//! State of the server.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// State of the server, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) is_up: AtomicBool,
    /// Requests that the server did not answer in time.
    pub(crate) unanswered: AtomicU64,
}
