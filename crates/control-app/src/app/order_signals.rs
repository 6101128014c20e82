//! Wakes the long polls of nodes that have a new order.
//!
//! Each replica reads new orders once a second through an index: one statement for both databases,
//! with a cost independent of the number of waiting nodes. PostgreSQL's `LISTEN` would need a
//! separate connection, and this poll as well for lost messages.

use crate::error::Error;
use control_wire::NodeId;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Number of signals, each shared by many nodes: a node woken without an order waits again.
const SIGNALS: u64 = 1_024;
/// Maximum number of long polls per replica.
const MAX_WAITERS: usize = 25_000;
/// Value of `seen` before the first read of the audit log.
const NOTHING_SEEN: i64 = -1;

#[derive(Debug)]
pub(crate) struct OrderSignals {
    signals: Vec<watch::Sender<()>>,
    permits: Arc<Semaphore>,
    closed: AtomicBool,
    seen: AtomicI64,
}

/// One long poll; releases its permit when dropped.
#[derive(Debug)]
pub(crate) struct OrderWaiter<'a> {
    signals: &'a OrderSignals,
    signal: watch::Receiver<()>,
    _permit: OwnedSemaphorePermit,
}

impl Default for OrderSignals {
    fn default() -> Self {
        Self {
            signals: (0..SIGNALS).map(|_| watch::Sender::new(())).collect(),
            permits: Arc::new(Semaphore::new(MAX_WAITERS)),
            closed: AtomicBool::new(false),
            seen: AtomicI64::new(NOTHING_SEEN),
        }
    }
}

impl OrderSignals {
    /// Subscribes to orders for `node` from now on.
    pub(crate) fn subscribe(&self, node: NodeId) -> Result<OrderWaiter<'_>, Error> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| Error::TooManyWaiters)?;
        let signal = self.signal(node).ok_or(Error::TooManyWaiters)?;
        Ok(OrderWaiter {
            signals: self,
            signal: signal.subscribe(),
            _permit: permit,
        })
    }

    /// Number of long polls that wait now.
    pub(crate) fn waiting(&self) -> usize {
        MAX_WAITERS.saturating_sub(self.permits.available_permits())
    }

    /// Wakes the tasks that wait for orders to `nodes`.
    pub(crate) fn wake(&self, nodes: &[NodeId]) {
        for signal in nodes.iter().filter_map(|node| self.signal(*node)) {
            signal.send_replace(());
        }
    }

    pub(crate) fn wake_all(&self) {
        for signal in &self.signals {
            signal.send_replace(());
        }
    }

    /// Ends current and later waits, when the program stops.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Orders are announced up to this audit entry; `None` before the first read.
    pub(crate) fn seen(&self) -> Option<i64> {
        let seen = self.seen.load(Ordering::Relaxed);
        (seen != NOTHING_SEEN).then_some(seen)
    }

    pub(crate) fn set_seen(&self, seq: i64) {
        self.seen.fetch_max(seq, Ordering::Relaxed);
    }

    fn signal(&self, node: NodeId) -> Option<&watch::Sender<()>> {
        let mut hasher = DefaultHasher::new();
        node.hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % SIGNALS).ok()?;
        self.signals.get(index)
    }
}

impl OrderWaiter<'_> {
    /// Waits for a signal; returns false if the program stops.
    pub(crate) async fn wait(&mut self) -> bool {
        let open = || !self.signals.closed.load(Ordering::SeqCst);
        open() && self.signal.changed().await.is_ok() && open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_above_the_maximum_are_refused() {
        let (signals, node) = (OrderSignals::default(), NodeId(uuid::Uuid::nil()));
        let others = u32::try_from(MAX_WAITERS - 1).unwrap();
        let others = Arc::clone(&signals.permits).try_acquire_many_owned(others);
        let last = signals.subscribe(node).unwrap();
        assert_eq!(signals.waiting(), MAX_WAITERS);
        let refused = signals.subscribe(node);
        assert!(matches!(refused, Err(Error::TooManyWaiters)));
        drop(last);
        assert!(signals.subscribe(node).is_ok(), "the permit is released");
        drop(others);
    }
}
