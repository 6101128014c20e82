//! Notification of requests that wait for a connection attempt.

use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::Notify;

/// Wakes the waiting requests when each should try again.
#[derive(Debug, Default)]
pub(super) struct ConnectNotify {
    finished: Notify,
    /// Number of requests waiting for the next notification.
    waiting: Cell<usize>,
    /// Number of notifications.
    round: Cell<u32>,
}

/// A request that waits for another request's connection attempt.
#[derive(Debug)]
pub struct Waiting {
    notify: Rc<ConnectNotify>,
    round: u32,
}

impl ConnectNotify {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    pub(super) fn wait(self: &Rc<Self>) -> Waiting {
        self.waiting.set(self.waiting.get() + 1);
        Waiting {
            round: self.round.get(),
            notify: Rc::clone(self),
        }
    }

    pub(super) fn notify_all(&self) {
        self.round.set(self.round.get().wrapping_add(1));
        self.waiting.set(0);
        self.finished.notify_waiters();
    }

    pub(super) async fn changed(&self) {
        self.finished.notified().await;
    }
}

impl Waiting {
    /// Waits until the request should try again.
    pub async fn notified(&self) {
        self.notify.changed().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // A notification has already reset the count.
        if self.round == self.notify.round.get() {
            let waiting = self.notify.waiting.get();
            self.notify.waiting.set(waiting.saturating_sub(1));
        }
    }
}
