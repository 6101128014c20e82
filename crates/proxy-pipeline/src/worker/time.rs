//! The clock of the pipeline; no other file of this crate reads it.

use proxy_cache::ClockReading;
use proxy_clock::ProcessClock;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A worker's time: monotonic time since its start, and time of day.
///
/// The time of day is the monotonic time plus an offset. The offset is updated at each tick,
/// because the host's clock may be set, and the monotonic clock stops while the host is suspended.
#[derive(Debug)]
pub struct Time {
    start_ns: u64,
    /// The time of day at which `elapsed` was 0, by the host's current clock.
    unix_start: Cell<Duration>,
    /// Whole seconds of the time of day at the last tick.
    unix_second: Cell<u64>,
}

impl Time {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        let time = Self {
            start_ns: monotonic_ns(),
            unix_start: Cell::default(),
            unix_second: Cell::default(),
        };
        time.synchronize();
        time
    }

    /// Time since the start. Monotonic.
    #[must_use]
    #[inline]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.start_ns))
    }

    /// Time of `clock`, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn shared_ns(clock: &ProcessClock) -> u64 {
        clock.now_ns(monotonic_ns())
    }

    /// Time of `clock`, `elapsed` after the start, in nanoseconds.
    #[inline]
    #[must_use]
    pub(crate) fn shared_at(&self, clock: &ProcessClock, elapsed: Duration) -> u64 {
        clock.now_ns(self.process_ns(elapsed))
    }

    /// A clock of the process that starts now.
    #[must_use]
    pub fn process_clock() -> ProcessClock {
        let time = Self::start();
        ProcessClock::starting_at(time.start_ns, time.unix(Duration::ZERO))
    }

    /// Nanoseconds of the clock that all threads of the process share, `elapsed` after the start.
    #[must_use]
    #[inline]
    pub fn process_ns(&self, elapsed: Duration) -> u64 {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.start_ns.saturating_add(elapsed_ns)
    }

    /// The time of day at `elapsed` after the start, since 1970.
    #[must_use]
    #[inline]
    pub fn unix(&self, elapsed: Duration) -> Duration {
        self.unix_start.get() + elapsed
    }

    /// The time of day at `elapsed` after the start.
    #[must_use]
    pub fn time_of_day(&self, elapsed: Duration) -> SystemTime {
        UNIX_EPOCH + self.unix(elapsed)
    }

    /// Both clocks, for ages of stored responses.
    #[must_use]
    pub(crate) fn clock_reading(&self) -> ClockReading {
        let elapsed = self.elapsed();
        ClockReading {
            unix: self.unix(elapsed),
            monotonic: Duration::from_nanos(self.process_ns(elapsed)),
        }
    }

    /// Whole seconds since 1970 at the last tick.
    #[inline]
    pub(crate) fn unix_second(&self) -> u64 {
        self.unix_second.get()
    }

    /// Updates the time of day from the host's clock; called at each tick. Returns the time since
    /// the start.
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock module reads the clock"
    )]
    pub fn synchronize(&self) -> Duration {
        let elapsed = self.elapsed();
        self.set_time_of_day(SystemTime::now(), elapsed);
        elapsed
    }

    fn set_time_of_day(&self, now: SystemTime, elapsed: Duration) {
        let unix = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.unix_start.set(unix.saturating_sub(elapsed));
        self.unix_second.set(unix.as_secs());
    }
}

/// The monotonic clock, for differences of two readings. Fewer instructions than `Instant`, which
/// keeps seconds and nanoseconds apart.
#[inline]
#[expect(
    clippy::cast_sign_loss,
    reason = "the monotonic clock is never negative"
)]
fn monotonic_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    (tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_hosts_clock_is_followed() {
        let time = Time::start();
        let days = |days: u64| Duration::from_hours(24 * days);
        for day in [20_000, 20_010, 19_990] {
            let ran = Duration::from_secs(5);
            time.set_time_of_day(UNIX_EPOCH + days(day), ran);

            assert_eq!(time.unix(ran), days(day));
            assert_eq!(time.unix(ran + days(1)), days(day + 1));
            assert_eq!(time.unix_second(), days(day).as_secs());
        }
    }

    #[test]
    fn readings_continue_when_the_time_of_day_is_set_back() {
        let time = Time::start();
        let before = time.clock_reading();
        let hour = Duration::from_hours(1);
        time.set_time_of_day(
            UNIX_EPOCH + before.unix.saturating_sub(hour),
            time.elapsed(),
        );

        let after = time.clock_reading();

        assert!(after.unix < before.unix);
        assert!(before.monotonic <= after.monotonic);
    }

    #[test]
    fn a_tick_takes_the_time_of_day_from_the_host() {
        let time = Time::start();
        time.set_time_of_day(UNIX_EPOCH + Duration::from_secs(7), Duration::ZERO);

        let elapsed = time.synchronize();

        assert!(Duration::from_hours(24 * 365 * 30) < time.unix(elapsed));
    }
}
