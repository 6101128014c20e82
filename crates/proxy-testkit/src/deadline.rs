//! The deadline of tests.

use std::time::Duration;

/// Maximum time that a test waits for one event. Exceeded only if something is broken.
pub const EVENT_TIMEOUT: Duration = Duration::from_secs(20);
