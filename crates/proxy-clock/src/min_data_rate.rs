//! The minimum data rate of a peer while the proxy waits for it.

use crate::clock::{Clock, TICK, Tick};
use std::cell::Cell;
use std::time::Duration;

/// Measures the data rate of a peer: in each interval it must move at least
/// [`MinDataRate::MIN_BYTES`].
///
/// Only time spent waiting for this peer counts, so a delay elsewhere is not charged to it. Each
/// call is a few loads and stores.
#[derive(Debug, Default)]
pub struct MinDataRate {
    /// Bytes moved in the current interval.
    moved: Cell<usize>,
    /// Ticks waited in the current interval, up to `since`.
    waited: Cell<u32>,
    /// Start of the current wait; `None` while the proxy does not wait for the peer.
    since: Cell<Option<Tick>>,
}

impl MinDataRate {
    /// Minimum number of bytes in each interval: fewer than any usable link transfers, and enough
    /// to make thousands of slow requests expensive.
    pub const MIN_BYTES: usize = 1024;

    /// Records that the proxy waits for the peer. Returns the rest of an interval of `time`.
    #[inline]
    pub fn wait(&self, clock: &Clock, time: Duration) -> Duration {
        let since = self.since.get().unwrap_or(clock.now());
        self.since.set(Some(since));
        let waited = self.waited.get() + clock.now().0.saturating_sub(since.0);
        time.saturating_sub(TICK.saturating_mul(waited))
    }

    /// Records that the peer moved `bytes`, which ends the wait. After enough bytes a new interval
    /// begins.
    #[inline]
    pub fn moved(&self, clock: &Clock, bytes: usize) {
        let moved = self.moved.get().saturating_add(bytes);
        if Self::MIN_BYTES <= moved {
            return self.begin();
        }
        self.moved.set(moved);
        self.pause(clock);
    }

    /// Stops counting: the proxy does not wait for this peer.
    #[inline]
    pub fn pause(&self, clock: &Clock) {
        if let Some(since) = self.since.take() {
            let waited = clock.now().0.saturating_sub(since.0);
            self.waited.set(self.waited.get().saturating_add(waited));
        }
    }

    /// Starts a new interval.
    #[inline]
    pub fn begin(&self) {
        self.moved.set(0);
        self.waited.set(0);
        self.since.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_byte_now_and_then_does_not_prolong_the_interval() {
        let (clock, pace) = (Clock::default(), MinDataRate::default());
        let mut left = Vec::new();
        for seconds in 1..=3 {
            left.push(pace.wait(&clock, 3 * SECOND));
            clock.advance_to(seconds * SECOND);
            pace.moved(&clock, 1);
        }

        assert_eq!(left, [3 * SECOND, 2 * SECOND, SECOND]);
        assert_eq!(pace.wait(&clock, 3 * SECOND), Duration::ZERO);
    }

    #[test]
    fn enough_begins_a_new_interval() {
        let (clock, pace) = (Clock::default(), MinDataRate::default());
        pace.wait(&clock, SECOND);
        clock.advance_to(SECOND);
        pace.moved(&clock, MinDataRate::MIN_BYTES - 1);
        assert_eq!(pace.wait(&clock, SECOND), Duration::ZERO);

        pace.moved(&clock, 1);
        assert_eq!(pace.wait(&clock, SECOND), SECOND);
    }

    #[test]
    fn only_waiting_counts() {
        let (clock, pace) = (Clock::default(), MinDataRate::default());
        pace.wait(&clock, 3 * SECOND);
        clock.advance_to(SECOND);
        pace.pause(&clock);
        clock.advance_to(60 * SECOND);

        assert_eq!(pace.wait(&clock, 3 * SECOND), 2 * SECOND);
        clock.advance_to(61 * SECOND);
        assert_eq!(pace.wait(&clock, 3 * SECOND), SECOND);
    }
}
