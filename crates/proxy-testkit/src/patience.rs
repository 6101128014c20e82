//! How long a test waits for what must happen.

use std::time::Duration;

/// The longest that a test waits for one event. Nothing takes this long unless it is broken.
pub const EVENT_TIMEOUT: Duration = Duration::from_secs(20);
