//! The reason why a body ended early.

use crate::record::completion::CompletionGuard;
use proxy_errors::Problem;
use proxy_pool::SendError;

#[derive(Debug)]
pub(crate) enum Interruption {
    Upstream(SendError),
    Own(Problem),
}

impl Interruption {
    /// The problem of a response that is not sent yet.
    pub(crate) fn into_problem(self, completion: &CompletionGuard) -> Problem {
        match self {
            Self::Upstream(fault) => completion.interrupted(&fault),
            Self::Own(problem) => problem,
        }
    }
}
