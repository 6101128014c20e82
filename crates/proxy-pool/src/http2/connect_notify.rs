//! Word of a connection that is being made, for the requests that wait for it.

use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::Notify;

/// Tells whoever waits that it is worth asking again.
#[derive(Debug, Default)]
pub(super) struct ConnectNotify {
    told: Notify,
    /// Who waits for the next word.
    waiting: Cell<usize>,
    /// Counts the words.
    round: Cell<u32>,
}

/// A request that waits for somebody else's connection.
#[derive(Debug)]
pub struct Waiting {
    notify: Rc<ConnectNotify>,
    round: u32,
}

impl ConnectNotify {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// One more waits.
    pub(super) fn wait(self: &Rc<Self>) -> Waiting {
        self.waiting.set(self.waiting.get() + 1);
        Waiting {
            round: self.round.get(),
            notify: Rc::clone(self),
        }
    }

    /// There is news.
    pub(super) fn tell(&self) {
        self.round.set(self.round.get().wrapping_add(1));
        self.waiting.set(0);
        self.told.notify_waiters();
    }

    /// Waits for news.
    pub(super) async fn changed(&self) {
        self.told.notified().await;
    }
}

impl Waiting {
    /// Waits until it is worth asking again.
    pub async fn notified(&self) {
        self.notify.changed().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Whoever was told waits no more and is not counted any more.
        if self.round == self.notify.round.get() {
            let waiting = self.notify.waiting.get();
            self.notify.waiting.set(waiting.saturating_sub(1));
        }
    }
}
