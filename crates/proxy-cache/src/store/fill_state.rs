//! The state of a fill, and the requests that wait for it.

use crate::stored_response::StoredResponse;
use std::pin::Pin;
#[expect(
    clippy::disallowed_types,
    reason = "held to register or to take wakers, never across I/O or an await"
)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// A wait for the response to another request. Ready with the response, or with `None` if it was
/// not stored.
#[derive(Debug)]
pub struct FillWait {
    state: Arc<FillState>,
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

    pub(super) fn finish(&self, response: Option<Arc<StoredResponse>>) {
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
