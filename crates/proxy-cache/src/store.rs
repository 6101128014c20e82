//! The store of responses, shared by all workers.

pub(crate) mod fill;
pub(crate) mod fill_state;
mod frequency;
pub(crate) mod results;
mod shard;
mod uncacheable_keys;

use crate::cache_key::CacheKey;
use crate::clock_reading::ClockReading;
use crate::memory::Memory;
use crate::settings::StoreLimits;
use fill_state::FillState;
use frequency::FrequencySketch;
use http::HeaderMap;
use results::{Found, Purge, Purged};
use shard::{FillKey, Inserted, Shard, Slot};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::iter::once;
#[expect(
    clippy::disallowed_types,
    reason = "held for a look-up in a table, never across I/O or an await"
)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use uncacheable_keys::UncacheableKeys;

/// Maximum number of shards of a store. Each has its own lock.
const MAX_SHARDS: u64 = 16;
/// Number of bodies of the maximum size that one shard holds.
const OBJECTS_PER_SHARD: u64 = 4;
/// Seconds without collapsing after a response that could not be stored.
const UNCACHEABLE_SECS: u64 = 60;

/// A store of responses with a limit in bytes, shared by all threads.
///
/// Seven eighths of the bytes are for stored responses, one eighth for responses being read. An
/// evicted response counts until its last reader has finished.
///
/// Eviction is CLOCK with `TinyLFU` admission: a new response evicts only responses that were not
/// used since the hand passed them, and are requested less often than the new one.
#[derive(Debug)]
pub struct CacheStore {
    limits: StoreLimits,
    #[expect(
        clippy::disallowed_types,
        reason = "held for a look-up in a table, never across I/O or an await"
    )]
    first_shard: Mutex<Shard>,
    #[expect(
        clippy::disallowed_types,
        reason = "held for a look-up in a table, never across I/O or an await"
    )]
    further_shards: Box<[Mutex<Shard>]>,
    shard_bytes: usize,
    hasher: RandomState,
    frequencies: FrequencySketch,
    uncacheable: UncacheableKeys,
    memory: Arc<Memory>,
    /// Number of purges of more than one key. A fetch that began before such a purge is not stored.
    epoch: AtomicU64,
    /// Number of fills so far that other requests could not join.
    unshared_fills: AtomicU64,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    stored: AtomicU64,
    evicted: AtomicU64,
    not_admitted: AtomicU64,
    purged: AtomicU64,
}

/// Statistics of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Stored responses.
    pub objects: u64,
    /// Bytes in use: of stored responses, of responses being read, and of evicted ones with
    /// readers.
    pub bytes: u64,
    /// The maximum of these bytes.
    pub max_bytes: u64,
    /// Responses stored so far.
    pub stored: u64,
    /// Responses evicted for other ones so far.
    pub evicted: u64,
    /// Responses not stored so far, because stored ones are requested more often.
    pub not_admitted: u64,
    /// Responses removed by purges and by unsafe requests so far.
    pub purged: u64,
}

impl CacheStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new(limits: StoreLimits) -> Self {
        let StoreLimits {
            max_bytes,
            max_object_bytes,
        } = limits;
        let for_stored = max_bytes - max_bytes / 8;
        let shards = for_stored / max_object_bytes.saturating_mul(OBJECTS_PER_SHARD).max(1);
        let shards = shards.clamp(1, MAX_SHARDS);
        Self {
            limits,
            first_shard: Shard::default().into(),
            further_shards: (1..shards).map(|_| Shard::default().into()).collect(),
            shard_bytes: usize::try_from(for_stored / shards).unwrap_or(usize::MAX),
            hasher: RandomState::new(),
            frequencies: FrequencySketch::for_bytes(max_bytes),
            uncacheable: UncacheableKeys::default(),
            memory: Arc::new(Memory::new(max_bytes)),
            epoch: AtomicU64::new(0),
            unshared_fills: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// The bounds in bytes.
    #[must_use]
    pub fn limits(&self) -> StoreLimits {
        self.limits
    }

    /// The responses stored for `key` and a request with these fields. Counts as a use.
    #[must_use]
    pub fn find(&self, key: &CacheKey, request: &HeaderMap) -> Found {
        let hash = self.hash(&key.url);
        self.frequencies.count(self.use_hash(hash, key));
        self.lock(hash).find(hash, key, request)
    }

    /// Removes the responses of `url` after a request that changed the resource. [RFC 9111 §4.4]
    pub fn invalidate(&self, url: &str) {
        let purged = self.remove_url(url);
        self.count_purged(purged);
    }

    /// Removes responses, including those being fetched. Takes each shard's lock once; for
    /// operators.
    pub fn purge(&self, purge: &Purge) -> Purged {
        let purged = match purge {
            Purge::Url(url) => self.remove_url(url),
            Purge::Prefix(prefix) => self.remove_where(|slot| slot.key.url.starts_with(&**prefix)),
            Purge::Tag(tag) => self.remove_where(|slot| slot.response.has_tag(tag)),
            Purge::All => self.remove_where(|_| true),
        };
        self.count_purged(purged);
        purged
    }

    /// The current figures. Takes each shard's lock once.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let Counts {
            stored,
            evicted,
            not_admitted,
            purged,
        } = &self.counts;
        Figures {
            objects: self.all_shards().map(|shard| shard.len() as u64).sum(),
            bytes: self.memory.used(),
            max_bytes: self.limits.max_bytes,
            stored: stored.load(Ordering::Relaxed),
            evicted: evicted.load(Ordering::Relaxed),
            not_admitted: not_admitted.load(Ordering::Relaxed),
            purged: purged.load(Ordering::Relaxed),
        }
    }

    fn remove_url(&self, url: &str) -> Purged {
        let hash = self.hash(url);
        let mut shard = self.lock(hash);
        shard.cancel_fills(hash);
        shard.remove_url(hash, url)
    }

    fn remove_where(&self, is_purged: impl Fn(&Slot) -> bool) -> Purged {
        // Before the search: a fetch that began earlier must not be stored in a shard already
        // searched.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let mut purged = Purged::default();
        for mut shard in self.all_shards() {
            let removed = shard.remove_where(&is_purged);
            purged.objects += removed.objects;
            purged.bytes += removed.bytes;
        }
        purged
    }

    fn count_purged(&self, purged: Purged) {
        self.counts
            .purged
            .fetch_add(purged.objects, Ordering::Relaxed);
    }

    /// Ends a fill: removes it from its shard, and stores `slot` unless a purge came between.
    fn finish_fill(
        &self,
        at: FillKey,
        state: &Arc<FillState>,
        stored: Option<(Slot, u64)>,
        now: ClockReading,
    ) {
        let mut shard = self.lock(at.url);
        shard.end_fill(at, state);
        let Some((slot, epoch)) = stored else {
            return;
        };
        if state.is_cancelled() || self.epoch.load(Ordering::Acquire) != epoch {
            return;
        }
        if self.memory.is_exceeded() {
            self.counts.not_admitted.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let uses = |hash| self.frequencies.estimate(hash);
        let Inserted { is_stored, evicted } = shard.insert(slot, self.shard_bytes, now, uses);
        let outcome = if is_stored {
            &self.counts.stored
        } else {
            &self.counts.not_admitted
        };
        outcome.fetch_add(1, Ordering::Relaxed);
        self.counts.evicted.fetch_add(evicted, Ordering::Relaxed);
    }

    /// Disables collapsing of requests with this hash for [`UNCACHEABLE_SECS`].
    fn mark_uncacheable(&self, request_hash: u64, now: ClockReading) {
        let until = now.monotonic.as_secs().saturating_add(UNCACHEABLE_SECS);
        self.uncacheable.insert(request_hash, until);
    }

    fn hash(&self, url: &str) -> u64 {
        self.hasher.hash_one(url)
    }

    /// The hash that uses of `key` are counted under. Another spelling of a URL has its own, so that
    /// it is not admitted for the requests for the normal one.
    fn use_hash(&self, url_hash: u64, key: &CacheKey) -> u64 {
        if key.is_normal {
            return url_hash;
        }
        self.hasher.hash_one((url_hash, &key.selector))
    }

    fn lock(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The upper bits, because maps use the lower ones.
        let count = self.further_shards.len() as u64 + 1;
        let position = usize::try_from((hash >> 32) % count).unwrap_or_default();
        let shard = self.further_shards.get(position);
        Self::guard(shard.unwrap_or(&self.first_shard))
    }

    fn all_shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        let further = self.further_shards.iter();
        once(&self.first_shard).chain(further).map(Self::guard)
    }

    #[expect(
        clippy::disallowed_types,
        reason = "held for a look-up in a table, never across I/O or an await"
    )]
    fn guard(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
