//! A counter with a maximum; permits release their unit on drop.

use crate::fair_shares::Occupancy;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Limits the number of concurrent units over all threads.
///
/// The maximum may change while units are held: a lower one revokes none, and refuses new ones
/// until enough are released.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit(Arc<Count>);

// On a separate cache line, because all workers write it.
#[derive(Debug)]
#[repr(align(64))]
struct Count {
    held: AtomicU32,
    max: AtomicU32,
}

/// One unit of a [`ConcurrencyLimit`], released on drop.
#[derive(Debug)]
pub struct Permit(Arc<Count>);

/// The maximum is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{held} held, {max} allowed")]
pub struct LimitReached {
    /// Units held at the time of the request.
    pub held: u32,
    /// Configured maximum.
    pub max: u32,
}

impl LimitReached {
    /// The number that would be held if the refused unit had been given: more than the maximum.
    #[must_use]
    pub const fn wanted(self) -> u32 {
        self.held.saturating_add(1)
    }
}

impl ConcurrencyLimit {
    /// An unused limit of `max` units.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self(Arc::new(Count {
            held: AtomicU32::new(0),
            max: AtomicU32::new(max),
        }))
    }

    /// Takes one unit.
    ///
    /// # Errors
    /// [`LimitReached`] at the maximum.
    #[inline]
    pub fn acquire(&self) -> Result<Permit, LimitReached> {
        self.acquire_after().map(|(permit, _)| permit)
    }

    /// Takes one unit, with the occupancy before it.
    #[inline]
    pub(crate) fn acquire_after(&self) -> Result<(Permit, Occupancy), LimitReached> {
        let before = self.enter()?;
        Ok((Permit(Arc::clone(&self.0)), before))
    }

    /// Takes one unit, to be released by [`Self::leave`]: for an owner that holds the limit itself
    /// and needs no permit. Returns the occupancy before it.
    ///
    /// # Errors
    /// [`LimitReached`] when the ceiling is reached.
    #[inline]
    pub fn enter(&self) -> Result<Occupancy, LimitReached> {
        let held = self.0.held.fetch_add(1, Ordering::SeqCst);
        let max = self.0.max.load(Ordering::Relaxed);
        if max <= held {
            self.0.held.fetch_sub(1, Ordering::SeqCst);
            return Err(LimitReached { held, max });
        }
        Ok(Occupancy { held, max })
    }

    /// Releases one unit taken by [`Self::enter`].
    #[inline]
    pub fn leave(&self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
    }

    /// Number of units held. Changes and readings of several limits have one order for all threads:
    /// of two threads that each change one limit and then read another, at least one sees the
    /// other's change.
    #[inline]
    pub fn held(&self) -> u32 {
        self.0.held.load(Ordering::SeqCst)
    }

    /// The maximum.
    pub fn max(&self) -> u32 {
        self.0.max.load(Ordering::Relaxed)
    }

    /// Sets the maximum for later acquisitions.
    pub fn set_max(&self, max: u32) {
        self.0.max.store(max, Ordering::Relaxed);
    }
}

impl Permit {
    /// Returns true if the permit is a unit of `limit`.
    #[must_use]
    pub fn is_of(&self, limit: &ConcurrencyLimit) -> bool {
        Arc::ptr_eq(&self.0, &limit.0)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_permit_makes_room() {
        let limit = ConcurrencyLimit::new(1);

        let permit = limit.acquire().unwrap();
        assert_eq!(
            limit.acquire().unwrap_err(),
            LimitReached { held: 1, max: 1 }
        );
        drop(permit);
        assert!(limit.acquire().is_ok());
    }

    #[test]
    fn a_lowered_limit_keeps_open_connections_and_refuses_new_ones() {
        let limit = ConcurrencyLimit::new(3);
        let held: Vec<_> = (0..3).map(|_| limit.acquire().unwrap()).collect();

        limit.set_max(1);
        assert_eq!(limit.held(), 3);
        assert!(limit.acquire().is_err());
        drop(held);
        assert!(limit.acquire().is_ok());
    }
}
