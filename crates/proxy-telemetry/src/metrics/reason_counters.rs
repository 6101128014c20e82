//! Counters by a small key, if few of the possible keys occur.

use super::cell::Counter;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Width of the count in the low bits of a slot: enough for a century at 60 000 per second.
const COUNT_BITS: u32 = 48;

/// The first `N` distinct keys have a slot each; further ones are counted together.
///
/// A slot is one word, key above count, so that a reader never sees one without the other. Slots
/// are ordered by the first occurrence of their keys, which puts common ones first; a search rarely
/// passes the first slot.
#[derive(Debug)]
pub(crate) struct ReasonCounters<const N: usize> {
    slots: [AtomicU64; N],
    other: Counter,
}

/// The sum over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReasonTotals {
    pub(crate) by_key: BTreeMap<u16, u64>,
    pub(crate) other: u64,
}

impl<const N: usize> Default for ReasonCounters<N> {
    fn default() -> Self {
        Self {
            slots: [const { AtomicU64::new(0) }; N],
            other: Counter::default(),
        }
    }
}

impl<const N: usize> ReasonCounters<N> {
    /// Counts one occurrence of `key`.
    #[inline]
    pub(crate) fn add(&self, key: u16) {
        let key = u64::from(key);
        if let Some(first) = self.slots.first() {
            let word = first.load(Ordering::Relaxed);
            if word >> COUNT_BITS == key {
                first.store(word + 1, Ordering::Relaxed);
                return;
            }
        }
        self.add_later(key);
    }

    /// Counts a key that is not in the first slot. A separate function, to keep the common path
    /// small.
    #[inline(never)]
    fn add_later(&self, key: u64) {
        for slot in &self.slots {
            let word = slot.load(Ordering::Relaxed);
            if word >> COUNT_BITS == key {
                slot.store(word + 1, Ordering::Relaxed);
                return;
            }
            if word == 0 {
                slot.store(key << COUNT_BITS | 1, Ordering::Relaxed);
                return;
            }
        }
        self.other.add(1);
    }

    pub(crate) fn add_to(&self, total: &mut ReasonTotals) {
        for slot in &self.slots {
            let word = slot.load(Ordering::Relaxed);
            let key = u16::try_from(word >> COUNT_BITS).unwrap_or_default();
            let count = word & ((1 << COUNT_BITS) - 1);
            if count > 0 {
                *total.by_key.entry(key).or_default() += count;
            }
        }
        total.other += self.other.get();
    }
}

impl ReasonTotals {
    pub(crate) fn sum(&self) -> u64 {
        self.by_key.values().sum::<u64>() + self.other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total<const N: usize>(tally: &ReasonCounters<N>) -> ReasonTotals {
        let mut total = ReasonTotals::default();
        tally.add_to(&mut total);
        total
    }

    #[test]
    fn each_key_has_its_own_count() {
        let tally = ReasonCounters::<3>::default();
        for key in [200, 0, 200, 65535, 0, 200] {
            tally.add(key);
        }

        let total = total(&tally);

        assert_eq!(total.by_key, BTreeMap::from([(0, 2), (200, 3), (65535, 1)]));
        assert_eq!((total.other, total.sum()), (0, 6));
    }

    #[test]
    fn keys_beyond_the_slots_are_counted_together() {
        let tally = ReasonCounters::<2>::default();
        for key in [200, 404, 500, 501, 200] {
            tally.add(key);
        }

        let total = total(&tally);

        assert_eq!(total.by_key, BTreeMap::from([(200, 2), (404, 1)]));
        assert_eq!(total.other, 2);
    }
}
