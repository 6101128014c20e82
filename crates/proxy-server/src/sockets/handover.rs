//! Handover of listening sockets to a new process of a new program: SIGUSR2.
//!
//! The old process starts the new one with one end of a socket pair as standard input, and sends
//! its listening sockets through it. The new process reports when it is ready; the old one
//! confirms, stops accepting, and exits when its last connection ends; then the new one starts
//! accepting. The sockets are listening at every moment. Until the new process is ready, the old
//! one serves unchanged and may kill the new one, which has no client yet.

mod health_snapshot;
mod label;
mod pass;
mod predecessor;
mod program;
mod protocol;
mod successor;

pub(crate) use health_snapshot::HealthSnapshot;
pub(crate) use label::{Label, Purpose};
pub(crate) use pass::Passed;
pub(crate) use predecessor::Predecessor;
pub use program::Program;
pub(crate) use successor::{Candidate, Successor, UpgradeError, begin};
