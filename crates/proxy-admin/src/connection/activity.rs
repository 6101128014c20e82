//! Order of connections by last activity, without a clock: events are numbered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of events on all connections of a set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Arc<AtomicU64>);

/// Number of a connection's last event.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    events: Events,
    last: Arc<AtomicU64>,
}

impl Events {
    /// Registers a connection, with its accept as the first event.
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
    /// Records an event: bytes read or written.
    pub(crate) fn happened(&self) {
        let number = self.events.0.fetch_add(1, Ordering::Relaxed);
        self.last.store(number, Ordering::Relaxed);
    }

    /// Number of the last event. The connection with the lowest number has been idle for longest.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }
}
