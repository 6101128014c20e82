//! Single numbers: a counter and a gauge for one writer, and a counter for many.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only increases, written by one thread.
///
/// If two threads add at once, counts are lost; there is no other harm.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

/// A number that increases and decreases; one thread may call `add` and `sub`, any thread `set`.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

/// A number that only increases, written by any thread; for rare events.
#[derive(Debug, Default)]
pub struct SharedCounter(AtomicU64);

impl Counter {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        let seen = self.0.load(Ordering::Relaxed);
        self.0.store(seen.wrapping_add(n), Ordering::Relaxed);
    }

    /// Sum so far.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Gauge {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        let seen = self.0.load(Ordering::Relaxed);
        self.0.store(seen.wrapping_add(n), Ordering::Relaxed);
    }

    /// Subtracts `n`. A value below zero reads as zero.
    #[inline]
    pub fn sub(&self, n: u64) {
        let seen = self.0.load(Ordering::Relaxed);
        self.0.store(seen.wrapping_sub(n), Ordering::Relaxed);
    }

    /// Sets the value to `n`.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        let number = self.0.load(Ordering::Relaxed).cast_signed();
        u64::try_from(number).unwrap_or_default()
    }
}

impl SharedCounter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Raises the value to at least `n`, for a count that is kept elsewhere and copied here.
    pub fn raise_to(&self, n: u64) {
        self.0.fetch_max(n, Ordering::Relaxed);
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_below_zero_reads_as_zero() {
        let gauge = Gauge::default();
        gauge.add(1);
        gauge.sub(3);
        assert_eq!(gauge.get(), 0);

        gauge.add(5);
        assert_eq!(gauge.get(), 3);
    }

    #[test]
    fn a_copied_count_never_falls() {
        let counter = SharedCounter::default();
        counter.raise_to(7);
        counter.raise_to(3);

        assert_eq!(counter.get(), 7);
    }
}
