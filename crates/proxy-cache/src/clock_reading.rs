//! The time of day and a monotonic clock, read together.

use std::time::Duration;

/// Both clocks at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// The time of day, since 1970. An administrator or NTP may set it, in either direction.
    pub unix: Duration,
    /// The monotonic clock, which all threads of the process share. It stops while the host is
    /// suspended.
    pub monotonic: Duration,
}

impl ClockReading {
    /// Whole seconds since `earlier`, by the clock that went further. Nothing becomes younger when
    /// the time of day is set back, and nothing stays fresh while the host is suspended.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> u32 {
        let by_time_of_day = self.unix.saturating_sub(earlier.unix);
        let elapsed = self.monotonic.saturating_sub(earlier.monotonic);
        u32::try_from(by_time_of_day.max(elapsed).as_secs()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_that_went_further_counts() {
        let at = |unix, monotonic| ClockReading {
            unix: Duration::from_millis(unix),
            monotonic: Duration::from_millis(monotonic),
        };
        let start = at(1_000_900, 50_300);
        for (now, seconds) in [
            (at(1_001_800, 51_200), 0),
            (at(1_001_900, 51_300), 1),
            (at(1_007_900, 57_300), 7),
            // Set back by 900 seconds, and forward.
            (at(107_900, 57_300), 7),
            (at(4_600_900, 57_300), 3_600),
            // The host was suspended for an hour.
            (at(4_607_900, 57_300), 3_607),
            (at(0, 0), 0),
            (at(u64::MAX, u64::MAX), u32::MAX),
        ] {
            assert_eq!(now.seconds_since(start), seconds, "{now:?}");
        }
    }
}
