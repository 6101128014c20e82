//! The explanation of a decision.

mod applied;
mod explanation;
mod named;
mod outcome;
mod question;
mod rejected;
mod winner;

pub use explanation::{Explanation, Text};
pub use named::Named;
pub use outcome::{Candidate, Handler, Nearest, Readiness};
pub use question::{ExplainError, ExplainRequest};
pub use rejected::{Lost, Rejected};
pub use winner::{Condition, MatchReason, Winner};
