//! Which requests of a worker are served now, and which wait for their turn.

use crate::in_flight_limit::InFlightLimit;
use proxy_limits::{
    ClientKey, KeySeed, LimitReached, Permit, RequestQueue, RequestQueueSettings, Ticket,
};
use proxy_model::Limits;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// A worker's share of the requests in flight: those it serves, and its queue.
#[derive(Debug)]
pub struct Admission {
    limit: Arc<InFlightLimit>,
    in_flight: Cell<u32>,
    max: Cell<u32>,
    queue: RefCell<Queue>,
    /// Told when requests wait and there is room in this worker.
    has_waiting: Notify,
}

#[derive(Debug)]
struct Queue {
    order: RequestQueue,
    requests: HashMap<Ticket, WaitingRequest>,
}

#[derive(Debug)]
struct WaitingRequest {
    answer: oneshot::Sender<Result<Place, Refusal>>,
    /// Its place in the bound on all queues.
    permit: Permit,
}

/// A place among the requests in flight, of the worker and of all; given back on drop.
#[derive(Debug)]
pub(crate) struct Place(Rc<Admission>);

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// All workers together serve as many as they may, and none may wait.
    InFlight(LimitReached),
    /// This worker does.
    InFlightOfWorker(LimitReached),
    /// As many wait as may.
    QueueFull(LimitReached),
    /// It has waited this long, which is all that it may.
    WaitedFor(Duration),
    /// The process uses too much memory.
    MemoryShort,
}

/// What leaves the queue when the client does.
struct Waiter<'a> {
    admission: &'a Admission,
    ticket: Ticket,
    answer: oneshot::Receiver<Result<Place, Refusal>>,
}

impl Admission {
    /// A worker that serves nothing yet. `seed` is for the table of its clients.
    #[must_use]
    pub(crate) fn new(limit: Arc<InFlightLimit>, limits: &Limits, seed: KeySeed) -> Self {
        Self {
            limit,
            in_flight: Cell::new(0),
            max: Cell::new(*limits.max_in_flight_requests_per_worker),
            queue: RefCell::new(Queue {
                order: RequestQueue::new(queue_settings(limits), seed),
                requests: HashMap::new(),
            }),
            has_waiting: Notify::new(),
        }
    }

    /// Applies `limits` to requests that come from now on.
    pub(crate) fn apply(self: &Rc<Self>, limits: &Limits) {
        self.max.set(*limits.max_in_flight_requests_per_worker);
        self.queue.borrow_mut().order.apply(queue_settings(limits));
        self.admit_waiting();
    }

    /// A place, if there is one and no request waits anywhere.
    #[inline]
    pub(crate) fn try_enter(self: &Rc<Self>) -> Option<Place> {
        let has_room = self.has_room() && self.limit.waiting().held() == 0;
        (has_room && self.limit.enter().is_ok()).then(|| self.place())
    }

    /// Waits for a place, in turn with the requests of other clients. Dropped, it leaves the queue.
    pub(crate) async fn wait(
        self: &Rc<Self>,
        client: ClientKey,
        now: Duration,
    ) -> Result<Place, Refusal> {
        let (answer, answered) = oneshot::channel();
        let ticket = self.push(client, now, answer)?;
        let mut waiter = Waiter {
            admission: self,
            ticket,
            answer: answered,
        };
        self.admit_waiting();
        let answered = (&mut waiter.answer).await;
        answered.unwrap_or_else(|_| Err(self.refusal()))
    }

    fn push(
        &self,
        client: ClientKey,
        now: Duration,
        answer: oneshot::Sender<Result<Place, Refusal>>,
    ) -> Result<Ticket, Refusal> {
        let now_ns = as_ns(now);
        let mut queue = self.queue.borrow_mut();
        let Queue { order, requests } = &mut *queue;
        if order.settings().max_requests == 0 {
            return Err(self.refusal());
        }
        let (ticket, permit) = match self.limit.waiting().acquire() {
            Ok(permit) => match order.push(client, now_ns) {
                Ok(queued) => (queued.ticket, permit),
                Err(_) => return Err(self.queue_full()),
            },
            Err(full) => {
                let pushed = order.push_in_place(client, now_ns);
                let queued = pushed.map_err(|_| Refusal::QueueFull(full))?;
                let displaced = queued.displaced.and_then(|other| requests.remove(&other));
                let Some(WaitingRequest { answer, permit }) = displaced else {
                    order.remove(queued.ticket);
                    return Err(Refusal::QueueFull(full));
                };
                // Its client may leave at the same time.
                drop(answer.send(Err(Refusal::QueueFull(full))));
                (queued.ticket, permit)
            }
        };
        requests.insert(ticket, WaitingRequest { answer, permit });
        Ok(ticket)
    }

    /// Serves the requests of the queue as places come free, as long as the worker lives.
    pub async fn serve_queue(self: Rc<Self>) {
        loop {
            self.has_waiting.notified().await;
            while self.wants_place() {
                self.limit.granted().await;
                let place = self.place();
                if self.has_waiting() && self.in_flight.get() <= self.max.get() {
                    self.answer_next(place);
                }
            }
        }
    }

    /// Looks at the queue once a tick: requests that have waited for too long at `now` are refused, or
    /// all when the process is short of memory.
    pub fn tick(self: &Rc<Self>, now: Duration, is_memory_short: bool) {
        if !self.has_waiting() {
            self.limit.free_grants();
            return;
        }
        let now_ns = as_ns(now);
        loop {
            let mut queue = self.queue.borrow_mut();
            let wait = queue.order.settings().max_wait;
            let (ticket, refusal) = if is_memory_short {
                (queue.order.pop_oldest(), Refusal::MemoryShort)
            } else {
                (queue.order.pop_expired(now_ns), Refusal::WaitedFor(wait))
            };
            let Some(request) = ticket.and_then(|ticket| queue.requests.remove(&ticket)) else {
                break;
            };
            drop(queue);
            // Its client may leave at the same time.
            drop(request.answer.send(Err(refusal)));
        }
        self.admit_waiting();
    }

    /// Requests of this worker that wait.
    pub fn waiting(&self) -> usize {
        self.queue.borrow().order.len()
    }

    /// Admits requests of the queue for as long as there are places.
    fn admit_waiting(self: &Rc<Self>) {
        while self.wants_place() {
            if self.limit.enter().is_err() {
                self.has_waiting.notify_one();
                return;
            }
            let place = self.place();
            self.answer_next(place);
        }
    }

    fn answer_next(&self, place: Place) {
        let mut queue = self.queue.borrow_mut();
        let next = queue.order.pop();
        let request = next.and_then(|ticket| queue.requests.remove(&ticket));
        drop(queue);
        if let Some(WaitingRequest { answer, permit }) = request {
            drop(permit);
            // Its client may leave at the same time: then the place is given back.
            drop(answer.send(Ok(place)));
        }
    }

    fn place(self: &Rc<Self>) -> Place {
        self.in_flight.set(self.in_flight.get() + 1);
        Place(Rc::clone(self))
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.in_flight.get() < self.max.get()
    }

    fn has_waiting(&self) -> bool {
        !self.queue.borrow().order.is_empty()
    }

    fn wants_place(&self) -> bool {
        self.has_room() && self.has_waiting()
    }

    /// Why there is no place, where no request may wait.
    fn refusal(&self) -> Refusal {
        let (held, max) = (self.in_flight.get(), self.max.get());
        if max <= held {
            return Refusal::InFlightOfWorker(LimitReached { held, max });
        }
        let places = self.limit.places();
        let (held, max) = (places.held(), places.max());
        Refusal::InFlight(LimitReached { held, max })
    }

    fn queue_full(&self) -> Refusal {
        let waiting = self.limit.waiting();
        let (held, max) = (waiting.held(), waiting.max());
        Refusal::QueueFull(LimitReached { held, max })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Self(admission) = self;
        let in_flight = admission.in_flight.get().saturating_sub(1);
        admission.in_flight.set(in_flight);
        admission.limit.leave();
        if admission.limit.waiting().held() > 0 {
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
