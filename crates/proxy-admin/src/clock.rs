//! The one place where the admin interface reads the clock.

use std::time::SystemTime;

#[expect(
    clippy::disallowed_methods,
    reason = "the clock module reads the clock"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
