//! The one place where the pipeline's worker reads the clock.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A worker's time: how long it has run, and when that was.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    start_ns: u64,
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
            start_ns: monotonic_ns(),
            unix_start: unix_start.unwrap_or_default(),
        }
    }

    /// Time since the start. Never goes back.
    #[must_use]
    #[inline]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.start_ns))
    }

    /// The time of day, `elapsed` after the start, since 1970.
    #[must_use]
    #[inline]
    pub fn unix(&self, elapsed: Duration) -> Duration {
        self.unix_start + elapsed
    }
}

/// The monotonic clock, whose difference of two readings is all that matters. Fewer instructions than
/// `Instant`, which keeps seconds and nanoseconds apart.
#[inline]
#[expect(
    clippy::cast_sign_loss,
    reason = "the monotonic clock is never negative"
)]
fn monotonic_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    (tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(tv_nsec as u64)
}
