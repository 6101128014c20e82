//! A table of token buckets by key, of fixed size.

mod set;

use crate::client_key::{KeySeed, RateKey};
use crate::gcra::{Gcra, RateDecision};
use crate::rate::{RateError, RateLimitSettings};
use set::{Set, WAYS};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Keys of a table that is not set to another number.
pub const DEFAULT_KEY_CAPACITY: usize = 100_000;

/// Number of sets searched for a key to drop, when the set of a new key has none.
const SETS_SEARCHED: usize = 64;

/// Token buckets by key, all under the same settings, shared by all threads without a lock.
///
/// The table never grows: it takes [`KeyedBuckets::BYTES_PER_KEY`] bytes for each key of its
/// capacity from the beginning. A key is known by 64 bits of its seeded hash; two of 100 000 keys
/// share a bucket once in 3 × 10⁹ tables. A new key without room replaces, among the up to 16 keys
/// of its set, the one with the bucket that was full first: the key idle for longest; a client over
/// its limit is replaced last, so that a flood of new keys does not reset it. A dropped key starts
/// with a full bucket when it returns.
#[derive(Debug)]
pub struct KeyedBuckets {
    sets: Box<[Set]>,
    seed: KeySeed,
    limit: Gcra,
    capacity: usize,
    keys: AtomicUsize,
    evicted: AtomicU64,
    // Number of insertions: distinguishes them, and varies the set in which a search for room
    // begins.
    insertions: AtomicUsize,
}

impl KeyedBuckets {
    /// Memory of the table for each key of its capacity, in bytes: room for two keys, so that sets
    /// of 16 keys rarely fill up before the whole table.
    pub const BYTES_PER_KEY: usize = 2 * size_of::<Set>() / WAYS;

    /// An empty table for `capacity` keys, at least one, hashed under `seed`.
    ///
    /// # Errors
    /// [`RateError::Zero`] for a burst of 0.
    pub fn new(
        settings: RateLimitSettings,
        capacity: usize,
        seed: KeySeed,
    ) -> Result<Self, RateError> {
        let capacity = capacity.max(1);
        let sets = match capacity {
            ..=WAYS => 1,
            _ => capacity.saturating_mul(2).div_ceil(WAYS),
        };
        Ok(Self {
            sets: (0..sets).map(|_| Set::default()).collect(),
            seed,
            limit: Gcra::new(settings)?,
            capacity,
            keys: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            insertions: AtomicUsize::new(0),
        })
    }

    /// Takes one token from the bucket of `key` at `now_ns`, if there is one. A key that is not
    /// known has a full bucket.
    #[inline]
    pub fn admit(&self, key: &RateKey<'_>, now_ns: u64) -> RateDecision {
        let hash = Set::key_from_hash(self.seed.hash(key));
        let set = self.set_of(hash);
        let word = set
            .find(hash)
            .unwrap_or_else(|| self.insert(set, hash, now_ns));
        self.limit.admit(word, now_ns)
    }

    /// Refunds one request to the bucket of `key` at `now_ns`. A key that was dropped meanwhile
    /// has a full bucket.
    pub fn refund(&self, key: &RateKey<'_>, now_ns: u64) {
        let hash = Set::key_from_hash(self.seed.hash(key));
        if let Some(word) = self.set_of(hash).find(hash) {
            self.limit.refund(word, now_ns);
        }
    }

    /// The decision of [`Self::admit`] for `key` at `now_ns`. Takes nothing, and adds no key.
    pub fn peek(&self, key: &RateKey<'_>, now_ns: u64) -> RateDecision {
        let hash = Set::key_from_hash(self.seed.hash(key));
        match self.set_of(hash).find(hash) {
            Some(word) => self.limit.peek(word, now_ns),
            None => self
                .limit
                .peek(&AtomicU64::new(self.limit.full(now_ns)), now_ns),
        }
    }

    /// Number of keys in the table; at most the capacity.
    pub fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Number of keys evicted since the table was created.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Must be called at least every [`Self::settle_within`]; reads every bucket, a millisecond for
    /// 100 000 keys, so not on a worker.
    pub fn settle(&self, now_ns: u64) {
        for word in self.sets.iter().flat_map(Set::words) {
            self.limit.settle(word, now_ns);
        }
    }

    /// Maximum time after which an unused bucket is still known to be full.
    pub fn settle_within(&self) -> Duration {
        self.limit.settle_within()
    }

    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "hash × length / 2⁶⁴ is below the length, which is at least one"
    )]
    #[inline]
    fn set_of(&self, hash: u64) -> &Set {
        let place = (u128::from(hash) * self.sets.len() as u128) >> 64;
        &self.sets[place as usize]
    }

    /// The word of a key that was not found a moment ago.
    #[cold]
    fn insert<'t>(&'t self, set: &'t Set, hash: u64, now_ns: u64) -> &'t AtomicU64 {
        let now = self.limit.full(now_ns);
        let until_full = |word: u64| word.wrapping_sub(now).cast_signed();
        let reserved = self.reserve();
        // Each insertion has its own count, so that threads rarely use the same mark.
        let [mark, ..] = self
            .insertions
            .fetch_add(1, Ordering::Relaxed)
            .to_le_bytes();
        let inserted = set.insert(hash, now, mark, reserved, until_full);
        let (reserved, dropped) = (usize::from(reserved), inserted.dropped);
        self.evicted.fetch_add(dropped as u64, Ordering::Relaxed);
        // The key itself was counted when there was room for it.
        let change = usize::from(inserted.new).wrapping_sub(dropped + reserved);
        self.keys.fetch_add(change, Ordering::Relaxed);
        if reserved == 0 && inserted.new && dropped == 0 {
            // The set had no key to replace: a key of another set is dropped instead.
            self.drop_elsewhere(set, until_full);
        }
        inserted.word
    }

    /// Counts one more key, if there is room for it.
    fn reserve(&self) -> bool {
        let before = self.keys.fetch_add(1, Ordering::Relaxed);
        if before < self.capacity {
            return true;
        }
        self.keys.fetch_sub(1, Ordering::Relaxed);
        false
    }

    fn drop_elsewhere(&self, own: &Set, order: impl Fn(u64) -> i64) {
        let from = self.insertions.load(Ordering::Relaxed) % self.sets.len();
        let sets = self.sets.iter().cycle().skip(from).take(SETS_SEARCHED);
        let mut others = sets.filter(|set| !std::ptr::eq(*set, own));
        if others.any(|set| set.drop_one(&order)) {
            self.keys.fetch_sub(1, Ordering::Relaxed);
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientKey, Rate, TokenBucket};
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    const SECOND_NS: u64 = 1_000_000_000;
    const SEED: KeySeed = KeySeed { low: 3, high: 4 };

    fn settings(events: u32, burst: u32) -> RateLimitSettings {
        let rate = Rate::per_second(events).unwrap();
        RateLimitSettings { rate, burst }
    }

    fn client(number: u32) -> RateKey<'static> {
        RateKey::Client(ClientKey::V4(number))
    }

    #[test]
    fn a_hundred_thousand_clients_take_32_bytes_each() {
        assert_eq!(KeyedBuckets::BYTES_PER_KEY, 32);
        let table = KeyedBuckets::new(settings(1, 1), DEFAULT_KEY_CAPACITY, SEED).unwrap();
        let bytes = size_of_val(&*table.sets);

        assert_eq!(bytes, DEFAULT_KEY_CAPACITY * KeyedBuckets::BYTES_PER_KEY);
    }

    #[test]
    fn clients_have_buckets_of_their_own() {
        let table = KeyedBuckets::new(settings(1, 2), 1_000, SEED).unwrap();

        for number in 0..500 {
            assert!(table.admit(&client(number), 0).admitted);
            assert!(table.admit(&client(number), 0).admitted);
        }
        assert!((0..500).all(|number| !table.admit(&client(number), 0).admitted));
        assert!(table.admit(&client(500), 0).admitted);
        assert_eq!((table.keys(), table.evicted()), (501, 0));
        assert_eq!(table.peek(&client(501), 0).remaining, 2);
        assert_eq!(table.keys(), 501);
    }

    #[test]
    fn a_token_that_is_returned_is_available_again() {
        let table = KeyedBuckets::new(settings(1, 2), 1_000, SEED).unwrap();
        assert!(table.admit(&client(1), 0).admitted);
        assert!(table.admit(&client(1), 0).admitted);
        assert!(!table.admit(&client(1), 0).admitted);

        table.refund(&client(1), 0);

        assert_eq!(table.peek(&client(1), 0).remaining, 1);
        for _ in 0..3 {
            table.refund(&client(1), 0);
            table.refund(&client(2), 0);
        }
        assert_eq!(table.peek(&client(1), 0).remaining, 2, "never above full");
        assert_eq!(table.keys(), 1);
    }

    #[test]
    fn the_key_idle_for_longest_makes_room_and_is_counted() {
        let table = KeyedBuckets::new(settings(1, 1), 3, SEED).unwrap();
        for (number, secs) in [(1, 0), (2, 10), (3, 20), (1, 30), (4, 40)] {
            assert!(table.admit(&client(number), secs * SECOND_NS).admitted);
        }

        // The second was idle for longest; the first was used again.
        let known = |number: u32| {
            table
                .set_of(0)
                .find(Set::key_from_hash(SEED.hash(&client(number))))
        };
        assert!(known(2).is_none());
        assert!([1, 3, 4].iter().all(|number| known(*number).is_some()));
        assert_eq!((table.keys(), table.evicted()), (3, 1));
    }

    #[test]
    fn a_flood_of_new_keys_does_not_set_a_client_over_its_limit_free() {
        let table = KeyedBuckets::new(settings(1, 10), 64, SEED).unwrap();
        while table.admit(&client(1), 0).admitted {}
        for number in 2..10_000 {
            table.admit(&client(number), 0);
        }

        assert!(!table.admit(&client(1), 0).admitted);
        assert!(table.keys() <= 64, "{}", table.keys());
        assert!(table.evicted() >= 9_000);
    }

    #[test]
    fn the_capacity_holds_whatever_the_keys() {
        for capacity in [1, 2, 15, 16, 17, 40, 1_000] {
            let table = KeyedBuckets::new(settings(1, 1), capacity, SEED).unwrap();
            for number in 0..5_000 {
                table.admit(&client(number), u64::from(number));
                assert!(table.keys() <= capacity, "{} of {capacity}", table.keys());
            }
            assert_eq!(table.keys() as u64 + table.evicted(), 5_000);
        }
    }

    #[test]
    fn a_table_of_the_default_size_remembers_nearly_all_of_its_keys() {
        let table = KeyedBuckets::new(settings(1, 1), DEFAULT_KEY_CAPACITY, SEED).unwrap();
        for number in 0..100_000 {
            table.admit(&client(number), 0);
        }

        assert!(table.evicted() < 100, "{}", table.evicted());
    }

    #[test]
    fn threads_share_the_bucket_of_a_key_from_its_first_request() {
        let clients = 2_000_u32;
        let table = KeyedBuckets::new(settings(1, 3), 4_000, SEED).unwrap();
        let admitted = AtomicU64::new(0);
        let twice = |number: u32| {
            let both = [0; 2].map(|_| table.admit(&client(number), 5).admitted);
            let sum = both.into_iter().map(u64::from).sum();
            admitted.fetch_add(sum, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..clients).for_each(twice));
            }
        });

        assert_eq!(table.evicted(), 0);
        assert_eq!(admitted.into_inner(), u64::from(clients) * 3);
        assert_eq!(table.keys(), clients as usize);
    }

    #[test]
    fn threads_that_push_each_other_out_never_exceed_the_capacity() {
        let table = KeyedBuckets::new(settings(1, 1), 50, SEED).unwrap();
        let push = |number: u32, thread: u32| {
            table.admit(&client(number % 300 + thread * 50), u64::from(number));
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let push = &push;
                scope.spawn(move || (0..20_000).for_each(|number| push(number, thread)));
            }
        });

        let held = table.sets.iter().flat_map(Set::keys).count();
        assert_eq!(held, table.keys());
        assert!(held <= 50, "{held}");
    }

    proptest! {
        /// With room for all, a table is nothing but many buckets.
        #[test]
        fn a_table_with_room_admits_what_single_buckets_would(
            steps in prop::collection::vec((0_u32..5, 0_u64..SECOND_NS), 1..200),
        ) {
            let table = KeyedBuckets::new(settings(3, 4), 16, SEED).unwrap();
            let single = [0; 5].map(|_| TokenBucket::new(settings(3, 4), 0).unwrap());
            let mut now = 0;
            for (number, gap) in steps {
                now += gap;
                let decision = table.admit(&client(number), now);
                prop_assert_eq!(decision, single[number as usize].admit(now));
            }
        }
    }
}
