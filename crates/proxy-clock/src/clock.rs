//! The coarse clock of one worker, in ticks.

use std::cell::Cell;
use std::time::Duration;

/// Interval between two ticks, and so the precision of every deadline.
pub const TICK: Duration = Duration::from_millis(100);

/// A point in a worker's time: ticks since the worker's start. Saturates after 13 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u32);

impl Tick {
    /// Later than every tick that a clock reaches.
    pub const MAX: Self = Self(u32::MAX);
}

/// The coarse clock of a worker. Only [`Clock::advance_to`] moves it.
#[derive(Debug, Default)]
pub struct Clock(Cell<Tick>);

impl Clock {
    /// The tick of the last [`Clock::advance_to`].
    #[inline]
    pub fn now(&self) -> Tick {
        self.0.get()
    }

    /// Moves the clock to `elapsed`, the time since the worker's start.
    ///
    /// The elapsed time is passed in instead of counting ticks, so that a late tick does not delay
    /// all later deadlines.
    pub fn advance_to(&self, elapsed: Duration) {
        self.0.set(Tick(ticks(elapsed)));
    }

    /// The first tick at which at least `wait` has passed.
    #[inline]
    pub fn after(&self, wait: Duration) -> Tick {
        // One more, because the current tick may be nearly over.
        let ticks = ticks(wait).saturating_add(1);
        Tick(self.now().0.saturating_add(ticks))
    }
}

#[inline]
fn ticks(time: Duration) -> u32 {
    const PER_SECOND: u64 = 1_000 / 100;
    const TICK_NANOS: u32 = 100_000_000;
    let whole = time.as_secs().saturating_mul(PER_SECOND);
    let rest = u64::from(time.subsec_nanos() / TICK_NANOS);
    u32::try_from(whole.saturating_add(rest)).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_cut_short() {
        let clock = Clock::default();
        clock.advance_to(Duration::from_millis(199));

        assert_eq!(clock.now(), Tick(1));
        assert_eq!(clock.after(Duration::from_millis(100)), Tick(3));
        assert_eq!(clock.after(Duration::ZERO), Tick(2));
    }

    #[test]
    fn an_endless_wait_does_not_overflow() {
        let clock = Clock::default();
        clock.advance_to(Duration::from_secs(10));

        assert!(clock.after(Duration::MAX) > clock.now());
    }
}
