//! Lets one thread wait until another says so.

use crate::journal::Journal;
use std::time::Duration;

/// Closed at first; opened once, for all who wait. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate(Journal<()>);

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everybody through, from now on.
    pub fn open(&self) {
        self.0.push(());
    }

    /// Whether everybody is let through.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether everybody is let through, or is within `time`, for which it waits.
    pub fn opens_within(&self, time: Duration) -> bool {
        let open = |entries: &[()]| (!entries.is_empty()).then_some(());
        self.0.wait_within(time, open).is_some()
    }

    /// Waits until the gate is open.
    #[track_caller]
    pub fn wait(&self) {
        self.0.wait_for(1);
    }
}
