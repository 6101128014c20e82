//! The one place where tasks read the clock.

use std::time::{Duration, Instant};

/// Time since a start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// How long ago the start was.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Waits. A task that looks at other processes has nothing better to wait for.
#[expect(clippy::disallowed_methods, reason = "no request waits for a task")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
