//! Keys with responses that could not be stored lately.

use std::sync::atomic::{AtomicU64, Ordering};

const PLACES: usize = 4_096;

/// Keys with responses that could not be stored lately, so that requests for them do not wait for each other. It has a
/// fixed number of places; a key may displace another one.
#[derive(Debug)]
pub(super) struct PassTable {
    /// The upper half of the hash, and the second until which it holds.
    places: Box<[AtomicU64]>,
}

impl Default for PassTable {
    fn default() -> Self {
        Self {
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl PassTable {
    pub(super) fn insert(&self, hash: u64, until: u64) {
        if let Some(place) = self.place(hash) {
            place.store(entry(hash, until), Ordering::Relaxed);
        }
    }

    pub(super) fn has(&self, hash: u64, now: u64) -> bool {
        let held = self
            .place(hash)
            .map_or(0, |place| place.load(Ordering::Relaxed));
        let is_same = held >> 32 == hash >> 32;
        is_same && low(held) > low(now)
    }

    pub(super) fn remove(&self, hash: u64) {
        if let Some(place) = self.place(hash)
            && place.load(Ordering::Relaxed) >> 32 == hash >> 32
        {
            place.store(0, Ordering::Relaxed);
        }
    }

    fn place(&self, hash: u64) -> Option<&AtomicU64> {
        let position = usize::try_from(low(hash)).ok()?;
        self.places.get(position % PLACES)
    }
}

fn low(word: u64) -> u64 {
    word & u64::from(u32::MAX)
}

fn entry(hash: u64, until: u64) -> u64 {
    ((hash >> 32) << 32) | low(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_passes_until_its_second() {
        let table = PassTable::default();
        let hash = 0xdead_beef_0000_0001;
        table.insert(hash, 100);
        assert!(table.has(hash, 99));
        assert!(!table.has(hash, 100));
        assert!(!table.has(hash ^ (1 << 40), 99));
        table.remove(hash);
        assert!(!table.has(hash, 99));
    }
}
