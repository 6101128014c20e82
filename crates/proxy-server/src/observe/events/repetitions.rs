//! Suppression of repeated events.

use proxy_telemetry::{EventFields, Repeated, Windows};
use std::time::Duration;

/// The kind of an event; events with equal fields are repetitions of each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EventKind {
    pub(super) level: &'static str,
    /// The event responds to an operator's signal, so that each repetition is written.
    pub(super) is_answer: bool,
    pub(super) message: String,
}

/// A summary of events that were not written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) kind: EventKind,
    pub(super) fields: EventFields,
    /// Number of repetitions, at least 1; 0 for a single written event.
    pub(super) repeated: u64,
}

/// The kinds of events of the last seconds. Above this number, events of further kinds are written
/// without suppression.
#[derive(Debug, Default)]
pub(super) struct Repetitions(proxy_telemetry::Repetitions<(EventKind, EventFields), ()>);

impl Repetitions {
    /// Returns true if an event at `now` is to be written; otherwise it is counted.
    pub(super) fn admit(&mut self, kind: &EventKind, fields: &EventFields, now: Duration) -> bool {
        let key = (kind.clone(), fields.clone());
        if kind.is_answer || !self.0.has_room(&key) {
            return true;
        }
        self.0.admit(key, now, || ())
    }

    /// Removes the kinds in `windows` at `now`, and returns those with repetitions.
    pub(super) fn take(&mut self, now: Duration, windows: Windows) -> Vec<Summary> {
        let ended = self.0.take(now, windows).into_iter();
        let summaries = ended.map(|Repeated { kind, count, .. }| Summary {
            kind: kind.0,
            fields: kind.1,
            repeated: count,
        });
        summaries.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(message: &str) -> EventKind {
        EventKind {
            level: "ERROR",
            is_answer: false,
            message: message.to_owned(),
        }
    }

    fn admitted(known: &mut Repetitions, kind: &EventKind, now: u64, count: usize) -> usize {
        let (fields, now) = (EventFields::default(), Duration::from_secs(now));
        let all = (0..count).filter(|_| known.admit(kind, &fields, now));
        all.count()
    }

    #[test]
    fn a_burst_is_written_and_the_rest_is_counted_until_the_time_is_over() {
        let mut known = Repetitions::default();
        assert_eq!(admitted(&mut known, &kind("a"), 100, 12), 5);
        assert_eq!(admitted(&mut known, &kind("b"), 101, 2), 2);

        assert_eq!(known.take(Duration::from_secs(104), Windows::Ended), []);
        let [summary] = &known.take(Duration::from_secs(105), Windows::Ended)[..] else {
            panic!("one kind was repeated");
        };
        assert_eq!((summary.kind.message.as_str(), summary.repeated), ("a", 7));
        assert_eq!(admitted(&mut known, &kind("a"), 105, 6), 5);
    }

    #[test]
    fn other_fields_are_another_kind() {
        let mut known = Repetitions::default();
        let mut fields = EventFields::default();
        fields.plain("count", 1);
        assert_eq!(admitted(&mut known, &kind("a"), 1, 9), 5);

        assert!(known.admit(&kind("a"), &fields, Duration::from_secs(1)));
    }

    #[test]
    fn answers_are_all_written() {
        let mut known = Repetitions::default();
        let answer = EventKind {
            is_answer: true,
            ..kind("done")
        };

        assert_eq!(admitted(&mut known, &answer, 1, 100), 100);
        assert_eq!(known.take(Duration::MAX, Windows::All), []);
    }

    #[test]
    fn events_of_too_many_kinds_are_all_written() {
        let mut known = Repetitions::default();
        for number in 0..1000 {
            assert_eq!(admitted(&mut known, &kind(&number.to_string()), 1, 1), 1);
        }

        assert_eq!(admitted(&mut known, &kind("1000"), 1, 10), 10);
    }
}
