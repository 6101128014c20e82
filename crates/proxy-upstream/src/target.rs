//! What all workers know of one target.

use arc_swap::{ArcSwap, ArcSwapOption};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::SystemTime;

/// The state of one target, shared by all workers and kept over reloads while upstream, address and
/// settings stay the same. Written by the control thread, read by workers.
#[derive(Debug, Default)]
pub struct TargetState {
    addresses: ArcSwap<Vec<SocketAddr>>,
    addresses_generation: AtomicU32,
    turn: AtomicUsize,
    unhealthy: AtomicBool,
    unhealthy_reason: ArcSwapOption<Unhealthy>,
}

/// Why and since when a target is not called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    /// The last failure, for operators.
    pub last_error: String,
    /// When the target became unhealthy.
    pub since: SystemTime,
}

impl TargetState {
    /// A healthy target at `addresses`.
    #[must_use]
    pub fn at(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses: ArcSwap::from_pointee(addresses),
            ..Self::default()
        }
    }

    /// Whether the target may be called.
    #[inline]
    pub fn is_healthy(&self) -> bool {
        !self.unhealthy.load(Ordering::Acquire)
    }

    /// The addresses its name stands for, in the order to try. Empty until it was first resolved.
    pub fn addresses(&self) -> Arc<Vec<SocketAddr>> {
        self.addresses.load_full()
    }

    /// A number that is one more each time: which of the addresses a new connection begins with, modulo
    /// how many there are.
    pub fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// Changes with the addresses: a connection made under another generation is not used again.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.addresses_generation.load(Ordering::Acquire)
    }

    /// Puts new addresses in force. Says whether they differ from those before.
    pub fn resolve(&self, addresses: Vec<SocketAddr>) -> bool {
        if **self.addresses.load() == addresses {
            return false;
        }
        self.addresses.store(Arc::new(addresses));
        self.addresses_generation.fetch_add(1, Ordering::Release);
        true
    }

    /// Marks the target as not to be called. The first failure's time is kept.
    pub fn fail(&self, last_error: String, now: SystemTime) {
        let since = self
            .unhealthy_reason()
            .map_or(now, |unhealthy_reason| unhealthy_reason.since);
        let unhealthy_reason = Unhealthy { last_error, since };
        self.unhealthy_reason
            .store(Some(Arc::new(unhealthy_reason)));
        self.unhealthy.store(true, Ordering::Release);
    }

    /// Marks the target as well again.
    pub fn recover(&self) {
        self.unhealthy.store(false, Ordering::Release);
        self.unhealthy_reason.store(None);
    }

    /// Why the target is not called, if it is not.
    pub fn unhealthy_reason(&self) -> Option<Arc<Unhealthy>> {
        self.unhealthy_reason.load_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_failing_target_keeps_the_time_of_its_first_failure() {
        let target = TargetState::default();
        let (first, later) = (SystemTime::UNIX_EPOCH, Duration::from_secs(5));
        target.fail("refused".to_owned(), first);
        target.fail("timed out".to_owned(), first + later);

        let unhealthy_reason = target.unhealthy_reason().unwrap();
        assert_eq!(
            (unhealthy_reason.last_error.as_str(), unhealthy_reason.since),
            ("timed out", first)
        );
        assert!(!target.is_healthy());

        target.recover();
        assert!(target.is_healthy() && target.unhealthy_reason().is_none());
    }

    #[test]
    fn the_same_addresses_again_change_nothing() {
        let one: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let target = TargetState::at(vec![one]);

        assert!(!target.resolve(vec![one]));
        assert_eq!(target.generation(), 0);
        assert!(target.resolve(vec![]));
        assert_eq!(target.generation(), 1);
    }
}
