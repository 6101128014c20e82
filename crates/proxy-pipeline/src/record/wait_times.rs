//! Times that a request waited for the proxy's own resources.

use std::cell::Cell;
use std::time::Duration;

/// Waiting times of a request, in microseconds; most requests have none. Saturates at 71 minutes.
#[derive(Debug, Default)]
pub(crate) struct WaitTimes {
    queued_us: Cell<u32>,
    connecting_us: Cell<u32>,
}

impl WaitTimes {
    /// Adds time in the queue for a permit of a request in flight.
    pub(crate) fn add_queued(&self, time: Duration) {
        add(&self.queued_us, time);
    }

    /// Adds time spent on a connection to a target.
    pub(crate) fn add_connecting(&self, time: Duration) {
        add(&self.connecting_us, time);
    }

    pub(crate) fn queued(&self) -> Option<Duration> {
        time(&self.queued_us)
    }

    pub(crate) fn connecting(&self) -> Option<Duration> {
        time(&self.connecting_us)
    }
}

/// Adds a time, at least a microsecond, so that it is not left out.
#[cold]
fn add(sum_us: &Cell<u32>, time: Duration) {
    let us = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    sum_us.set(sum_us.get().saturating_add(us.max(1)));
}

fn time(sum_us: &Cell<u32>) -> Option<Duration> {
    match sum_us.get() {
        0 => None,
        us => Some(Duration::from_micros(us.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_added_and_none_is_left_out() {
        let waits = WaitTimes::default();
        assert_eq!((waits.queued(), waits.connecting()), (None, None));
        waits.add_connecting(Duration::from_millis(2));
        waits.add_connecting(Duration::ZERO);
        assert_eq!(waits.connecting(), Some(Duration::from_micros(2_001)));
        waits.add_queued(Duration::MAX);
        waits.add_queued(Duration::MAX);
        assert_eq!(waits.queued(), Some(Duration::from_micros(u32::MAX.into())));
    }
}
