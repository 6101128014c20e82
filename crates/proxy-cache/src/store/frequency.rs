//! Frequencies of keys: a count-min sketch with counters that are halved at intervals.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Maximum count of a key.
const MAX_COUNT: u8 = 15;
/// Number of counters of a key.
const ROWS: u64 = 4;
/// Number of counted requests, as a multiple of the number of counters, at which all counters are
/// halved.
const COUNTS_PER_COUNTER: u64 = 10;

/// Estimates of the number of requests for each key. An estimate is at least the number since the
/// last halving, and seldom above it. Concurrent counts may be lost.
#[derive(Debug)]
pub(super) struct FrequencySketch {
    counters: Box<[AtomicU8]>,
    counted: AtomicU64,
}

impl FrequencySketch {
    /// A sketch with a counter for each 4 KiB of `max_bytes`.
    pub(super) fn for_bytes(max_bytes: u64) -> Self {
        let counters = (max_bytes / 4_096)
            .clamp(4_096, 1 << 20)
            .next_power_of_two();
        Self {
            counters: (0..counters).map(|_| AtomicU8::new(0)).collect(),
            counted: AtomicU64::new(0),
        }
    }

    /// Counts a request for the key with this hash.
    pub(super) fn count(&self, hash: u64) {
        for counter in self.counters_of(hash) {
            let count = counter.load(Ordering::Relaxed);
            if count < MAX_COUNT {
                counter.store(count + 1, Ordering::Relaxed);
            }
        }
        let counted = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        // Only the thread that counts exactly this request halves: other threads may count more before
        // the reset, and must not halve as well.
        if counted == self.halving_threshold() {
            self.halve();
            self.counted.store(0, Ordering::Relaxed);
        }
    }

    /// The estimated number of requests for the key with this hash since the last halving, plus
    /// half of the estimate before it; at most 15. Keys that share counters only raise it: the
    /// estimate is the lowest of the key's counters.
    pub(super) fn estimate(&self, hash: u64) -> u8 {
        let counts = self
            .counters_of(hash)
            .map(|counter| counter.load(Ordering::Relaxed));
        counts.min().unwrap_or_default()
    }

    /// Number of counted requests at which all counters are halved.
    fn halving_threshold(&self) -> u64 {
        self.counters.len() as u64 * COUNTS_PER_COUNTER
    }

    fn halve(&self) {
        for counter in &self.counters {
            let count = counter.load(Ordering::Relaxed);
            if count > 0 {
                counter.store(count / 2, Ordering::Relaxed);
            }
        }
    }

    fn counters_of(&self, hash: u64) -> impl Iterator<Item = &AtomicU8> {
        let mask = self.counters.len() as u64 - 1;
        let step = (hash >> 32) | 1;
        (0..ROWS).filter_map(move |row| {
            let at = hash.wrapping_add(step.wrapping_mul(row)) & mask;
            self.counters.get(usize::try_from(at).ok()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_by_key_and_halved() {
        let sketch = FrequencySketch::for_bytes(0);
        let key = 0x1234_5678_9abc_def0;
        for _ in 0..10 {
            sketch.count(key);
        }
        assert_eq!(sketch.estimate(key), 10);
        assert_eq!(sketch.estimate(key ^ 0xffff_0000_ffff), 0);

        sketch.halve();
        assert_eq!(sketch.estimate(key), 5);
        for _ in 0..100 {
            sketch.count(key);
        }
        assert_eq!(sketch.estimate(key), 15);
    }

    #[test]
    fn only_the_count_that_reaches_the_threshold_halves() {
        let sketch = FrequencySketch::for_bytes(0);
        let key = 0x1234_5678_9abc_def0;
        for _ in 0..11 {
            sketch.count(key);
        }
        let threshold = sketch.halving_threshold();
        // Another thread has reached the threshold, and has not reset the count yet.
        sketch.counted.store(threshold, Ordering::Relaxed);
        sketch.count(key);
        assert_eq!(sketch.estimate(key), 12, "not halved a second time");

        sketch.counted.store(threshold - 1, Ordering::Relaxed);
        sketch.count(key);
        assert_eq!(sketch.estimate(key), 6);
        assert_eq!(sketch.counted.load(Ordering::Relaxed), 0);
    }
}
