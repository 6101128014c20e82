//! Times between repetitions of a request to the collector.

use std::time::Duration;

/// Requests with the same data at most.
const MAX_REQUESTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The pauses between repetitions of one request: exponential, with jitter, and bounded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    failed: u32,
}

impl Backoff {
    /// The pause before the next request; `None` if the data is to be dropped. `requested` is the collector's
    /// `Retry-After`, which counts up to 30 s. `random` is any number.
    pub fn next_pause(&mut self, requested: Option<Duration>, random: u64) -> Option<Duration> {
        self.failed += 1;
        if MAX_REQUESTS <= self.failed {
            return None;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << (self.failed - 1));
        // Half of it at least, so that many proxies do not repeat at once.
        let share = 500 + u32::try_from(random % 501).unwrap_or_default();
        let pause = pause.min(MAX_PAUSE).saturating_mul(share) / 1_000;
        Some(requested.map_or(pause, |requested| requested.min(MAX_PAUSE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..6).map(|_| backoff.next_pause(None, 500)).collect();
        let secs = |secs| Some(Duration::from_secs(secs));
        assert_eq!(pauses, [secs(1), secs(2), secs(4), secs(8), None, None]);

        let half = Backoff::default().next_pause(None, 501);
        assert_eq!(half, Some(Duration::from_millis(500)));
    }

    #[test]
    fn a_pause_that_the_collector_requests_is_bounded() {
        for (requested, pause) in [(0, 0), (7, 7), (86_400, 30)] {
            let requested = Some(Duration::from_secs(requested));
            let paused = Backoff::default().next_pause(requested, 3);
            assert_eq!(paused, Some(Duration::from_secs(pause)));
        }
    }
}
