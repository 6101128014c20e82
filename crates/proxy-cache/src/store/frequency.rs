//! Frequencies of keys: a count-min sketch that is halved from time to time.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Maximum count of a key.
const MAX_COUNT: u8 = 15;
/// Number of counters of a key.
const ROWS: u64 = 4;
/// Counted requests per counter of the sketch after which all counters are halved.
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
        let counted = self.counted.fetch_add(1, Ordering::Relaxed);
        if counted >= self.counters.len() as u64 * COUNTS_PER_COUNTER {
            self.halve();
        }
    }

    /// The estimated number of recent requests for the key with this hash, at most 15.
    pub(super) fn estimate(&self, hash: u64) -> u8 {
        let counts = self
            .counters_of(hash)
            .map(|counter| counter.load(Ordering::Relaxed));
        counts.min().unwrap_or_default()
    }

    fn halve(&self) {
        // Only the thread that resets the count halves.
        if self.counted.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
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
}
