//! The timers of one exchange.

use crate::clock::Clock;
use crate::deadline::{Deadline, Timer};
use crate::min_data_rate::MinDataRate;
use std::rc::Rc;
use std::time::Duration;

/// Starts and stops the timers of one exchange on its deadline, in addition to [`Timer::Total`].
#[derive(Clone, Debug)]
pub struct RequestTimers {
    clock: Rc<Clock>,
    deadline: Rc<Deadline>,
}

impl RequestTimers {
    /// Timers on `deadline`; `total` is the maximum time of the whole exchange, `None` for
    /// unlimited.
    #[must_use]
    pub fn new(clock: Rc<Clock>, deadline: Rc<Deadline>, total: Option<Duration>) -> Self {
        deadline.stop();
        deadline.start_total(&clock, total);
        Self { clock, deadline }
    }

    /// Starts `timer`, replacing a running one.
    #[inline]
    pub fn start(&self, timer: Timer, wait: Duration) {
        self.start_late(timer, wait, wait);
    }

    /// Starts `timer` with `left` of its full length `wait`.
    #[inline]
    fn start_late(&self, timer: Timer, left: Duration, wait: Duration) {
        self.deadline.start_late(&self.clock, timer, left, wait);
    }

    /// Starts `timer` unless it runs or has expired: waking up is not progress.
    #[inline]
    pub fn ensure(&self, timer: Timer, wait: Duration) {
        self.ensure_late(timer, wait, wait);
    }

    /// Like [`Self::ensure`], for a timer on a minimum data rate: its length is the rest of the
    /// peer's interval of `wait`.
    #[inline]
    pub fn ensure_pace(&self, pace: &MinDataRate, timer: Timer, wait: Duration) {
        let left = pace.wait(&self.clock, wait);
        self.ensure_late(timer, left, wait);
    }

    #[inline]
    fn ensure_late(&self, timer: Timer, left: Duration, wait: Duration) {
        if self.deadline.expired().is_some() {
            return;
        }
        if self.deadline.running() != Some(timer) {
            self.start_late(timer, left, wait);
        }
    }

    /// Stops the running timer; [`Timer::Total`] keeps running.
    #[inline]
    pub fn stop(&self) {
        self.deadline.stop();
    }

    /// The deadline that the timers run on.
    #[inline]
    pub fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// The clock of the timers.
    #[inline]
    pub fn clock(&self) -> &Rc<Clock> {
        &self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn timers(total: Option<Duration>) -> RequestTimers {
        RequestTimers::new(Rc::default(), Rc::default(), total)
    }

    #[test]
    fn a_timer_within_the_whole_keeps_its_name() {
        let timers = timers(Some(10 * SECOND));
        timers.start(Timer::ResponseHeader, SECOND);
        timers.clock().advance_to(2 * SECOND);
        timers.deadline().check(timers.clock().now());

        let expired = timers.deadline().take_expired();
        assert_eq!(expired, Some((Timer::ResponseHeader, SECOND)));
        timers.stop();
        timers.clock().advance_to(20 * SECOND);
        timers.deadline().check(timers.clock().now());
        assert_eq!(timers.deadline().expired(), Some(Timer::Total));
    }

    #[test]
    fn the_end_of_one_exchange_is_not_that_of_the_next() {
        let first = timers(Some(SECOND));
        let (clock, deadline) = (Rc::clone(&first.clock), Rc::clone(&first.deadline));
        let next = RequestTimers::new(clock, deadline, None);
        next.clock().advance_to(9 * SECOND);
        next.deadline().check(next.clock().now());

        assert_eq!(next.deadline().expired(), None);
    }

    #[test]
    fn no_timer_outlives_the_whole() {
        let timers = timers(Some(SECOND));
        timers.start(Timer::ResponseHeader, 10 * SECOND);
        timers.clock().advance_to(2 * SECOND);
        timers.deadline().check(timers.clock().now());

        assert_eq!(
            timers.deadline().take_expired(),
            Some((Timer::Total, SECOND))
        );
    }

    #[test]
    fn waking_up_does_not_give_more_time() {
        let timers = timers(None);
        timers.ensure(Timer::ResponseBody, SECOND);
        timers.clock().advance_to(SECOND);
        timers.ensure(Timer::ResponseBody, SECOND);
        timers.clock().advance_to(2 * SECOND);
        timers.deadline().check(timers.clock().now());

        assert_eq!(timers.deadline().expired(), Some(Timer::ResponseBody));
        timers.ensure(Timer::ResponseBody, SECOND);
        assert_eq!(timers.deadline().expired(), Some(Timer::ResponseBody));
    }
}
