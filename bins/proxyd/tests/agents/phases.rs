//! Every outcome of asking an agent, at every phase of a request.

mod completion;
mod decisions;
mod failures;
mod limits;
mod others;
