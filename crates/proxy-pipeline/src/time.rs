//! The one place where the pipeline's worker reads the clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A worker's time: how long it has run, and when that was.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    start: Instant,
    unix_start: Duration,
}

impl Time {
    /// Time that begins now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock module reads the clock"
    )]
    pub fn start() -> Self {
        let unix_start = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            start: Instant::now(),
            unix_start: unix_start.unwrap_or_default(),
        }
    }

    /// Time since the start. Never goes back.
    #[must_use]
    #[inline]
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock module reads the clock"
    )]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time of day, `elapsed` after the start, since 1970.
    #[must_use]
    #[inline]
    pub fn unix(&self, elapsed: Duration) -> Duration {
        self.unix_start + elapsed
    }
}
