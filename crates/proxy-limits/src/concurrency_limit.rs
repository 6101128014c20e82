//! A counter with a maximum; permits release their unit on drop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Limits the number of concurrent units over all threads.
///
/// The maximum may change while units are held: a lower one revokes none, and refuses new ones
/// until enough are released.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit(Arc<Count>);

// On a cache line of its own, because all workers write it.
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
    /// The maximum.
    pub max: u32,
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
        let held = self.0.held.fetch_add(1, Ordering::Relaxed);
        let max = self.0.max.load(Ordering::Relaxed);
        if max <= held {
            self.0.held.fetch_sub(1, Ordering::Relaxed);
            return Err(LimitReached { held, max });
        }
        Ok(Permit(Arc::clone(&self.0)))
    }

    /// Units held now.
    pub fn held(&self) -> u32 {
        self.0.held.load(Ordering::Relaxed)
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

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_permit_makes_room() {
        let gauge = ConcurrencyLimit::new(1);

        let permit = gauge.acquire().unwrap();
        assert_eq!(
            gauge.acquire().unwrap_err(),
            LimitReached { held: 1, max: 1 }
        );
        drop(permit);
        assert!(gauge.acquire().is_ok());
    }

    #[test]
    fn a_lower_ceiling_takes_nothing_away_but_refuses_newcomers() {
        let gauge = ConcurrencyLimit::new(3);
        let held: Vec<_> = (0..3).map(|_| gauge.acquire().unwrap()).collect();

        gauge.set_max(1);
        assert_eq!(gauge.held(), 3);
        assert!(gauge.acquire().is_err());
        drop(held);
        assert!(gauge.acquire().is_ok());
    }
}
