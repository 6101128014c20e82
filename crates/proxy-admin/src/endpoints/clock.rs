//! The clock of the admin interface; no other file of this crate reads it.

use std::time::SystemTime;

#[expect(
    clippy::disallowed_methods,
    reason = "the clock module reads the clock"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
