//! A list of events that threads can wait for.

use crate::deadline::EVENT_TIMEOUT;
use std::fmt::Debug;
#[expect(
    clippy::disallowed_types,
    reason = "a test's threads may wait for each other"
)]
use std::sync::Mutex;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::Duration;

/// An append-only list. Clones are the same list.
#[derive(Debug)]
pub struct Journal<T>(Arc<Shared<T>>);

#[derive(Debug)]
#[expect(
    clippy::disallowed_types,
    reason = "a test's threads may wait for each other"
)]
struct Shared<T> {
    state: Mutex<JournalState<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct JournalState<T> {
    entries: Vec<T>,
    closed: bool,
}

impl<T> Clone for Journal<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Journal<T> {
    fn default() -> Self {
        let state = JournalState {
            entries: Vec::new(),
            closed: false,
        };
        Self(Arc::new(Shared {
            state: state.into(),
            changed: Condvar::new(),
        }))
    }
}

impl<T> Journal<T> {
    /// Adds an entry.
    pub fn push(&self, entry: T) {
        self.state().entries.push(entry);
        self.0.changed.notify_all();
    }

    /// Adds the entry that `entry` makes of its index, and returns a copy.
    pub fn push_indexed(&self, entry: impl FnOnce(usize) -> T) -> T
    where
        T: Clone,
    {
        let entry = {
            let mut state = self.state();
            let entry = entry(state.entries.len());
            state.entries.push(entry.clone());
            entry
        };
        self.0.changed.notify_all();
        entry
    }

    /// Closes the list: waiting threads return.
    pub fn close(&self) {
        self.state().closed = true;
        self.0.changed.notify_all();
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state().entries.len()
    }

    /// Returns true if there are no entries yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn state(&self) -> MutexGuard<'_, JournalState<T>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone + Debug> Journal<T> {
    /// All entries so far.
    #[must_use]
    pub fn entries(&self) -> Vec<T> {
        self.state().entries.clone()
    }

    /// Waits until there are `count` entries, and returns all.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<T> {
        let enough = |entries: &[T]| (entries.len() >= count).then(|| entries.to_vec());
        match self.wait_until(enough) {
            Some(entries) => entries,
            None => panic!(
                "{count} entries did not come; there are {:?}",
                self.entries()
            ),
        }
    }

    /// Waits for an entry that `is_wanted`, from index `since` on. `None` after the deadline, or if
    /// the list is closed without one.
    pub fn find(&self, since: usize, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        self.wait_until(|entries| {
            let mut rest = entries.iter().skip(since);
            rest.find(|entry| is_wanted(entry)).cloned()
        })
    }

    /// Waits until `pick` returns a value. `None` after the deadline, or if the list is closed
    /// without one.
    pub fn wait_until<R>(&self, pick: impl Fn(&[T]) -> Option<R>) -> Option<R> {
        self.wait_within(EVENT_TIMEOUT, pick)
    }

    /// Like [`Self::wait_until`], with another deadline.
    pub fn wait_within<R>(&self, time: Duration, pick: impl Fn(&[T]) -> Option<R>) -> Option<R> {
        let waiting = |state: &mut JournalState<T>| !state.closed && pick(&state.entries).is_none();
        let state = self.state();
        let waited = self.0.changed.wait_timeout_while(state, time, waiting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        pick(&state.entries)
    }
}
