//! Suppression of lines that repeat each other.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Lines of one kind that are written within [`WINDOW`].
const BURST: u64 = 5;

/// Repetitions within this time after the first line are counted together.
const WINDOW: Duration = Duration::from_secs(5);

/// Maximum number of kinds tracked at once.
const MAX_KINDS: usize = 256;

/// Windows of repetitions to be summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Windows that are over.
    Ended,
    /// Open ones as well, because the log is closed.
    All,
}

/// The kinds of lines of the last seconds, each with the last line `L` that was not written.
#[derive(Debug)]
pub struct Repetitions<K, L>(HashMap<K, Window<L>>);

/// Lines of one kind that were not written.
#[derive(Debug, PartialEq, Eq)]
pub struct Repeated<K, L> {
    /// Kind of the repeated line.
    pub kind: K,
    /// The last of these lines.
    pub last: L,
    /// Number of these lines, at least 1.
    pub count: u64,
}

#[derive(Debug)]
struct Window<L> {
    /// Time of the first line, since the caller's epoch.
    since: Duration,
    written: u64,
    counted: u64,
    last: Option<L>,
}

impl<L> Window<L> {
    /// Returns true if the window has ended, also if the clock was set back.
    fn is_over(&self, now: Duration) -> bool {
        now.checked_sub(self.since).is_none_or(|age| WINDOW <= age)
    }
}

impl<K, L> Default for Repetitions<K, L> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, L> Repetitions<K, L> {
    /// Returns true if lines of `kind` can be tracked: at most 256 kinds are at once.
    #[must_use]
    pub fn has_room(&self, kind: &K) -> bool {
        self.0.len() < MAX_KINDS || self.0.contains_key(kind)
    }

    /// Returns true if a line at `now` is to be written; otherwise it is counted, and kept as the
    /// last one.
    #[must_use]
    pub fn admit(&mut self, kind: K, now: Duration, line: impl FnOnce() -> L) -> bool {
        let window = self.0.entry(kind).or_insert(Window {
            since: now,
            written: 0,
            counted: 0,
            last: None,
        });
        let admitted = window.written < BURST;
        if admitted {
            window.written += 1;
        } else {
            window.counted += 1;
            window.last = Some(line());
        }
        admitted
    }

    /// Removes the kinds in `windows` at `now`, and returns those with repetitions.
    pub fn take(&mut self, now: Duration, windows: Windows) -> Vec<Repeated<K, L>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let ended = self
            .0
            .extract_if(|_, window| windows == Windows::All || window.is_over(now));
        let repeated = ended.filter_map(|(kind, window)| {
            Some(Repeated {
                kind,
                last: window.last?,
                count: window.counted,
            })
        });
        repeated.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(known: &mut Repetitions<u32, usize>, kind: u32, now: u64, count: usize) -> usize {
        let now = Duration::from_secs(now);
        let all = (0..count).filter(|number| known.admit(kind, now, || *number));
        all.count()
    }

    #[test]
    fn a_burst_is_written_and_the_rest_is_counted_until_the_time_is_over() {
        let mut known = Repetitions::default();
        assert_eq!(admitted(&mut known, 1, 100, 12), 5);
        assert_eq!(admitted(&mut known, 2, 101, 2), 2);

        assert_eq!(known.take(Duration::from_secs(104), Windows::Ended), []);
        let ended = known.take(Duration::from_secs(105), Windows::Ended);
        let repeated = Repeated {
            kind: 1,
            last: 11,
            count: 7,
        };
        assert_eq!(ended, [repeated]);
        assert_eq!(admitted(&mut known, 1, 105, 6), 5);
    }

    #[test]
    fn a_clock_that_is_set_back_ends_a_window() {
        let mut known = Repetitions::default();
        assert_eq!(admitted(&mut known, 1, 100, 6), 5);

        assert_eq!(known.take(Duration::from_secs(50), Windows::Ended).len(), 1);
    }

    #[test]
    fn the_kinds_known_at_once_are_bounded() {
        let mut known = Repetitions::default();
        for kind in 0..256 {
            assert!(known.has_room(&kind));
            assert_eq!(admitted(&mut known, kind, 1, 1), 1);
        }

        assert!(known.has_room(&7) && !known.has_room(&256));
    }
}
