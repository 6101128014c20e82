//! The time of day, for the control thread.

use std::time::SystemTime;

/// The time of day.
#[expect(
    clippy::disallowed_methods,
    reason = "the control thread tells the time"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
