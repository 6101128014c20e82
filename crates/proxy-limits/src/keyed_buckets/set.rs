//! The keys that share one set of the table, and how threads agree on them without a lock.
//!
//! A slot holds a key and its bucket's word. A key is inserted in two steps: it is *announced* in a
//! free or replaced slot, then *confirmed*. Between the two a thread withdraws every other
//! announcement of the same key, and abandons its own for a confirmed one. Of two threads with the
//! same key at least one sees the other's announcement, so a key is never confirmed twice; and no
//! thread waits for one that was suspended between the two steps.

use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a set.
pub(super) const WAYS: usize = 16;

/// Rounds in which threads may withdraw each other's announcements before one shares a bucket.
const ROUNDS: u8 = 200;

/// Value of a slot without a key.
const FREE_KEY: u64 = 0;

/// Bits that tell the announcements of a key apart, other ones in each round; 0 in a confirmed key.
const ANNOUNCEMENT_MASK: u64 = 0xff;

#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Set {
    keys: [AtomicU64; WAYS],
    words: [AtomicU64; WAYS],
}

/// The origin of a key's slot.
#[derive(Debug)]
pub(super) struct Inserted<'s> {
    /// The word of its bucket.
    pub(super) word: &'s AtomicU64,
    /// Inserted by this call, not by another thread meanwhile.
    pub(super) new: bool,
    /// Number of keys that the insertion replaced.
    pub(super) dropped: usize,
}

struct Slot<'s> {
    key: &'s AtomicU64,
    word: &'s AtomicU64,
}

/// A key announced in a slot that held `before`.
struct Announcement<'s> {
    slot: Slot<'s>,
    value: u64,
    before: u64,
}

impl Set {
    /// The confirmed form of a hash: not [`FREE_KEY`], and without bits of an announcement.
    #[inline]
    pub(super) fn key_from_hash(hash: u64) -> u64 {
        (hash & !ANNOUNCEMENT_MASK).max(ANNOUNCEMENT_MASK + 1)
    }

    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<&AtomicU64> {
        let held = |held: &AtomicU64| held.load(Ordering::SeqCst) == key;
        self.words.get(self.keys.iter().position(held)?)
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        self.words.iter()
    }

    /// The confirmed keys.
    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> {
        let keys = self.keys.iter().map(|key| key.load(Ordering::SeqCst));
        keys.filter(|key| *key != FREE_KEY && key & ANNOUNCEMENT_MASK == 0)
    }

    /// Inserts `key` with `word`: into a free slot if `may_add`, else into the slot of the key with
    /// the least word by `order`. `mark` should differ from thread to thread.
    pub(super) fn insert(
        &self,
        key: u64,
        word: u64,
        mark: u8,
        may_add: bool,
        order: impl Fn(u64) -> i64,
    ) -> Inserted<'_> {
        let mut dropped = 0;
        for round in 0..ROUNDS {
            if let Some(word) = self.find(key) {
                return Inserted {
                    word,
                    new: false,
                    dropped,
                };
            }
            let value = key | u64::from(mark.wrapping_add(round).max(1));
            let Some(announced) = self.announce(value, may_add, &order) else {
                continue;
            };
            dropped += usize::from(announced.before != FREE_KEY);
            if self.withdraw_others(key, &announced) && announced.confirm(key, word) {
                return Inserted {
                    word: announced.slot.word,
                    new: true,
                    dropped,
                };
            }
        }
        let [word, ..] = &self.words;
        Inserted {
            word,
            new: false,
            dropped,
        }
    }

    /// Frees the slot of the key with the least word by `order`. Returns false if there was none.
    pub(super) fn drop_one(&self, order: impl Fn(u64) -> i64) -> bool {
        let Some((slot, held)) = self.least(order) else {
            return false;
        };
        replace(slot.key, held, FREE_KEY)
    }

    fn announce(
        &self,
        value: u64,
        may_add: bool,
        order: impl Fn(u64) -> i64,
    ) -> Option<Announcement<'_>> {
        let free = || {
            let mut slots = self.slots();
            let slot = slots.find(|slot| slot.key.load(Ordering::SeqCst) == FREE_KEY)?;
            Some((slot, FREE_KEY))
        };
        let found = if may_add { free() } else { None };
        let (slot, before) = found.or_else(|| self.least(order)).or_else(free)?;
        replace(slot.key, before, value).then_some(Announcement {
            slot,
            value,
            before,
        })
    }

    /// Withdraws every other announcement of `key`. Returns false, with this one withdrawn, if
    /// `key` was confirmed meanwhile.
    fn withdraw_others(&self, key: u64, own: &Announcement<'_>) -> bool {
        for slot in self.slots() {
            let held = slot.key.load(Ordering::SeqCst);
            if std::ptr::eq(slot.key, own.slot.key) || held & !ANNOUNCEMENT_MASK != key {
                continue;
            }
            // A failed withdrawal means that the other was confirmed, or has moved: search again.
            if held == key || !replace(slot.key, held, FREE_KEY) {
                replace(own.slot.key, own.value, FREE_KEY);
                return false;
            }
        }
        true
    }

    /// The confirmed key with the least word by `order`.
    fn least(&self, order: impl Fn(u64) -> i64) -> Option<(Slot<'_>, u64)> {
        let confirmed = self.slots().filter_map(|slot| {
            let held = slot.key.load(Ordering::SeqCst);
            (held != FREE_KEY && held & ANNOUNCEMENT_MASK == 0).then_some((slot, held))
        });
        confirmed.min_by_key(|(slot, _)| order(slot.word.load(Ordering::Relaxed)))
    }

    fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        let slots = self.keys.iter().zip(&self.words);
        slots.map(|(key, word)| Slot { key, word })
    }
}

impl Announcement<'_> {
    /// Stores the key's word and confirms it, unless another thread has withdrawn it.
    fn confirm(&self, key: u64, word: u64) -> bool {
        let mut seen = self.slot.word.load(Ordering::Relaxed);
        while self.slot.key.load(Ordering::SeqCst) == self.value {
            // Exchanged, not stored: after a withdrawal the word may be another key's.
            let put =
                self.slot
                    .word
                    .compare_exchange(seen, word, Ordering::SeqCst, Ordering::Relaxed);
            match put {
                Ok(_) => return replace(self.slot.key, self.value, key),
                Err(other) => seen = other,
            }
        }
        false
    }
}

fn replace(key: &AtomicU64, before: u64, after: u64) -> bool {
    key.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn by_value(word: u64) -> i64 {
        i64::try_from(word).unwrap()
    }

    fn held(set: &Set) -> Vec<u64> {
        let keys = set.keys.iter().map(|key| key.load(Ordering::SeqCst));
        keys.filter(|key| *key != FREE_KEY).collect()
    }

    #[test]
    fn the_key_with_the_lowest_word_is_evicted() {
        let set = Set::default();
        let keys: Vec<u64> = (1..=WAYS as u64 + 1).map(|key| key << 8).collect();
        for (word, key) in (100..).zip(&keys) {
            let inserted = set.insert(*key, word, 1, true, by_value);
            assert_eq!(inserted.dropped, usize::from(word == 116));
        }

        assert!(set.find(keys[0]).is_none());
        assert_eq!(set.find(keys[16]).unwrap().load(Ordering::SeqCst), 116);
        assert!(set.drop_one(by_value));
        assert!(set.find(keys[1]).is_none());
    }

    #[test]
    fn an_abandoned_announcement_blocks_no_other_thread() {
        let set = Set::default();
        let key = 7 << 8;
        let left = set.announce(key | 5, true, by_value).unwrap();

        let inserted = set.insert(key, 42, 9, true, by_value);
        assert!(inserted.new);
        assert!(!left.confirm(key, 0));
        assert_eq!(held(&set), [key]);
        assert_eq!(set.find(key).unwrap().load(Ordering::SeqCst), 42);
    }

    #[test]
    fn threads_that_insert_the_same_keys_at_once_confirm_each_once() {
        for round in 1..=2_000_u64 {
            let set = Set::default();
            let keys = [round << 8, round << 9, round << 10];
            insert_on_three_threads(&set, keys);

            let mut held = held(&set);
            held.sort_unstable();
            assert_eq!(held, keys);
            let words = keys.map(|key| set.find(key).unwrap().load(Ordering::SeqCst));
            assert_eq!(words, [13; 3]);
        }
    }

    /// Every thread inserts every key with the word 10, and adds one to it.
    fn insert_on_three_threads(set: &Set, keys: [u64; 3]) {
        let barrier = Barrier::new(3);
        let insert = |thread: u8| {
            barrier.wait();
            for key in keys {
                let inserted = set.insert(key, 10, thread, true, by_value);
                inserted.word.fetch_add(1, Ordering::SeqCst);
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let insert = &insert;
                scope.spawn(move || insert(thread));
            }
        });
    }
}
