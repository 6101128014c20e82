//! All outcomes of agent calls, at each phase of a request.

mod completion;
mod decisions;
mod failures;
mod limits;
mod others;
