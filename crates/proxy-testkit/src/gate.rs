//! A gate that threads wait for.

use crate::journal::Journal;
use std::time::Duration;

/// Closed at first; opened once, for all waiting threads. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate(Journal<()>);

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the gate for good.
    pub fn open(&self) {
        self.0.push(());
    }

    /// Returns true if the gate is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Waits up to `time` for the gate to open; whether it is open.
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
