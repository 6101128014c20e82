//! Suppression of repeated events.

use proxy_telemetry::EventFields;
use std::collections::HashMap;
use std::time::Duration;

/// Number of events of one kind that are written within [`WINDOW`].
pub(super) const BURST: u64 = 5;

/// Repetitions within this time after the first event are counted together.
const WINDOW: Duration = Duration::from_secs(5);

/// Maximum number of kinds tracked at once. Events of further kinds are all written.
const MAX_KINDS: usize = 256;

/// The kind of an event; events with equal fields are repetitions of each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) level: &'static str,
    /// Each event of this kind is written.
    pub(super) is_answer: bool,
    pub(super) message: String,
}

/// A summary of events that were not written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) kind: Kind,
    pub(super) fields: EventFields,
    /// Number of repetitions, at least 1; 0 for a single written event.
    pub(super) repeated: u64,
}

/// The kinds of events of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Repetitions(HashMap<(Kind, EventFields), Window>);

#[derive(Debug)]
struct Window {
    /// Time of the first event, since the caller's epoch.
    since: Duration,
    written: u64,
    counted: u64,
}

impl Window {
    /// Whether the window is over, also if the clock was set back meanwhile.
    fn is_over(&self, now: Duration) -> bool {
        now.checked_sub(self.since).is_none_or(|age| WINDOW <= age)
    }
}

impl Repetitions {
    /// Whether an event at `now` is to be written; otherwise it is counted.
    pub(super) fn admit(&mut self, kind: &Kind, fields: &EventFields, now: Duration) -> bool {
        if kind.is_answer {
            return true;
        }
        let key = (kind.clone(), fields.clone());
        if self.0.len() >= MAX_KINDS && !self.0.contains_key(&key) {
            return true;
        }
        let window = self.0.entry(key).or_insert(Window {
            since: now,
            written: 0,
            counted: 0,
        });
        let admitted = window.written < BURST;
        if admitted {
            window.written += 1;
        } else {
            window.counted += 1;
        }
        admitted
    }

    /// Removes the kinds after their window, or `all`, and returns those with repetitions.
    pub(super) fn take_ended(&mut self, now: Duration, all: bool) -> Vec<Summary> {
        let ended = self.0.extract_if(|_, window| all || window.is_over(now));
        let counted = ended.filter(|(_, window)| window.counted > 0);
        let summaries = counted.map(|((kind, fields), window)| Summary {
            kind,
            fields,
            repeated: window.counted,
        });
        summaries.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(message: &str) -> Kind {
        Kind {
            level: "ERROR",
            is_answer: false,
            message: message.to_owned(),
        }
    }

    fn admitted(known: &mut Repetitions, kind: &Kind, now: u64, count: usize) -> usize {
        let (fields, now) = (EventFields::default(), Duration::from_secs(now));
        let all = (0..count).filter(|_| known.admit(kind, &fields, now));
        all.count()
    }

    #[test]
    fn a_burst_is_written_and_the_rest_is_counted_until_the_time_is_over() {
        let mut known = Repetitions::default();
        assert_eq!(admitted(&mut known, &kind("a"), 100, 12), 5);
        assert_eq!(admitted(&mut known, &kind("b"), 101, 2), 2);

        assert_eq!(known.take_ended(Duration::from_secs(104), false), []);
        let [summary] = &known.take_ended(Duration::from_secs(105), false)[..] else {
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
        let answer = Kind {
            is_answer: true,
            ..kind("done")
        };

        assert_eq!(admitted(&mut known, &answer, 1, 100), 100);
        assert_eq!(known.take_ended(Duration::MAX, true), []);
    }

    #[test]
    fn a_clock_that_is_set_back_ends_a_window() {
        let mut known = Repetitions::default();
        assert_eq!(admitted(&mut known, &kind("a"), 100, 6), 5);

        assert_eq!(known.take_ended(Duration::from_secs(50), false).len(), 1);
    }

    #[test]
    fn the_kinds_known_at_once_are_bounded() {
        let mut known = Repetitions::default();
        for number in 0..1000 {
            assert_eq!(admitted(&mut known, &kind(&number.to_string()), 1, 1), 1);
        }

        assert_eq!(known.0.len(), MAX_KINDS);
    }
}
