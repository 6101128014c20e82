//! The time for which a target that cannot be connected to is left out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The failed connects of one target, over all threads; kept across reloads with the target. Times are
/// nanoseconds since an origin that all callers share.
///
/// The caller sets and clears [`HealthCause::Connect`](crate::HealthCause::Connect). The first period
/// lasts [`FIRST_PERIOD`], each further one that much longer, up to [`LONGEST_PERIOD`].
#[derive(Debug, Default)]
pub struct ConnectBackoff(
    // From the lowest bit: 16 for the number of periods in a row, 48 for the end of the last one.
    AtomicU64,
);

/// The first period.
pub const FIRST_PERIOD: Duration = Duration::from_secs(10);

/// The longest period.
pub const LONGEST_PERIOD: Duration = Duration::from_mins(1);

const NS_PER_MS: u64 = 1_000_000;
const TIMES_BITS: u32 = 16;
const MAX_TIMES: u64 = (1 << TIMES_BITS) - 1;

impl ConnectBackoff {
    /// Begins the next period at `now_ns`, after a connect that failed.
    pub fn fail(&self, now_ns: u64) {
        let update = |packed| Some(next_period(packed, now_ns));
        let begun = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        debug_assert!(begun.is_ok(), "every period has a next one");
    }

    /// Ends the series: the target serves a connection.
    #[inline]
    pub fn succeed(&self) {
        // Read first, so that a healthy target costs no write.
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// The state in one word, for a process that takes over on the same machine.
    pub fn to_word(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes over the state of another process.
    pub fn restore(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }

    /// Returns true if the period has ended at `now_ns`; then the next one begins, and the caller
    /// must try the target.
    pub fn take_turn(&self, now_ns: u64) -> bool {
        let packed = self.0.load(Ordering::Relaxed);
        let is_over = packed >> TIMES_BITS <= now_ns / NS_PER_MS;
        let begin = || {
            let next = next_period(packed, now_ns);
            self.0
                .compare_exchange(packed, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        is_over && begin()
    }
}

fn next_period(packed: u64, now_ns: u64) -> u64 {
    let times = (packed & MAX_TIMES).saturating_add(1).min(MAX_TIMES);
    let period = FIRST_PERIOD.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX));
    let period_ms = u64::try_from(period.min(LONGEST_PERIOD).as_millis()).unwrap_or(u64::MAX);
    let until_ms = (now_ns / NS_PER_MS).saturating_add(period_ms);
    times | until_ms << TIMES_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn each_period_is_longer_up_to_a_minute_until_a_connect_succeeds() {
        let backoff = ConnectBackoff::default();
        let mut now_secs = 0;
        backoff.fail(0);
        for period_secs in [10, 20, 30, 40, 50, 60, 60] {
            now_secs += period_secs;
            assert!(!backoff.take_turn(now_secs * SECOND_NS - NS_PER_MS));
            assert!(backoff.take_turn(now_secs * SECOND_NS), "{period_secs}");
            assert!(!backoff.take_turn(now_secs * SECOND_NS), "one turn each");
        }
        backoff.succeed();

        backoff.fail(now_secs * SECOND_NS);
        assert!(backoff.take_turn((now_secs + 10) * SECOND_NS));
    }
}
