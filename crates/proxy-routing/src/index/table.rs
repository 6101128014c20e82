//! An immutable hash table with lookups by a computed hash.

const EMPTY_SLOT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    tag: u32,
    id: u32,
}

/// Maps hashes to ids. At most half of the slots are used, so that a search ends soon.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
}

impl Table {
    /// A table of the `hashes`; the ids are their indexes.
    pub(super) fn new(hashes: &[u64]) -> Self {
        if hashes.is_empty() {
            return Self::default();
        }
        let free = Slot {
            tag: 0,
            id: EMPTY_SLOT,
        };
        let mut table = Self {
            slots: vec![free; (2 * hashes.len()).next_power_of_two()],
        };
        for (id, hash) in (0..EMPTY_SLOT).zip(hashes) {
            table.insert(*hash, id);
        }
        table
    }

    fn insert(&mut self, hash: u64, id: u32) {
        let mut at = self.first_slot(hash);
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.id == EMPTY_SLOT {
                *slot = Slot { tag: tag(hash), id };
                return;
            }
            at = self.next_slot(at);
        }
    }

    /// The id stored for `hash` that `is_it` accepts, because two keys may share a hash.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.first_slot(hash);
        loop {
            let slot = self.slots.get(at)?;
            if slot.id == EMPTY_SLOT {
                return None;
            }
            if slot.tag == tag(hash) && is_it(slot.id) {
                return Some(slot.id);
            }
            at = self.next_slot(at);
        }
    }

    fn first_slot(&self, hash: u64) -> usize {
        usize::try_from(hash & 0xFFFF_FFFF).unwrap_or_default() & self.slots.len().wrapping_sub(1)
    }

    fn next_slot(&self, at: usize) -> usize {
        (at + 1) & self.slots.len().wrapping_sub(1)
    }
}

fn tag(hash: u64) -> u32 {
    u32::try_from(hash >> 32).unwrap_or_default()
}
