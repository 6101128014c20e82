//! The latest results of a target, for operators.

use std::sync::atomic::{AtomicU64, Ordering};

/// The last 32 results of a target's checks, in one atomic; any thread may add one or read them.
#[derive(Debug, Default)]
pub struct RecentResults(AtomicU64);

/// Number of results kept.
pub const RECENT_RESULTS: u32 = 32;

impl RecentResults {
    /// Adds a result; with 32 the oldest is dropped.
    pub fn add(&self, passed: bool) {
        let update = |packed| {
            let (count, bits) = unpack(packed);
            let count = (count + 1).min(RECENT_RESULTS);
            Some(u64::from(count) << 32 | u64::from(bits << 1 | u32::from(passed)))
        };
        let added = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        debug_assert!(added.is_ok());
    }

    /// The results, oldest first: true for one that passed.
    pub fn iter(&self) -> impl Iterator<Item = bool> + use<> {
        let (count, bits) = unpack(self.0.load(Ordering::Relaxed));
        (0..count).rev().map(move |place| bits >> place & 1 == 1)
    }

    /// Number of results, 0 to 32.
    pub fn len(&self) -> u32 {
        unpack(self.0.load(Ordering::Relaxed)).0
    }

    /// Returns true if there are no results yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
fn unpack(packed: u64) -> (u32, u32) {
    ((packed >> 32) as u32, packed as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_32_results_are_remembered_in_order() {
        let results = RecentResults::default();
        assert!(results.is_empty());
        let all: Vec<bool> = (0..40).map(|number| number % 3 == 0).collect();
        for (before, passed) in all.iter().enumerate() {
            assert_eq!(results.len() as usize, before.min(32));
            results.add(*passed);
        }

        assert_eq!(results.iter().collect::<Vec<_>>(), all[8..]);
    }

    #[test]
    fn results_of_several_threads_are_all_counted() {
        let results = RecentResults::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..8).for_each(|_| results.add(true)));
            }
        });

        assert_eq!(results.iter().filter(|passed| *passed).count(), 32);
    }
}
