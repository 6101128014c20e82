//! The time of QUIC: instants derived from the clock of the worker.

use proxy_pipeline::Worker;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Instants of one worker.
pub(super) struct QuicClock {
    worker: Rc<Worker>,
    /// The instant at which the worker's time was `offset`.
    base: Instant,
    offset: Duration,
}

impl QuicClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only way to an `Instant`, which the QUIC library takes as its time"
    )]
    pub(super) fn new(worker: &Rc<Worker>) -> Self {
        Self {
            worker: Rc::clone(worker),
            base: Instant::now(),
            offset: worker.time.elapsed(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.base + self.worker.time.elapsed().saturating_sub(self.offset)
    }
}
