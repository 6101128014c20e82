//! A limit on idle connections, shared by the pools of all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The maximum number of idle connections to the targets that share the limit, over all workers.
/// Clones share the limit.
#[derive(Clone, Debug)]
pub struct IdleLimit(Arc<Idle>);

#[derive(Debug)]
struct Idle {
    held: AtomicU32,
    max: AtomicU32,
}

/// One pool's permits of a limit. They are kept while connections are opened and closed, and
/// released with [`Self::shrink`], so that requests with an available idle connection access no
/// shared memory.
#[derive(Debug)]
pub(crate) struct IdleShare {
    limit: IdleLimit,
    held: u32,
}

impl IdleLimit {
    /// A limit of `max` connections; 0 keeps none.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self(Arc::new(Idle {
            held: AtomicU32::new(0),
            max: AtomicU32::new(max),
        }))
    }

    /// Sets the maximum. After a reduction, connections are closed within a second.
    pub fn set_max(&self, max: u32) {
        self.0.max.store(max, Ordering::Relaxed);
    }

    /// Returns true if both are clones of one limit.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Number of permits that pools hold for idle connections.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.0.held.load(Ordering::Relaxed)
    }

    fn is_exceeded(&self) -> bool {
        let Idle { held, max } = &*self.0;
        max.load(Ordering::Relaxed) < held.load(Ordering::Relaxed)
    }
}

impl IdleShare {
    pub(crate) fn new(limit: &IdleLimit) -> Self {
        Self {
            limit: limit.clone(),
            held: 0,
        }
    }

    pub(crate) fn is_of(&self, limit: &IdleLimit) -> bool {
        self.limit.is_same(limit)
    }

    /// Returns true if there are permits for `idle` connections.
    #[inline]
    pub(crate) fn covers(&mut self, idle: usize) -> bool {
        idle <= self.held as usize || self.grow(idle)
    }

    #[cold]
    fn grow(&mut self, idle: usize) -> bool {
        let Idle { held, max } = &*self.limit.0;
        while (self.held as usize) < idle {
            let max = max.load(Ordering::Relaxed);
            let one_more = |held| (held < max).then_some(held + 1);
            let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
            if taken.is_err() {
                return false;
            }
            self.held += 1;
        }
        true
    }

    /// Releases the permits beyond `idle`, and more while the limit is exceeded. Returns the
    /// permitted number of connections.
    pub(crate) fn shrink(&mut self, idle: usize) -> usize {
        let unused = self
            .held
            .saturating_sub(u32::try_from(idle).unwrap_or(u32::MAX));
        self.release(unused);
        while self.limit.is_exceeded() && self.held > 0 {
            self.release(1);
        }
        self.held as usize
    }

    fn release(&mut self, permits: u32) {
        self.limit.0.held.fetch_sub(permits, Ordering::Relaxed);
        self.held -= permits;
    }
}

impl Drop for IdleShare {
    fn drop(&mut self) {
        self.release(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pools_together_keep_no_more_than_the_limit() {
        let limit = IdleLimit::new(3);
        let [mut one, mut other] = [0, 1].map(|_| IdleShare::new(&limit));

        assert!(one.covers(2) && other.covers(1));
        assert!(!one.covers(3) && !other.covers(2));
        assert_eq!(one.shrink(1), 1);
        assert!(other.covers(2), "a released permit is free at once");
        drop(other);
        assert!(one.covers(3));
    }

    #[test]
    fn a_lowered_limit_shrinks_the_share_of_a_worker() {
        let limit = IdleLimit::new(3);
        let mut share = IdleShare::new(&limit);
        assert!(share.covers(3));

        limit.set_max(1);

        assert_eq!(share.shrink(3), 1);
        assert!(!share.covers(2));
    }
}
