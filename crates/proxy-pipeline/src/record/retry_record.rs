//! Retries in a request's record.

use proxy_model::RetryCause;

/// The retries of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetryRecord {
    /// Attempts after the first.
    pub(crate) count: u32,
    /// Cause of the last one.
    pub(crate) cause: Option<RetryCause>,
    /// The upstream's retry budget refused a further attempt.
    pub(crate) is_refused: bool,
}
