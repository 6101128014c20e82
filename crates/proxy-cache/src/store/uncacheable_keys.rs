//! Keys of responses that recently could not be stored ("hit-for-miss" in Varnish).

use std::sync::atomic::{AtomicU64, Ordering};

const MAX_ENTRIES: usize = 4_096;

/// Keys of responses that recently could not be stored, so that requests for them are not
/// collapsed. Its size is fixed: a key may displace another one.
#[derive(Debug)]
pub(super) struct UncacheableKeys {
    /// The upper half of a key's hash, and the second until which the entry is valid.
    entries: Box<[AtomicU64]>,
}

impl Default for UncacheableKeys {
    fn default() -> Self {
        Self {
            entries: (0..MAX_ENTRIES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl UncacheableKeys {
    pub(super) fn insert(&self, hash: u64, until: u64) {
        if let Some(entry) = self.entry(hash) {
            entry.store(packed(hash, until), Ordering::Relaxed);
        }
    }

    pub(super) fn contains(&self, hash: u64, now: u64) -> bool {
        let held = self
            .entry(hash)
            .map_or(0, |entry| entry.load(Ordering::Relaxed));
        let is_same = held >> 32 == hash >> 32;
        is_same && low(held) > low(now)
    }

    pub(super) fn remove(&self, hash: u64) {
        if let Some(entry) = self.entry(hash)
            && entry.load(Ordering::Relaxed) >> 32 == hash >> 32
        {
            entry.store(0, Ordering::Relaxed);
        }
    }

    fn entry(&self, hash: u64) -> Option<&AtomicU64> {
        let position = usize::try_from(low(hash)).ok()?;
        self.entries.get(position % MAX_ENTRIES)
    }
}

fn low(word: u64) -> u64 {
    word & u64::from(u32::MAX)
}

fn packed(hash: u64, until: u64) -> u64 {
    ((hash >> 32) << 32) | low(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_uncacheable_until_its_entry_expires() {
        let table = UncacheableKeys::default();
        let hash = 0xdead_beef_0000_0001;
        table.insert(hash, 100);
        assert!(table.contains(hash, 99));
        assert!(!table.contains(hash, 100));
        assert!(!table.contains(hash ^ (1 << 40), 99));
        table.remove(hash);
        assert!(!table.contains(hash, 99));
    }
}
