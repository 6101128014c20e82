//! What a request's record tells of its retries.

use proxy_model::RetryCause;

/// The retries of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetryRecord {
    /// Attempts after the first.
    pub(crate) count: u32,
    /// What the last of them came after.
    pub(crate) cause: Option<RetryCause>,
    /// The upstream's budget refused a further one.
    pub(crate) is_refused: bool,
}
