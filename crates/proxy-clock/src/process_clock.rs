//! The clock of the process, exact to the nanosecond, for state that workers share.

use std::time::Duration;

/// Converts readings of the operating system's monotonic clock into nanoseconds since one origin.
///
/// Made once at the start of the process and copied to every worker and task, so that readings on
/// different threads are comparable. It reads no clock: the reading of `CLOCK_MONOTONIC` is an
/// argument. The origin is one second before the start, so that shared mechanisms need no special
/// case for the first nanoseconds. A `u64` of nanoseconds lasts 584 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessClock {
    start_ns: u64,
    unix_start: Duration,
}

/// The time between origin and start of the process, in nanoseconds.
const START_NS: u64 = 1_000_000_000;

impl ProcessClock {
    /// A clock for a process that starts when the monotonic clock reads `monotonic_ns` nanoseconds
    /// and the time of day is `unix`, since 1970.
    #[must_use]
    pub const fn starting_at(monotonic_ns: u64, unix: Duration) -> Self {
        Self {
            start_ns: monotonic_ns,
            unix_start: unix,
        }
    }

    /// Nanoseconds since the origin, when the monotonic clock reads `monotonic_ns`.
    ///
    /// A reading from before the start returns the start.
    #[inline]
    #[must_use]
    pub const fn now_ns(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns
            .saturating_sub(self.start_ns)
            .saturating_add(START_NS)
    }

    /// Time from the process's start to `now_ns` of this clock.
    #[inline]
    #[must_use]
    pub const fn uptime(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(START_NS))
    }

    /// The time of day at `now_ns` of this clock, since 1970, computed from the start's time of
    /// day: later steps of the system clock have no effect.
    #[inline]
    #[must_use]
    pub fn unix(&self, now_ns: u64) -> Duration {
        self.unix_start.saturating_add(self.uptime(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIX: Duration = Duration::from_hours(500_000);

    #[test]
    fn two_threads_place_one_reading_at_one_point() {
        let clock = ProcessClock::starting_at(5_000, UNIX);
        let copy = clock;

        assert_eq!(clock.now_ns(6_001), copy.now_ns(6_001));
        assert_eq!(clock.now_ns(6_001) - clock.now_ns(6_000), 1);
    }

    #[test]
    fn the_start_is_uptime_zero_and_the_time_of_day_follows() {
        let clock = ProcessClock::starting_at(5_000, UNIX);
        let start = clock.now_ns(5_000);
        let later = clock.now_ns(5_000 + 2_500_000_000);

        assert_eq!(clock.uptime(start), Duration::ZERO);
        assert_eq!(clock.uptime(later), Duration::from_millis(2_500));
        assert_eq!(clock.unix(later), UNIX + Duration::from_millis(2_500));
    }

    #[test]
    fn a_reading_from_before_the_start_is_the_start() {
        let clock = ProcessClock::starting_at(5_000, UNIX);

        assert_eq!(clock.now_ns(1), clock.now_ns(5_000));
        assert_eq!(clock.uptime(clock.now_ns(1)), Duration::ZERO);
    }
}
