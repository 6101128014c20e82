//! Collapsed fetches: one request fetches a response for all requests that wait for it.

use super::CacheStore;
use super::fill_state::{FillState, FillWait};
use super::shard::{FillKey, Slot};
use crate::cache_key::CacheKey;
use crate::clock_reading::ClockReading;
use crate::memory::{Charge, Memory, Reservation};
use crate::stored_response::{ResponseHead, StoredResponse};
use crate::storing::has_credentials;
use crate::vary::Variant;
use bytes::Bytes;
use http::HeaderMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The fetch of a response for all requests that wait for it. Dropped without a response, it lets
/// them continue.
#[derive(Debug)]
pub struct Fill {
    store: Arc<CacheStore>,
    cache_key: Arc<CacheKey>,
    /// Identity among the fills of the shard.
    identity: FillKey,
    /// Hash of the request in the table of uncacheable keys.
    request_hash: u64,
    state: Arc<FillState>,
    /// Epoch of the store at the beginning.
    epoch: u64,
    is_shared: bool,
    reservation: Reservation,
}

/// Memory of a body that is not stored, counted until drop.
#[derive(Debug)]
pub struct BodyReservation {
    _reservation: Reservation,
}

/// A stored body. Its memory is counted until the last reader drops it.
#[derive(Debug)]
struct ChargedBody {
    bytes: Box<[u8]>,
    _charge: Charge,
}

impl AsRef<[u8]> for ChargedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The role of a request in the fetch of its response.
#[derive(Debug)]
pub enum Joined {
    /// The request fetches the response, for waiting requests too.
    Fill(Fill),
    /// The request waits for another request's fetch.
    Wait(FillWait),
}

impl CacheStore {
    /// Joins the requests for the response of `key`: the first one fetches it. If the last response
    /// could not be stored, each request fetches its own for some time.
    #[must_use]
    pub fn join(
        self: &Arc<Self>,
        key: &Arc<CacheKey>,
        request: &HeaderMap,
        now: ClockReading,
    ) -> Joined {
        let url_hash = self.hash(&key.url);
        let mut shard = self.lock(url_hash);
        let variant = shard.known_variant(url_hash, key);
        let variant = variant.map(|variant| variant.for_request(request));
        let values = variant.as_ref().map_or(&[][..], Variant::values);
        // Requests with credentials or cookies have separate fills: their response may be
        // uncacheable even if the response to other requests is cacheable.
        let selector = (&key.selector, values, has_credentials(request));
        let shared_key = FillKey {
            url: url_hash,
            rest: self.hasher.hash_one(selector),
        };
        let request_hash = shared_key.combined_hash();
        let is_shared = !self
            .uncacheable
            .contains(request_hash, now.monotonic.as_secs());
        let fill_key = if is_shared {
            shared_key
        } else {
            let number = self.unshared_fills.fetch_add(1, Ordering::Relaxed);
            FillKey {
                rest: self.hasher.hash_one((shared_key.rest, number)),
                ..shared_key
            }
        };
        if let Some(state) = shard.fill(fill_key) {
            return Joined::Wait(FillWait::new(state));
        }
        let state = Arc::new(FillState::default());
        shard.begin_fill(fill_key, Arc::clone(&state));
        Joined::Fill(Fill {
            store: Arc::clone(self),
            cache_key: Arc::clone(key),
            identity: fill_key,
            request_hash,
            state,
            epoch: self.epoch.load(Ordering::Acquire),
            is_shared,
            reservation: Memory::reservation(&self.memory),
        })
    }
}

impl Fill {
    /// Returns true if other requests may wait for the response; false while responses of this key
    /// cannot be stored.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Counts a body of `length` bytes so far, which uses `memory` bytes. Returns false if it is
    /// too large to be stored, or the store has no room for it.
    pub fn reserve(&mut self, length: u64, memory: u64) -> bool {
        let is_small = length <= self.store.limits.max_object_bytes;
        is_small && self.reservation.grow_to(memory.max(length))
    }

    /// Stores a complete response, and wakes the waiting requests with it.
    #[must_use]
    pub fn publish(
        mut self,
        head: ResponseHead,
        variant: Variant,
        body: Box<[u8]>,
        now: ClockReading,
    ) -> Arc<StoredResponse> {
        // The charge below replaces the reservation.
        self.reservation.release();
        let body = ChargedBody {
            _charge: self.store.memory.charge(body.len()),
            bytes: body,
        };
        self.publish_charged(head, variant, Bytes::from_owner(body), now)
    }

    /// Stores the body of `earlier` with the head updated by its validation.
    #[must_use]
    pub fn publish_validated(
        self,
        head: ResponseHead,
        variant: Variant,
        earlier: &StoredResponse,
        now: ClockReading,
    ) -> Arc<StoredResponse> {
        self.publish_charged(head, variant, earlier.body.clone(), now)
    }

    /// Stores a response with an already charged body.
    fn publish_charged(
        self,
        head: ResponseHead,
        variant: Variant,
        body: Bytes,
        now: ClockReading,
    ) -> Arc<StoredResponse> {
        let own_bytes = head.bytes() + Slot::own_bytes(&self.cache_key, &variant);
        let bytes = own_bytes + body.len();
        let ResponseHead {
            status,
            headers,
            freshness,
        } = head;
        let response = Arc::new(StoredResponse {
            status,
            headers,
            body,
            freshness,
            variant,
            _head_charge: self.store.memory.charge(own_bytes),
        });
        self.store.uncacheable.remove(self.request_hash);
        let slot = Slot {
            url_hash: self.identity.url,
            use_hash: self.store.use_hash(self.identity.url, &self.cache_key),
            key: Arc::clone(&self.cache_key),
            response: Arc::clone(&response),
            bytes,
            is_used: false,
        };
        let stored = Some((slot, self.epoch));
        self.store
            .finish_fill(self.identity, &self.state, stored, now);
        self.state.finish(Some(Arc::clone(&response)));
        response
    }

    /// Ends the fill of a response that may not be stored. Requests for its key are not collapsed
    /// for some time. Its memory is counted until the result is dropped.
    pub fn mark_uncacheable(mut self, now: ClockReading) -> BodyReservation {
        self.store.mark_uncacheable(self.request_hash, now);
        let empty = Memory::reservation(&self.store.memory);
        BodyReservation {
            _reservation: std::mem::replace(&mut self.reservation, empty),
        }
    }

    /// Removes the stored responses of the URL.
    pub fn forget_stored(&self) {
        self.store.invalidate(&self.cache_key.url);
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        let now = ClockReading::default();
        self.store
            .finish_fill(self.identity, &self.state, None, now);
        self.state.finish(None);
    }
}
