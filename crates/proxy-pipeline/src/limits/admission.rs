//! Admission of a worker's requests: served now, or queued.

use crate::limits::in_flight_limit::InFlightLimit;
use proxy_limits::{
    Claim, FairShares, KeySeed, LimitReached, Occupancy, Permit, RequestQueue,
    RequestQueueSettings, ShareCheck, Ticket, fair_share,
};
use proxy_model::Limits;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// A worker's share of the requests in flight: those it serves, and its queue.
///
/// The first half of the permits is unshared. In the second half, each route, upstream and client
/// is held to its share: see [`FairShares`]. Each worker has a table for its own permits, and one
/// table covers all workers. A request is queued only while the permits of its worker or of all
/// workers are taken, or its shares are used up.
#[derive(Debug)]
pub struct Admission {
    limit: Arc<InFlightLimit>,
    in_flight: Cell<u32>,
    max: Cell<u32>,
    shares: RefCell<FairShares>,
    queue: RefCell<Queue>,
    /// Notified when requests wait for a permit of all workers and this worker has room.
    has_waiting: Notify,
}

#[derive(Debug)]
struct Queue {
    order: RequestQueue,
    requests: HashMap<Ticket, WaitingRequest>,
}

#[derive(Debug)]
struct WaitingRequest {
    answer: oneshot::Sender<Result<InFlightPermit, Refusal>>,
    claim: Claim,
    /// Permit of the limit on waiting requests of all workers.
    permit: Permit,
}

/// A permit for a request in flight, of the worker and of all workers; released on drop.
#[derive(Debug)]
pub(crate) struct InFlightPermit {
    admission: Rc<Admission>,
    /// `None` if it was taken while half of the permits were free.
    counted: Option<Box<CountedClaim>>,
}

/// The holders that a permit counts against.
#[derive(Clone, Copy, Debug)]
struct CountedClaim {
    claim: Claim,
    /// Counted in the table of all workers' permits, in addition to this worker's own table.
    counts_globally: bool,
}

/// The limit that leaves no permit for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) full: LimitReached,
    /// True for the limit of this worker, false for the limit of all workers.
    pub(crate) is_worker_limit: bool,
    /// Permits are free, but not for the route, the upstream or the client of the request.
    pub(crate) is_share: bool,
}

/// Reason to refuse a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No permit is free, and there is no queue.
    InFlight(Shortage),
    QueueFull(LimitReached),
    /// No permit became free in the time that the request may wait.
    Waited(Shortage),
    /// The process uses too much memory.
    MemoryShort,
}

/// Removes the request from the queue on drop, when its client leaves.
struct Waiter<'a> {
    admission: &'a Admission,
    ticket: Ticket,
    answer: oneshot::Receiver<Result<InFlightPermit, Refusal>>,
}

impl Admission {
    /// A worker without requests. `seed` is the hash seed of its table of clients.
    #[must_use]
    pub(crate) fn new(limit: Arc<InFlightLimit>, limits: &Limits, seed: KeySeed) -> Self {
        Self {
            limit,
            in_flight: Cell::new(0),
            max: Cell::new(*limits.max_in_flight_requests_per_worker),
            shares: RefCell::new(FairShares::new(seed)),
            queue: RefCell::new(Queue {
                order: RequestQueue::new(queue_settings(limits), seed),
                requests: HashMap::new(),
            }),
            has_waiting: Notify::new(),
        }
    }

    /// Applies `limits` to requests that arrive from now on.
    pub(crate) fn apply(self: &Rc<Self>, limits: &Limits) {
        self.max.set(*limits.max_in_flight_requests_per_worker);
        self.queue.borrow_mut().order.apply(queue_settings(limits));
        self.admit_waiting();
    }

    /// The holders that a permit of the request counts against.
    pub(crate) fn claim(&self, route: &str, upstream: &str, client: IpAddr) -> Claim {
        self.limit.claim(route, upstream, client)
    }

    /// A permit, if there is one for the request; its claim is read only when permits are short.
    #[inline]
    pub(crate) fn try_enter(
        self: &Rc<Self>,
        claim: impl FnOnce() -> Claim,
    ) -> Option<InFlightPermit> {
        if !self.has_room() || self.limit.is_wanted() {
            return None;
        }
        let all = self.limit.enter().ok()?;
        let own = self.occupancy();
        if own.is_short() || all.is_short() {
            return self.enter_short(claim(), own, all);
        }
        Some(self.take_permit(None))
    }

    /// Takes a permit among all workers' permits, if the request's shares allow it.
    #[cold]
    fn enter_short(
        self: &Rc<Self>,
        claim: Claim,
        own: Occupancy,
        all: Occupancy,
    ) -> Option<InFlightPermit> {
        let counts_globally = all.is_short();
        let mut is_admitted = self.shares.borrow().admits(claim, own.free());
        if is_admitted && counts_globally {
            // Tested and counted under one lock: no two workers take the same free permit for one
            // holder.
            let mut shares = self.limit.shares();
            is_admitted = shares.admits(claim, all.free());
            if is_admitted {
                shares.enter(claim);
            }
        }
        if !is_admitted {
            self.limit.leave();
            return None;
        }
        Some(self.take_permit(Some(CountedClaim {
            claim,
            counts_globally,
        })))
    }

    /// Waits for a permit, in turn with the requests of other routes and clients. Dropped, it
    /// leaves the queue.
    pub(crate) async fn wait(
        self: &Rc<Self>,
        claim: Claim,
        now: Duration,
    ) -> Result<InFlightPermit, Refusal> {
        let (answer, answered) = oneshot::channel();
        let ticket = self.push(claim, now, answer)?;
        let mut waiter = Waiter {
            admission: self,
            ticket,
            answer: answered,
        };
        self.admit_waiting();
        let answered = (&mut waiter.answer).await;
        answered.unwrap_or_else(|_| Err(Refusal::InFlight(self.shortage(claim))))
    }

    fn push(
        &self,
        claim: Claim,
        now: Duration,
        answer: oneshot::Sender<Result<InFlightPermit, Refusal>>,
    ) -> Result<Ticket, Refusal> {
        let now_ns = as_ns(now);
        let mut queue = self.queue.borrow_mut();
        let Queue { order, requests } = &mut *queue;
        if order.settings().max_requests == 0 {
            return Err(Refusal::InFlight(self.shortage(claim)));
        }
        let (ticket, permit) = match self.queue_permit(order.len()) {
            Ok(permit) => match order.push(claim, now_ns) {
                Ok(queued) => {
                    // A reload may apply another maximum to all queues before it does to this one.
                    drop(refuse_displaced(requests, queued.displaced, || {
                        self.queue_full()
                    }));
                    (queued.ticket, permit)
                }
                Err(_) => return Err(self.queue_full()),
            },
            Err(full) => {
                let pushed = order.push_in_place(claim, now_ns);
                let queued = pushed.map_err(|_| Refusal::QueueFull(full))?;
                let refusal = || Refusal::QueueFull(full);
                let Some(permit) = refuse_displaced(requests, queued.displaced, refusal) else {
                    order.remove(queued.ticket);
                    return Err(refusal());
                };
                (queued.ticket, permit)
            }
        };
        let request = WaitingRequest {
            answer,
            claim,
            permit,
        };
        requests.insert(ticket, request);
        Ok(ticket)
    }

    /// A permit of the limit on all queues. This worker, with `waiting` requests in its own, has a
    /// fair share of them.
    fn queue_permit(&self, waiting: usize) -> Result<Permit, LimitReached> {
        let all = self.limit.waiting();
        let (held, max) = (all.held(), all.max());
        let free = Occupancy { held, max }.free();
        if waiting < fair_share(free) as usize {
            return all.acquire();
        }
        Err(LimitReached { held, max })
    }

    /// Hands permits to queued requests as they become free, for the lifetime of the worker.
    pub async fn serve_queue(self: Rc<Self>) {
        loop {
            self.has_waiting.notified().await;
            while self.can_admit_waiting() {
                let all = self.limit.granted().await;
                if !self.answer_next(all) {
                    // The permit was returned: every waiting request is over its share.
                    break;
                }
            }
        }
    }

    /// Checks the queue once per tick: refuses requests that have waited too long at `now`, or all
    /// of them while the process is short of memory.
    pub fn tick(self: &Rc<Self>, now: Duration, is_memory_short: bool) {
        if !self.has_waiting() {
            self.limit.free_grants();
            return;
        }
        let now_ns = as_ns(now);
        loop {
            let mut queue = self.queue.borrow_mut();
            let ticket = if is_memory_short {
                queue.order.pop_oldest()
            } else {
                queue.order.pop_expired(now_ns)
            };
            let Some(request) = ticket.and_then(|ticket| queue.requests.remove(&ticket)) else {
                break;
            };
            drop(queue);
            let refusal = if is_memory_short {
                Refusal::MemoryShort
            } else {
                Refusal::Waited(self.shortage(request.claim))
            };
            // Fails if the client has just disconnected.
            drop(request.answer.send(Err(refusal)));
        }
        self.admit_waiting();
    }

    /// Requests of this worker that are served.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.get()
    }

    /// Requests of this worker that wait.
    pub fn waiting(&self) -> usize {
        self.queue.borrow().order.len()
    }

    /// Admits requests of the queue for as long as there are permits.
    fn admit_waiting(self: &Rc<Self>) {
        while self.can_admit_waiting() {
            let Ok(all) = self.limit.enter() else {
                self.has_waiting.notify_one();
                return;
            };
            if !self.answer_next(all) {
                return;
            }
        }
    }

    /// Hands the permit taken among all workers' permits to the next eligible request. Returns it
    /// if none is eligible.
    fn answer_next(self: &Rc<Self>, all: Occupancy) -> bool {
        let counts_globally = all.is_short();
        let mut queue = self.queue.borrow_mut();
        let Some((ticket, claim)) = self.pop(&mut queue.order, all) else {
            drop(queue);
            self.limit.leave();
            return false;
        };
        let request = queue.requests.remove(&ticket);
        drop(queue);
        let in_flight = self.take_permit(Some(CountedClaim {
            claim,
            counts_globally,
        }));
        if let Some(WaitingRequest { answer, permit, .. }) = request {
            drop(permit);
            // Fails if the client has just disconnected: then the permit is released.
            drop(answer.send(Ok(in_flight)));
        }
        true
    }

    /// Takes the next request that the shares admit, and counts it among the permits of all workers
    /// if these are short.
    fn pop(&self, order: &mut RequestQueue, all: Occupancy) -> Option<(Ticket, Claim)> {
        let shares = self.shares.borrow();
        let own = ShareCheck {
            shares: &shares,
            free: self.occupancy().free(),
        };
        if !all.is_short() {
            return order.pop(&[own]);
        }
        let mut shares = self.limit.shares();
        let of_all = ShareCheck {
            shares: &shares,
            free: all.free(),
        };
        let next = order.pop(&[own, of_all]);
        if let Some((_, claim)) = next {
            shares.enter(claim);
        }
        next
    }

    fn take_permit(self: &Rc<Self>, counted: Option<CountedClaim>) -> InFlightPermit {
        self.in_flight.set(self.in_flight.get() + 1);
        if let Some(CountedClaim { claim, .. }) = counted {
            self.shares.borrow_mut().enter(claim);
        }
        InFlightPermit {
            admission: Rc::clone(self),
            counted: counted.map(Box::new),
        }
    }

    #[inline]
    fn occupancy(&self) -> Occupancy {
        Occupancy {
            held: self.in_flight.get(),
            max: self.max.get(),
        }
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.in_flight.get() < self.max.get()
    }

    fn has_waiting(&self) -> bool {
        !self.queue.borrow().order.is_empty()
    }

    fn can_admit_waiting(&self) -> bool {
        self.has_room() && self.has_waiting()
    }

    /// The limit without a permit for a request: the used-up share, or the limit with fewer free
    /// permits.
    fn shortage(&self, claim: Claim) -> Shortage {
        let permits = self.limit.permits();
        let (held, max) = (permits.held(), permits.max());
        let (own, all) = (self.occupancy(), Occupancy { held, max });
        let has_permits = own.free() > 0 && all.free() > 0;
        let is_over_own = has_permits && !self.shares.borrow().admits(claim, own.free());
        let is_over_all =
            has_permits && all.is_short() && !self.limit.shares().admits(claim, all.free());
        let is_share = is_over_own || is_over_all;
        let is_worker_limit = is_over_own || !is_over_all && own.free() <= all.free();
        let least = if is_worker_limit { own } else { all };
        Shortage {
            full: LimitReached {
                held: least.held,
                max: if is_share { least.held } else { least.max },
            },
            is_worker_limit,
            is_share,
        }
    }

    fn queue_full(&self) -> Refusal {
        let waiting = self.limit.waiting();
        let (held, max) = (waiting.held(), waiting.max());
        Refusal::QueueFull(LimitReached { held, max })
    }
}

/// Refuses the waiting request that a new one displaced, and returns its permit.
fn refuse_displaced(
    requests: &mut HashMap<Ticket, WaitingRequest>,
    displaced: Option<Ticket>,
    refusal: impl FnOnce() -> Refusal,
) -> Option<Permit> {
    let WaitingRequest { answer, permit, .. } = requests.remove(&displaced?)?;
    // Fails if the client has just disconnected.
    drop(answer.send(Err(refusal())));
    Some(permit)
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        let Self { admission, counted } = self;
        if let Some(counted) = counted.take() {
            let CountedClaim {
                claim,
                counts_globally,
            } = *counted;
            admission.shares.borrow_mut().leave(claim);
            if counts_globally {
                admission.limit.shares().leave(claim);
            }
        }
        let in_flight = admission.in_flight.get().saturating_sub(1);
        admission.in_flight.set(in_flight);
        admission.limit.leave();
        if admission.has_waiting() {
            admission.admit_waiting();
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut queue = self.admission.queue.borrow_mut();
        queue.order.remove(self.ticket);
        let request = queue.requests.remove(&self.ticket);
        drop(queue);
        drop(request);
    }
}

fn queue_settings(limits: &Limits) -> RequestQueueSettings {
    RequestQueueSettings {
        max_requests: *limits.max_queued_requests,
        max_wait: *limits.max_queue_wait,
    }
}

fn as_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
