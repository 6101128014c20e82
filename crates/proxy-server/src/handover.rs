//! Passing listening sockets to a new process of a new program: SIGUSR2.
//!
//! The old process starts the new one with an end of a socket pair as its standard input, and sends it
//! its listening sockets there. The new one says when nothing stands in its way any more; the old one
//! answers, takes no more connections, and ends when its last one does; then the new one takes them. At
//! every moment somebody listens. Until the new one has said so, the old one serves on as if nothing
//! were, and it may end the new one: that has no client yet.

mod label;
mod pass;
mod predecessor;
mod program;
mod successor;

pub(crate) use label::{Label, Purpose};
pub(crate) use pass::Passed;
pub(crate) use predecessor::Predecessor;
pub use program::Program;
pub(crate) use successor::{Candidate, Successor, UpgradeError, begin};

/// What tells a process that its standard input is where sockets come from: the number of the process
/// that sends them.
const PREDECESSOR_VARIABLE: &str = "PROXYD_UPGRADE_FROM";

/// What the new process says when it could take connections, and the old one when it has heard.
const READY_BYTE: u8 = b'!';
