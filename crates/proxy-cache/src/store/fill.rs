//! One request that fetches a response for all that wait for it.

use super::memory::{Memory, Reservation};
use super::shard::{FillKey, Slot};
use super::{CacheStore, Charge};
use crate::cache_key::CacheKey;
use crate::stored_response::{ResponseHead, StoredResponse};
use crate::vary::Variant;
use bytes::Bytes;
use std::pin::Pin;
#[expect(
    clippy::disallowed_types,
    reason = "held to register or to take wakers, never across I/O or an await"
)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

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

/// A wait for the response to another request. Ready with the response, or with none where it could not be stored.
#[derive(Debug)]
pub struct FillWait {
    state: Arc<FillState>,
    /// Position of the waker.
    place: Option<usize>,
}

/// State of a fill, shared with the waiting requests.
#[derive(Debug, Default)]
pub(crate) struct FillState {
    #[expect(clippy::disallowed_types, reason = "see the import")]
    inner: Mutex<FillProgress>,
    is_cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct FillProgress {
    is_over: bool,
    response: Option<Arc<StoredResponse>>,
    wakers: Vec<Option<Waker>>,
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

impl FillProgress {
    /// The position of a free place for a waker.
    fn free_place(&mut self) -> usize {
        let free = self.wakers.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            self.wakers.push(None);
            self.wakers.len() - 1
        })
    }
}

impl FillState {
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    fn finish(&self, response: Option<Arc<StoredResponse>>) {
        let wakers = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            if inner.is_over {
                return;
            }
            inner.is_over = true;
            inner.response = response;
            std::mem::take(&mut inner.wakers)
        };
        for waker in wakers.into_iter().flatten() {
            waker.wake();
        }
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
        now: u64,
    ) -> Arc<StoredResponse> {
        // The body has a charge of its own from now on.
        self.reservation.release();
        let body = ChargedBody {
            _charge: self.store.memory.charge(body.len()),
            bytes: body,
        };
        self.publish_shared((head, variant), Bytes::from_owner(body), now)
    }

    /// Stores the body of `earlier` with the head of its validation.
    #[must_use]
    pub fn publish_validated(
        self,
        (head, variant): (ResponseHead, Variant),
        earlier: &StoredResponse,
        now: u64,
    ) -> Arc<StoredResponse> {
        self.publish_shared((head, variant), earlier.body.clone(), now)
    }

    fn publish_shared(
        self,
        (head, variant): (ResponseHead, Variant),
        body: Bytes,
        now: u64,
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
        store.finish_fill((*at, state), Some((slot, *epoch)), now);
        state.finish(Some(Arc::clone(&response)));
        response
    }

    /// Ends the fill of a response that may not be stored: requests for this key do not wait for each other for a
    /// while. What was reserved counts until the result is dropped.
    pub fn pass(mut self, now: u64) -> Reserved {
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
        self.store.finish_fill((self.at, &self.state), None, 0);
        self.state.finish(None);
    }
}

impl FillWait {
    pub(super) fn new(state: Arc<FillState>) -> Self {
        Self { state, place: None }
    }
}

impl Future for FillWait {
    type Output = Option<Arc<StoredResponse>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = Arc::clone(&self.state);
        let mut inner = state.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.is_over {
            return Poll::Ready(inner.response.clone());
        }
        let waker = Some(cx.waker().clone());
        let own = self.place;
        let place = own.unwrap_or_else(|| inner.free_place());
        if let Some(registered) = inner.wakers.get_mut(place) {
            *registered = waker;
        }
        drop(inner);
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for FillWait {
    fn drop(&mut self) {
        let Some(place) = self.place else {
            return;
        };
        let mut inner = self
            .state
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = inner.wakers.get_mut(place) {
            *place = None;
        }
    }
}
