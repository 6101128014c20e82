//! Clocks of the system, for the control thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

/// The time of day.
#[expect(
    clippy::disallowed_methods,
    reason = "the control thread reads the clock"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Time since the boot of the host, also while it was suspended.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}
