//! A part of the store, under one lock.

use super::fill_state::FillState;
use super::results::{Found, Purged};
use crate::cache_key::CacheKey;
use crate::clock_reading::ClockReading;
use crate::stored_response::StoredResponse;
use crate::storing::has_credentials;
use crate::vary::Variant;
use http::HeaderMap;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of responses of one URL, over all routes and variants.
const MAX_PER_URL: usize = 64;
/// Memory of a slot besides key, variant and response.
const BYTES_PER_SLOT: usize = 192;

/// A part of the store.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Position of the hand of the CLOCK eviction.
    hand: usize,
    by_url: HashMap<u64, Vec<usize>>,
    fills: HashMap<FillKey, Arc<FillState>>,
    used: usize,
    count: usize,
}

#[derive(Debug)]
pub(crate) struct Slot {
    pub(super) url_hash: u64,
    /// The hash that the uses of the key are counted under.
    pub(super) use_hash: u64,
    pub(super) key: Arc<CacheKey>,
    pub(super) response: Arc<StoredResponse>,
    pub(super) bytes: usize,
    /// Used since the hand passed it, so not evicted in this round.
    pub(super) is_used: bool,
}

/// The identity of a fill: the hash of its URL, and a hash of all else that its response depends
/// on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FillKey {
    pub(super) url: u64,
    pub(super) rest: u64,
}

/// The effect of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inserted {
    pub(super) is_stored: bool,
    pub(super) evicted: u64,
}

impl FillKey {
    /// The hash of the key, for the table of uncacheable keys.
    pub(super) const fn combined_hash(self) -> u64 {
        self.url ^ self.rest
    }
}

impl Slot {
    /// Bytes of a slot without its response.
    pub(super) fn own_bytes(key: &CacheKey, variant: &Variant) -> usize {
        BYTES_PER_SLOT + key.bytes() + variant.bytes()
    }
}

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn find(&mut self, hash: u64, key: &CacheKey, request: &HeaderMap) -> Found {
        let mut found = Found::default();
        let mut newest = None;
        for &position in self.by_url.get(&hash).map_or(&[][..], Vec::as_slice) {
            let Some(Some(slot)) = self.slots.get(position) else {
                continue;
            };
            if *slot.key != *key || slot.response.freshness.is_default && has_credentials(request) {
                continue;
            }
            if !slot.response.variant.matches(request) {
                found.has_other_variants = true;
                continue;
            }
            let received_at = slot.response.freshness.received_at.monotonic;
            if newest.is_none_or(|(at, _)| at <= received_at) {
                newest = Some((received_at, position));
            }
        }
        let position = newest.map(|(_, position)| position);
        if let Some(Some(slot)) = position.and_then(|position| self.slots.get_mut(position)) {
            slot.is_used = true;
            found.response = Some(Arc::clone(&slot.response));
        }
        found
    }

    /// The variant of a stored response of `key`: the next response probably has the same `Vary`.
    pub(super) fn known_variant(&self, hash: u64, key: &CacheKey) -> Option<&Variant> {
        let positions = self.by_url.get(&hash)?.iter().rev();
        let slots = positions.filter_map(|position| self.slots.get(*position)?.as_ref());
        let mut same = slots.filter(|slot| *slot.key == *key);
        same.next().map(|slot| &slot.response.variant)
    }

    pub(super) fn fill(&self, at: FillKey) -> Option<Arc<FillState>> {
        self.fills.get(&at).map(Arc::clone)
    }

    pub(super) fn begin_fill(&mut self, at: FillKey, state: Arc<FillState>) {
        self.fills.insert(at, state);
    }

    pub(super) fn end_fill(&mut self, at: FillKey, state: &Arc<FillState>) {
        let is_same = |known: &Arc<FillState>| Arc::ptr_eq(known, state);
        if self.fills.get(&at).is_some_and(is_same) {
            self.fills.remove(&at);
        }
    }

    /// Cancels the fills of a URL: their responses are not stored, and later requests do not join
    /// them.
    pub(super) fn cancel_fills(&mut self, url: u64) {
        self.fills.retain(|at, state| {
            let is_cancelled = at.url == url;
            if is_cancelled {
                state.cancel();
            }
            !is_cancelled
        });
    }

    pub(super) fn remove_url(&mut self, hash: u64, url: &str) -> Purged {
        let mut purged = Purged::default();
        let positions = self.by_url.get(&hash).cloned().unwrap_or_default();
        for position in positions {
            let slot = self.slots.get(position).and_then(Option::as_ref);
            if slot.is_some_and(|slot| *slot.key.url == *url) {
                self.remove(position, &mut purged);
            }
        }
        purged
    }

    pub(super) fn remove_where(&mut self, is_purged: impl Fn(&Slot) -> bool) -> Purged {
        for state in self.fills.values() {
            state.cancel();
        }
        self.fills.clear();
        let mut purged = Purged::default();
        for position in 0..self.slots.len() {
            let slot = self.slots.get(position).and_then(Option::as_ref);
            if slot.is_some_and(&is_purged) {
                self.remove(position, &mut purged);
            }
        }
        purged
    }

    /// Stores `slot` within `max_bytes`, in place of the same variant. `uses` estimates the number
    /// of recent requests that were counted under a hash.
    pub(super) fn insert(
        &mut self,
        slot: Slot,
        max_bytes: usize,
        now: ClockReading,
        uses: impl Fn(u64) -> u8,
    ) -> Inserted {
        let mut replaced = Purged::default();
        self.remove_same(&slot, &mut replaced);
        if self.is_crowded_out(&slot) {
            return Inserted {
                is_stored: false,
                evicted: 0,
            };
        }
        let own_uses = uses(slot.use_hash);
        let mut evicted = Purged::default();
        while self.used.saturating_add(slot.bytes) > max_bytes {
            let Some((position, victim)) = self.victim() else {
                break;
            };
            let is_expired = victim.response.freshness.is_expired(now);
            // The replaced response was admitted before.
            let is_admitted =
                replaced.objects > 0 || is_expired || own_uses > uses(victim.use_hash);
            if !is_admitted {
                return Inserted {
                    is_stored: false,
                    evicted: evicted.objects,
                };
            }
            self.remove(position, &mut evicted);
        }
        let is_stored = self.used.saturating_add(slot.bytes) <= max_bytes;
        if is_stored {
            self.remove_surplus(slot.url_hash);
            self.insert_slot(slot);
        }
        Inserted {
            is_stored,
            evicted: evicted.objects,
        }
    }

    /// Removes the response that `slot` replaces.
    fn remove_same(&mut self, slot: &Slot, replaced: &mut Purged) {
        let positions = self.by_url.get(&slot.url_hash).cloned().unwrap_or_default();
        for position in positions {
            let known = self.slots.get(position).and_then(Option::as_ref);
            let is_same = |known: &Slot| {
                *known.key == *slot.key && known.response.variant == slot.response.variant
            };
            if known.is_some_and(is_same) {
                self.remove(position, replaced);
            }
        }
    }

    /// Returns true if `slot` is another spelling of a URL that has all its responses in normal
    /// spelling: these are not evicted for it.
    fn is_crowded_out(&self, slot: &Slot) -> bool {
        !slot.key.is_normal
            && self.by_url.get(&slot.url_hash).is_some_and(|positions| {
                positions.len() >= MAX_PER_URL && self.other_spelling(positions).is_none()
            })
    }

    /// Removes a response of a URL with the maximum number of them: the oldest one of another
    /// spelling, otherwise the oldest one.
    fn remove_surplus(&mut self, hash: u64) {
        let surplus = self.by_url.get(&hash).and_then(|positions| {
            let oldest = self
                .other_spelling(positions)
                .or(positions.first().copied());
            oldest.filter(|_| positions.len() >= MAX_PER_URL)
        });
        if let Some(position) = surplus {
            self.remove(position, &mut Purged::default());
        }
    }

    /// The first of `positions` whose key has another spelling of its URL than the normal one.
    fn other_spelling(&self, positions: &[usize]) -> Option<usize> {
        let mut positions = positions.iter().copied();
        positions.find(|position| {
            let slot = self.slots.get(*position).and_then(Option::as_ref);
            slot.is_some_and(|slot| !slot.key.is_normal)
        })
    }

    /// Finds the next response that was not used since the hand passed it. Two rounds find one
    /// unless the shard is empty.
    fn victim(&mut self) -> Option<(usize, &Slot)> {
        let count = self.slots.len();
        for _ in 0..count.saturating_mul(2) {
            let position = self.hand;
            self.hand = (position + 1) % count;
            match self.slots.get_mut(position) {
                Some(Some(slot)) if slot.is_used => slot.is_used = false,
                Some(Some(_)) => {
                    let slot = self.slots.get(position)?.as_ref()?;
                    return Some((position, slot));
                }
                Some(None) | None => {}
            }
        }
        None
    }

    fn insert_slot(&mut self, slot: Slot) {
        let (hash, bytes) = (slot.url_hash, slot.bytes);
        let position = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        if let Some(entry) = self.slots.get_mut(position) {
            *entry = Some(slot);
            self.used += bytes;
            self.count += 1;
            self.by_url.entry(hash).or_default().push(position);
        }
    }

    fn remove(&mut self, position: usize, removed: &mut Purged) {
        let Some(slot) = self.slots.get_mut(position).and_then(Option::take) else {
            return;
        };
        self.free.push(position);
        self.used = self.used.saturating_sub(slot.bytes);
        self.count = self.count.saturating_sub(1);
        removed.objects += 1;
        removed.bytes += slot.bytes as u64;
        if let Some(positions) = self.by_url.get_mut(&slot.url_hash) {
            positions.retain(|one| *one != position);
            if positions.is_empty() {
                self.by_url.remove(&slot.url_hash);
            }
        }
    }
}
