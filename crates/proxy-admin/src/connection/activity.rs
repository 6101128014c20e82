//! Order of connections by their last activity, without a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts all activity on a set of connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Arc<AtomicU64>);

/// The last activity of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    events: Events,
    last: Arc<AtomicU64>,
}

impl Events {
    /// The activity of a new connection.
    pub(crate) fn begin(&self) -> Activity {
        let activity = Activity {
            events: self.clone(),
            last: Arc::default(),
        };
        activity.happened();
        activity
    }
}

impl Activity {
    /// Records that bytes were read or written.
    pub(crate) fn happened(&self) {
        let number = self.events.0.fetch_add(1, Ordering::Relaxed);
        self.last.store(number, Ordering::Relaxed);
    }

    /// Greater than the value of every connection idle for longer.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }
}
