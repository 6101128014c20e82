//! The clock of load generator and tools; no other file reads it.

use std::time::{Duration, Instant, SystemTime};

/// Time since a start.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The present as the value of a `Date` field.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn http_date() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}

/// Sleeps. A tool that polls another process has no event to wait for.
#[expect(clippy::disallowed_methods, reason = "no request waits for a tool")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
