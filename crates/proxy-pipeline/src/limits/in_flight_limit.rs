//! Permits for requests in flight, over all workers.

use proxy_limits::{
    Claim, ClientKey, ConcurrencyLimit, Destination, FairShares, KeySeed, LimitReached, Occupancy,
};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Limits on requests in flight and on waiting requests, over all workers.
///
/// While workers wait, a released permit goes to the worker that has waited longest, so that a new
/// request does not overtake.
#[derive(Debug)]
pub struct InFlightLimit {
    permits: ConcurrencyLimit,
    waiting: ConcurrencyLimit,
    /// Workers that wait for a permit.
    wanted: AtomicU32,
    /// Permits handed over to a worker with waiting requests. Each still counts as taken.
    granted: Semaphore,
    /// Permits of all workers that were taken while half of them or fewer were free.
    shares: Lock<FairShares>,
    seed: KeySeed,
}

#[expect(
    clippy::disallowed_types,
    reason = "held for look-ups in a table, and only while half of the permits of all workers are taken"
)]
type Lock<T> = std::sync::Mutex<T>;

/// A worker's wait for a permit, until it is dropped.
struct WaitingWorker<'a>(&'a AtomicU32);

impl InFlightLimit {
    /// A limit of `max` concurrent requests and `max_waiting` queued ones. `seed` is the hash seed
    /// of the table of holders.
    #[must_use]
    pub fn new(max: u32, max_waiting: u32, seed: KeySeed) -> Self {
        Self {
            permits: ConcurrencyLimit::new(max),
            waiting: ConcurrencyLimit::new(max_waiting),
            wanted: AtomicU32::new(0),
            granted: Semaphore::new(0),
            shares: Lock::new(FairShares::new(seed)),
            seed,
        }
    }

    /// The holders of a request, by names, which are stable across plans; equal in all workers.
    pub(crate) fn claim(&self, route: &str, upstream: &str, client: IpAddr) -> Claim {
        Claim {
            destination: Destination {
                route: self.seed.hash_one(route),
                upstream: self.seed.hash_one(upstream),
            },
            client: ClientKey::from(client),
        }
    }

    /// Changes both limits for new requests.
    pub fn set_max(&self, max: u32, max_waiting: u32) {
        self.permits.set_max(max);
        self.waiting.set_max(max_waiting);
    }

    /// The requests being served.
    pub fn permits(&self) -> &ConcurrencyLimit {
        &self.permits
    }

    /// The requests that wait.
    pub fn waiting(&self) -> &ConcurrencyLimit {
        &self.waiting
    }

    /// Returns true if a worker waits for a permit.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    /// Takes a permit, to be released by [`Self::leave`]. Returns the occupancy before it.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Occupancy, LimitReached> {
        self.permits.enter().or_else(|full| self.take_grant(full))
    }

    /// Takes a permit that was granted for requests that have stopped waiting.
    #[cold]
    fn take_grant(&self, full: LimitReached) -> Result<Occupancy, LimitReached> {
        match self.granted.try_acquire() {
            Ok(grant) => {
                grant.forget();
                Ok(self.last_permit())
            }
            Err(_) => Err(full),
        }
    }

    /// The occupancy with a single free permit.
    fn last_permit(&self) -> Occupancy {
        let max = self.permits.max();
        let held = max.saturating_sub(1);
        Occupancy { held, max }
    }

    /// Returns a permit, or hands it over to a worker with waiting requests.
    #[inline]
    pub(crate) fn leave(&self) {
        self.permits.leave();
        // The order of these accesses is common to all threads: a worker that found no permit
        // before is counted as waiting, or finds one now.
        if self.is_wanted() {
            self.grant();
        }
    }

    /// The holders of the permits that were taken while [`Occupancy::is_short`] held over all
    /// workers. One table for all workers: with one table per worker, a holder would have a share
    /// in each.
    pub(crate) fn shares(&self) -> MutexGuard<'_, FairShares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn grant(&self) {
        if self.permits.enter().is_ok() {
            self.granted.add_permits(1);
        }
    }

    /// Waits for a permit in turn with the other workers. To be released by [`Self::leave`].
    /// Returns the occupancy before it.
    pub(crate) async fn granted(&self) -> Occupancy {
        let _wanted = WaitingWorker::new(&self.wanted);
        if let Ok(before) = self.permits.enter() {
            return before;
        }
        // The semaphore is never closed.
        if let Ok(grant) = self.granted.acquire().await {
            grant.forget();
        }
        self.last_permit()
    }

    /// Frees the permits that were granted after the last worker had stopped waiting.
    pub(crate) fn free_grants(&self) {
        while !self.is_wanted()
            && let Ok(grant) = self.granted.try_acquire()
        {
            grant.forget();
            self.leave();
        }
    }
}

impl<'a> WaitingWorker<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for WaitingWorker<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
