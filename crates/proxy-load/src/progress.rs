//! What a steady load tells while it runs, and what it comes to.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// What the clients saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteadyOutcome {
    /// Requests answered with 200 and a whole body.
    pub answered: u64,
    /// Connections refused, which ends their client, or closed before a byte came in answer to their first
    /// request: what a client sees that connects while a server stops listening.
    pub refused: u32,
    /// Requests that came to any other end. A connection closed between two requests is none
    /// [RFC 9112 §9.3.1].
    pub failed: u64,
    /// The first failure, in words.
    pub failure: Option<String>,
}

/// What the thread of the load and its owner share.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) answered: AtomicU64,
    pub(crate) stop: AtomicBool,
}
