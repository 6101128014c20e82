//! Waiting for what another process does.

use std::thread::park_timeout;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(20);
const ATTEMPTS: u32 = 3_000;

/// Asks again and again for a minute until it is so.
///
/// # Panics
///
/// If it is not so after a minute.
#[expect(clippy::panic, reason = "a test may stop, and says why")]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..ATTEMPTS {
        if is_so() {
            return;
        }
        park_timeout(INTERVAL);
    }
    panic!("waited in vain until {what}");
}
