//! One request that fetches a response for all that wait for it.

use super::CacheStore;
use super::fill_state::{FillState, FillWait};
use super::shard::{FillKey, Slot};
use crate::cache_key::CacheKey;
use crate::clock_reading::ClockReading;
use crate::memory::{Charge, Memory, Reservation};
use crate::stored_response::{ResponseHead, StoredResponse};
use crate::storing::names_client;
use crate::vary::Variant;
use bytes::Bytes;
use http::HeaderMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The fetch of a response for all requests that wait for it. If it is dropped, they continue without one.
#[derive(Debug)]
pub struct Fill {
    store: Arc<CacheStore>,
    key: Arc<CacheKey>,
    at: FillKey,
    /// Its key among those that could not be stored.
    pass: u64,
    state: Arc<FillState>,
    epoch: u64,
    is_alone: bool,
    reservation: Reservation,
}

/// Memory of a body that is not stored, which counts until it is dropped.
#[derive(Debug)]
pub struct Reserved {
    _reservation: Reservation,
}

/// A body that counts until the last reader has it.
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

/// The part of a request in fetching a response.
#[derive(Debug)]
pub enum Joined {
    /// It fetches the response, for waiting requests too.
    Fill(Fill),
    /// Another request is fetching it.
    Wait(FillWait),
}

impl CacheStore {
    /// Joins the requests for the response of `key`: the first one fetches it. Where the last response could not be
    /// stored, each request fetches its own.
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
        // Apart by credentials and cookies: a response to them may not be stored though other responses are.
        let shared = FillKey {
            url: url_hash,
            rest: self
                .hasher
                .hash_one((&key.selector, values, names_client(request))),
        };
        let is_alone = self.passes.has(shared.pass(), now.monotonic.as_secs());
        let at = if is_alone {
            let number = self.unshared.fetch_add(1, Ordering::Relaxed);
            FillKey {
                rest: self.hasher.hash_one((shared.rest, number)),
                ..shared
            }
        } else {
            shared
        };
        if let Some(state) = shard.join(at) {
            return Joined::Wait(FillWait::new(state));
        }
        let state = Arc::new(FillState::default());
        shard.begin(at, Arc::clone(&state));
        let epoch = self.epoch.load(Ordering::Acquire);
        let places = (at, shared.pass());
        Joined::Fill(Fill::new(
            Arc::clone(self),
            Arc::clone(key),
            (places, state),
            (epoch, is_alone),
        ))
    }
}

impl Fill {
    pub(super) fn new(
        store: Arc<CacheStore>,
        key: Arc<CacheKey>,
        ((at, pass), state): ((FillKey, u64), Arc<FillState>),
        (epoch, is_alone): (u64, bool),
    ) -> Self {
        let reservation = Memory::reservation(&store.memory);
        Self {
            store,
            key,
            at,
            pass,
            state,
            epoch,
            is_alone,
            reservation,
        }
    }

    /// Whether no other request waits for the response, because the last one could not be stored.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Counts a body of `length` bytes so far, for which `memory` bytes are in use. False if it is too large, or if there
    /// is no room: then the response cannot be stored.
    pub fn reserve(&mut self, length: u64, memory: u64) -> bool {
        let is_small = length <= self.store.limits.max_object_bytes;
        is_small && self.reservation.grow_to(memory.max(length))
    }

    /// Stores a complete response, and gives it to all that wait for it.
    #[must_use]
    pub fn publish(
        mut self,
        (head, variant): (ResponseHead, Variant),
        body: Box<[u8]>,
        now: ClockReading,
    ) -> Arc<StoredResponse> {
        // The body has a charge of its own from now on.
        self.reservation.release();
        let body = ChargedBody {
            _charge: self.store.memory.charge(body.len()),
            bytes: body,
        };
        self.publish_shared(head, variant, Bytes::from_owner(body), now)
    }

    /// Stores the body of `earlier` with the head of its validation.
    #[must_use]
    pub fn publish_validated(
        self,
        head: ResponseHead,
        variant: Variant,
        earlier: &StoredResponse,
        now: ClockReading,
    ) -> Arc<StoredResponse> {
        self.publish_shared(head, variant, earlier.body.clone(), now)
    }

    fn publish_shared(
        self,
        head: ResponseHead,
        variant: Variant,
        body: Bytes,
        now: ClockReading,
    ) -> Arc<StoredResponse> {
        let own_bytes = head.bytes() + Slot::own_bytes(&self.key, &variant);
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
        let Self {
            store,
            key,
            at,
            pass,
            state,
            epoch,
            is_alone: _,
            reservation: _,
        } = &self;
        store.passes.remove(*pass);
        let slot = Slot {
            url_hash: at.url,
            key: Arc::clone(key),
            response: Arc::clone(&response),
            bytes,
            is_used: false,
        };
        store.finish_fill(*at, state, Some((slot, *epoch)), now);
        state.finish(Some(Arc::clone(&response)));
        response
    }

    /// Ends the fill of a response that may not be stored: requests for this key do not wait for each other for a
    /// while. Its reserved memory counts until the result is dropped.
    pub fn pass(mut self, now: ClockReading) -> Reserved {
        self.store.pass(self.pass, now);
        let empty = Memory::reservation(&self.store.memory);
        Reserved {
            _reservation: std::mem::replace(&mut self.reservation, empty),
        }
    }

    /// Removes the stored responses of the URL: they are no longer right.
    pub fn forget_stored(&self) {
        self.store.invalidate(&self.key.url);
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        self.store
            .finish_fill(self.at, &self.state, None, ClockReading::default());
        self.state.finish(None);
    }
}
