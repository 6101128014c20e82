//! Places for requests in flight, over all workers.

use proxy_limits::{ConcurrencyLimit, LimitReached};
use tokio::sync::Semaphore;

/// How many requests may be served at once, and how many may wait for that, over all workers.
///
/// A place that is given back while requests wait goes to the worker that has waited for one longest:
/// a request that comes just then does not overtake them.
#[derive(Debug)]
pub struct InFlightLimit {
    places: ConcurrencyLimit,
    waiting: ConcurrencyLimit,
    /// Places handed over to a worker with waiting requests. Each still counts as taken.
    granted: Semaphore,
}

impl InFlightLimit {
    /// Up to `max` requests at once, and `max_waiting` that wait.
    #[must_use]
    pub fn new(max: u32, max_waiting: u32) -> Self {
        Self {
            places: ConcurrencyLimit::new(max),
            waiting: ConcurrencyLimit::new(max_waiting),
            granted: Semaphore::new(0),
        }
    }

    /// Moves both ceilings for requests that come from now on.
    pub fn set_max(&self, max: u32, max_waiting: u32) {
        self.places.set_max(max);
        self.waiting.set_max(max_waiting);
    }

    /// The requests being served.
    pub fn places(&self) -> &ConcurrencyLimit {
        &self.places
    }

    /// The requests that wait.
    pub fn waiting(&self) -> &ConcurrencyLimit {
        &self.waiting
    }

    /// Takes a place, which [`Self::leave`] gives back.
    #[inline]
    pub(crate) fn enter(&self) -> Result<(), LimitReached> {
        self.places.enter().or_else(|full| self.take_grant(full))
    }

    /// Takes a place that was granted to requests which do not wait any more.
    #[cold]
    fn take_grant(&self, full: LimitReached) -> Result<(), LimitReached> {
        match self.granted.try_acquire() {
            Ok(grant) => {
                grant.forget();
                Ok(())
            }
            Err(_) => Err(full),
        }
    }

    /// Returns a place, or hands it over to a worker with waiting requests.
    #[inline]
    pub(crate) fn leave(&self) {
        self.places.leave();
        // After that, in the order that all threads see: a request that found no place before has
        // counted itself as waiting, or finds one now.
        if self.waiting.held() > 0 {
            self.grant();
        }
    }

    #[cold]
    fn grant(&self) {
        if self.places.enter().is_ok() {
            self.granted.add_permits(1);
        }
    }

    /// Waits for a place in turn with the other workers. [`Self::leave`] gives it back.
    pub(crate) async fn granted(&self) {
        // The semaphore is never closed.
        if let Ok(grant) = self.granted.acquire().await {
            grant.forget();
        }
    }

    /// Frees the places that were granted after the last waiting request had gone.
    pub(crate) fn free_grants(&self) {
        while self.waiting.held() == 0
            && let Ok(grant) = self.granted.try_acquire()
        {
            grant.forget();
            self.leave();
        }
    }
}
