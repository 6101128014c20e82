//! Waiting for effects of other processes.

use std::thread::park_timeout;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(20);
const MAX_WAIT_MILLIS: u128 = 60_000;

/// Asks again and again for a minute until it is so.
///
/// # Panics
///
/// If it is not so after a minute.
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    until_every(INTERVAL, what, is_so);
}

/// Asks once in `interval` for a minute until it is so: the API refuses a key that asks more often than
/// five times a second.
///
/// # Panics
///
/// If it is not so after a minute.
#[expect(clippy::panic, reason = "a test may stop, and says why")]
pub fn until_every(interval: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..=MAX_WAIT_MILLIS / interval.as_millis().max(1) {
        if is_so() {
            return;
        }
        park_timeout(interval);
    }
    panic!("waited in vain until {what}");
}
