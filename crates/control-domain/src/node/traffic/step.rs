//! Time steps in which requests are counted, and periods made of them.

use crate::org::Retention;
use jiff::{SignedDuration, Timestamp};

/// Time until all replicas have written a step that has ended.
const WRITE_DELAY: SignedDuration = SignedDuration::from_secs(60);
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
const DAY_HOURS: i64 = 24;

/// Length of a time step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficStep {
    /// Five minutes; kept for three hours.
    FiveMinutes,
    /// An hour; kept for nine days.
    Hour,
    /// Six hours, aligned to midnight UTC; kept for the configured retention.
    SixHours,
}

/// A period to display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficPeriod {
    /// An hour, in steps of five minutes.
    Hour,
    /// 24 hours, in steps of an hour.
    Day,
    /// Seven days, in steps of six hours.
    Week,
}

/// A whole number of consecutive steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficWindow {
    /// Length of one step.
    pub step: TrafficStep,
    /// Start of the first step.
    pub from: Timestamp,
    /// End of the last step.
    pub to: Timestamp,
}

impl TrafficStep {
    /// All lengths, shortest first.
    pub const ALL: [Self; 3] = [Self::FiveMinutes, Self::Hour, Self::SixHours];

    /// Its length in seconds.
    pub fn secs(self) -> i64 {
        match self {
            Self::FiveMinutes => 300,
            Self::Hour => 3_600,
            Self::SixHours => 21_600,
        }
    }

    /// Length of one step.
    pub fn length(self) -> SignedDuration {
        SignedDuration::from_secs(self.secs())
    }

    /// Start of the step that contains `at`.
    pub fn begin(self, at: Timestamp) -> Timestamp {
        let secs = at.as_second();
        let begin = secs - secs.rem_euclid(self.secs());
        Timestamp::from_second(begin).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Time before which steps are deleted, if the retention is `days`; `None` if they are kept for
    /// ever.
    pub fn cutoff(self, days: u32, now: Timestamp) -> Option<Timestamp> {
        let retained = Retention::cutoff(days, now);
        let hours = match self {
            Self::FiveMinutes => 3,
            Self::Hour => 9 * DAY_HOURS,
            Self::SixHours => return retained,
        };
        let own = now.checked_sub(SignedDuration::from_hours(hours)).ok();
        own.max(retained)
    }
}

impl TrafficPeriod {
    /// All periods, shortest first.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Week];

    /// The period with this name in the interface.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.name() == name)
    }

    /// Name in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
        }
    }

    /// The newest steps that all replicas have written by `now`.
    pub fn window(self, now: Timestamp) -> TrafficWindow {
        let (step, hours) = match self {
            Self::Hour => (TrafficStep::FiveMinutes, 1),
            Self::Day => (TrafficStep::Hour, DAY_HOURS),
            Self::Week => (TrafficStep::SixHours, 7 * DAY_HOURS),
        };
        let to = step.begin(now.saturating_sub(WRITE_DELAY).unwrap_or(now));
        let length = SignedDuration::from_hours(hours);
        TrafficWindow {
            step,
            from: to.saturating_sub(length).unwrap_or(to),
            to,
        }
    }
}

impl TrafficWindow {
    /// The window a week earlier. Five-minute steps are not kept that long, so it uses hours, from
    /// the hour in which the window starts.
    #[must_use]
    pub fn week_before(self) -> Self {
        let Self { step, from, to } = self;
        let step = step.max(TrafficStep::Hour);
        let earlier = |at: Timestamp| step.begin(at.saturating_sub(WEEK).unwrap_or(at));
        let length = to.duration_since(from);
        let from = earlier(from);
        Self {
            step,
            from,
            to: from.saturating_add(length).unwrap_or(from),
        }
    }

    /// Time at which the window gets its next step.
    pub fn next_at(self) -> Timestamp {
        let wait = self.step.length().saturating_add(WRITE_DELAY);
        self.to.saturating_add(wait).unwrap_or(self.to)
    }

    /// Start of each step, in order.
    pub fn steps(self) -> impl Iterator<Item = Timestamp> {
        let Self { step, from, to } = self;
        let next = move |at: &Timestamp| at.checked_add(step.length()).ok();
        std::iter::successors(Some(from), next).take_while(move |at| *at < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn steps_are_kept_the_longer_the_longer_they_are() {
        let now = at("2026-11-26T10:00:00Z");
        let [short, hour, long] = TrafficStep::ALL;
        assert_eq!(short.cutoff(15, now), Some(at("2026-11-26T07:00:00Z")));
        assert_eq!(hour.cutoff(15, now), Some(at("2026-11-17T10:00:00Z")));
        assert_eq!(hour.cutoff(2, now), Some(at("2026-11-24T10:00:00Z")));
        assert_eq!(hour.cutoff(0, now), Some(at("2026-11-17T10:00:00Z")));
        assert_eq!(long.cutoff(15, now), Some(at("2026-11-11T10:00:00Z")));
        assert_eq!(long.cutoff(0, now), None);
    }

    #[test]
    fn a_period_and_the_week_before_have_whole_steps() {
        let now = at("2026-11-26T10:06:00Z");
        let hour = TrafficPeriod::Hour.window(now);
        assert_eq!(
            (hour.from, hour.to),
            (at("2026-11-26T09:05:00Z"), at("2026-11-26T10:05:00Z"))
        );
        assert_eq!(hour.steps().count(), 12);
        let before = hour.week_before();
        assert_eq!(
            (before.from, before.to),
            (at("2026-11-19T09:00:00Z"), at("2026-11-19T10:00:00Z"))
        );
        let week = TrafficPeriod::Week.window(now);
        assert_eq!(
            (week.to, week.steps().count()),
            (at("2026-11-26T06:00:00Z"), 28)
        );
        assert_eq!(week.week_before().to, week.from);
    }

    #[test]
    fn a_step_is_shown_when_every_replica_has_written_it() {
        let before = TrafficPeriod::Hour.window(at("2026-11-26T10:05:59Z"));
        assert_eq!(before.to, at("2026-11-26T10:00:00Z"));
        assert_eq!(before.next_at(), at("2026-11-26T10:06:00Z"));
        let after = TrafficPeriod::Hour.window(before.next_at());
        assert_eq!(after.to, at("2026-11-26T10:05:00Z"));
    }
}
