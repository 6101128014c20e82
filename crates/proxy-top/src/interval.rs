//! Two readings, and the rates between them.

use crate::reading::Reading;

/// The time between two readings of one process, or from its start to one reading.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) now: Reading,
    /// Empty for an interval from the start of the proxy.
    pub(crate) before: Reading,
    /// In seconds, by the proxy's clock; positive.
    seconds: f64,
}

/// Shortest time for a rate.
const MIN_SECONDS: f64 = 0.001;

impl Interval {
    /// From the start of the proxy.
    pub(crate) fn from_start(now: Reading) -> Self {
        let seconds = now.process.uptime.max(MIN_SECONDS);
        Self {
            now,
            before: Reading::default(),
            seconds,
        }
    }

    /// From the end of this interval to another reading; from the start if the proxy was started again.
    pub(crate) fn next(self, now: Reading) -> Self {
        let seconds = now.process.uptime - self.now.process.uptime;
        if seconds < 0.0 {
            return Self::from_start(now);
        }
        Self {
            now,
            before: self.now,
            seconds: seconds.max(MIN_SECONDS),
        }
    }

    /// Returns true if rates are averages since the start.
    pub(crate) fn is_from_start(&self) -> bool {
        self.before.process.uptime <= 0.0
    }

    /// Growth of a counter a second.
    pub(crate) fn rate(&self, now: f64, before: Option<f64>) -> f64 {
        (now - before.unwrap_or_default()).max(0.0) / self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::sample_reading;

    fn rate(interval: &Interval) -> String {
        let requests = |reading: &Reading| reading.routes.get("shop").map(|it| it.classes[1]);
        let rate = interval.rate(requests(&interval.now).unwrap(), requests(&interval.before));
        format!("{rate}")
    }

    #[test]
    fn rates_are_of_the_time_between_readings() {
        let first = Interval::from_start(sample_reading(50, 100, 0));
        assert_eq!((rate(&first).as_str(), first.is_from_start()), ("2", true));
        let next = first.next(sample_reading(60, 300, 0));
        assert_eq!((rate(&next).as_str(), next.is_from_start()), ("20", false));
        let again = next.next(sample_reading(4, 12, 0));
        assert_eq!((rate(&again).as_str(), again.is_from_start()), ("3", true));
    }
}
