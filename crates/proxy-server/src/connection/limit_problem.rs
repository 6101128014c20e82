//! The problem response for a connection above a limit.

use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::LimitReached;

/// The problem for a client with a connection above the limit `full`.
pub(crate) fn limit_problem(reason: Reason, full: LimitReached) -> Problem {
    let (current, limit) = (u64::from(full.wanted()), u64::from(full.max));
    Problem::new(reason, Detail::Limit { current, limit })
}
