//! Progress and result of a steady load.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// The result of a steady load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteadyOutcome {
    /// Requests answered with 200 and a whole body.
    pub answered: u64,
    /// Connections refused, which ends their client, or closed before a byte of their first
    /// response: expected for a client that connects while a server stops listening.
    pub refused: u32,
    /// Requests with any other result. A connection closed between two requests is not a failure
    /// [RFC 9112 §9.3.1].
    pub failed: u64,
    /// Description of the first failure.
    pub failure: Option<String>,
}

/// State shared by the thread of the load and its owner.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) answered: AtomicU64,
    pub(crate) stop: AtomicBool,
}
