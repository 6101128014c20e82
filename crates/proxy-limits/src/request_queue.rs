//! A queue of waiting requests, fair between routes and between clients.

mod slots;

use crate::client_key::KeySeed;
use crate::fair_shares::{Claim, Destination, ShareCheck};
use slots::{List, SlotRemoval, Slots, Waiting};
use std::collections::HashMap;
use std::time::Duration;

pub use slots::Ticket;

/// Settings of a queue. Destructured by naming every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestQueueSettings {
    /// Maximum number of waiting requests; with 0 none waits.
    pub max_requests: u32,
    /// Maximum wait of one request.
    pub max_wait: Duration,
}

/// Requests that a queue has memory for from its beginning.
const RESERVED_REQUESTS: u32 = 1_024;

/// The result of queueing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Identifies the request in its queue.
    pub ticket: Ticket,
    /// A request displaced by it: the newest one of the client with the most waiting requests, for
    /// the destination with the most. It is no longer queued.
    pub displaced: Option<Ticket>,
}

/// The queue is full, and no other destination or client has more waiting requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{max_requests} requests wait already")]
pub struct QueueFull {
    /// The maximum length of the queue.
    pub max_requests: u32,
}

/// Waiting requests: destinations in rotation, the clients of each destination in rotation, and
/// each client's requests in order of arrival. One client with a thousand requests delays another
/// one by one request, not by a thousand, and so does one route.
///
/// A plain data structure for one thread: the caller keeps a waker for each [`Ticket`], calls
/// [`Self::pop`] when a slot is free, [`Self::pop_expired`] when time has passed, and
/// [`Self::remove`] when a client disconnects. All of them are without allocation up to 1 024
/// requests and take constant time, with two exceptions: a [`Self::push`] to a full queue visits
/// every client, and a [`Self::pop`] passes over destinations and clients that have used up their
/// shares.
#[derive(Debug)]
pub struct RequestQueue {
    settings: RequestQueueSettings,
    slots: Slots,
    // In order of arrival, which is also the order of deadlines.
    arrivals: List,
    // The requests of each client for each destination.
    clients: HashMap<Claim, List, KeySeed>,
    destinations: HashMap<Destination, Waiters, KeySeed>,
    // The heads of the destinations' rotations, in rotation.
    turns: List,
}

/// Requests for one destination.
#[derive(Debug, Default)]
struct Waiters {
    /// The heads of the clients' lists, in rotation.
    turns: List,
    length: usize,
}

impl RequestQueue {
    /// An empty queue, with memory for its maximum length, at most for 1 024 requests. `seed`
    /// prevents clients from choosing addresses with colliding hashes.
    #[must_use]
    pub fn new(settings: RequestQueueSettings, seed: KeySeed) -> Self {
        let capacity = settings.max_requests.min(RESERVED_REQUESTS) as usize;
        Self {
            settings,
            slots: Slots::with_capacity(capacity),
            arrivals: List::default(),
            // Twice its maximum size: a table that is never more than half full rehashes in place.
            clients: HashMap::with_capacity_and_hasher(2 * capacity, seed),
            destinations: HashMap::with_capacity_and_hasher(2 * capacity, seed),
            turns: List::default(),
        }
    }

    /// Applies `settings` to new requests. Queued requests stay queued.
    pub fn apply(&mut self, settings: RequestQueueSettings) {
        self.settings = settings;
    }

    /// The settings of the queue.
    pub const fn settings(&self) -> RequestQueueSettings {
        self.settings
    }

    /// Queues a request at `now_ns`.
    ///
    /// # Errors
    /// [`QueueFull`] when the queue is full and [`Self::push_in_place`] finds no request to
    /// displace.
    pub fn push(&mut self, claim: Claim, now_ns: u64) -> Result<Queued, QueueFull> {
        if self.len() < self.settings.max_requests as usize {
            let ticket = self.insert(claim, now_ns);
            return Ok(Queued {
                ticket,
                displaced: None,
            });
        }
        self.push_in_place(claim, now_ns)
    }

    /// Queues a request at `now_ns` in the place of another, however long the queue is: for a bound
    /// that several queues share.
    ///
    /// # Errors
    /// [`QueueFull`] when no other destination, and no other client of the same one, has at least
    /// two more waiting.
    pub fn push_in_place(&mut self, claim: Claim, now_ns: u64) -> Result<Queued, QueueFull> {
        let max_requests = self.settings.max_requests;
        let displaced = self.displace(claim).ok_or(QueueFull { max_requests })?;
        Ok(Queued {
            ticket: self.insert(claim, now_ns),
            displaced: Some(displaced),
        })
    }

    fn insert(&mut self, claim: Claim, now_ns: u64) -> Ticket {
        let max_wait = self.settings.max_wait;
        let wait_ns = u64::try_from(max_wait.as_nanos()).unwrap_or(u64::MAX);
        let ticket = self.slots.insert(Waiting {
            claim,
            deadline_ns: now_ns.saturating_add(wait_ns),
        });
        let slot = ticket.slot;
        self.slots.arrivals.push_back(&mut self.arrivals, slot);
        let waiters = self.destinations.entry(claim.destination).or_default();
        if waiters.length == 0 {
            self.slots.destinations.push_back(&mut self.turns, slot);
        }
        waiters.length += 1;
        let own = self.clients.entry(claim).or_default();
        if own.is_empty() {
            self.slots.turns.push_back(&mut waiters.turns, slot);
        }
        self.slots.own.push_back(own, slot);
        ticket
    }

    /// The next request in rotation that all `checks` admit: the oldest of the client that has
    /// waited longest for its turn. It is no longer queued.
    pub fn pop(&mut self, checks: &[ShareCheck<'_>]) -> Option<(Ticket, Claim)> {
        let (slot, claim) = self.next(checks)?;
        let ticket = self.slots.ticket(slot)?;
        self.take(slot, SlotRemoval::Used);
        Some((ticket, claim))
    }

    fn next(&self, checks: &[ShareCheck<'_>]) -> Option<(u32, Claim)> {
        let slots = &self.slots;
        let heads = slots.destinations.iter(&self.turns);
        let open = heads.filter_map(|slot| {
            let destination = slots.waiting(slot)?.claim.destination;
            let is_open = checks.iter().all(|check| check.may_admit(destination));
            is_open
                .then(|| self.destinations.get(&destination))
                .flatten()
        });
        let clients = open.flat_map(|waiters| slots.turns.iter(&waiters.turns));
        let mut admitted = clients.filter_map(|slot| {
            let claim = slots.waiting(slot)?.claim;
            let is_admitted = checks.iter().all(|check| check.admits(claim));
            is_admitted.then_some((slot, claim))
        });
        admitted.next()
    }

    /// A request that has reached its maximum wait at `now_ns`, longest first. It is no longer
    /// queued.
    pub fn pop_expired(&mut self, now_ns: u64) -> Option<Ticket> {
        let slot = self.arrivals.first()?;
        let expired = self.slots.waiting(slot)?.deadline_ns <= now_ns;
        expired.then(|| self.pop_slot(slot)).flatten()
    }

    /// Any request, oldest first, for emptying the queue. It is no longer queued.
    pub fn pop_oldest(&mut self) -> Option<Ticket> {
        let slot = self.arrivals.first()?;
        self.pop_slot(slot)
    }

    /// Removes a request after its client has disconnected. False if it was no longer queued.
    pub fn remove(&mut self, ticket: Ticket) -> bool {
        let queued = self.slots.ticket(ticket.slot) == Some(ticket);
        if queued {
            self.take(ticket.slot, SlotRemoval::Kept);
        }
        queued
    }

    /// Time when the next request reaches its maximum wait, in nanoseconds as passed to
    /// [`Self::push`].
    pub fn next_deadline_ns(&self) -> Option<u64> {
        Some(self.slots.waiting(self.arrivals.first()?)?.deadline_ns)
    }

    /// Number of waiting requests.
    pub const fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// Returns true if no request is waiting.
    pub const fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    fn pop_slot(&mut self, slot: u32) -> Option<Ticket> {
        let ticket = self.slots.ticket(slot)?;
        self.take(slot, SlotRemoval::Kept);
        Some(ticket)
    }

    /// Removes the request of `slot` from every list.
    fn take(&mut self, slot: u32, turn: SlotRemoval) {
        let Some(Waiting { claim, .. }) = self.slots.waiting(slot) else {
            return;
        };
        self.slots.arrivals.remove(&mut self.arrivals, slot);
        if let Some(waiters) = self.destinations.get_mut(&claim.destination)
            && let Some(own) = self.clients.get_mut(&claim)
        {
            let head = waiters.turns.first();
            let was_first = own.first() == Some(slot);
            self.slots.own.remove(own, slot);
            waiters.length -= 1;
            if was_first {
                let next = own.first();
                let links = &mut self.slots.turns;
                links.advance(&mut waiters.turns, slot, next, turn);
                if next.is_none() {
                    self.clients.remove(&claim);
                }
            }
            let next = waiters.turns.first();
            if let Some(head) = head {
                let links = &mut self.slots.destinations;
                links.advance(&mut self.turns, head, next, turn);
            }
            if next.is_none() {
                self.destinations.remove(&claim.destination);
            }
        }
        self.slots.free(slot);
    }

    /// Makes room for a request: removes the newest request of the client with the most for the
    /// destination with the most, if that destination has more than the request's own will have.
    /// Otherwise the clients of the request's own destination are compared alike.
    fn displace(&mut self, claim: Claim) -> Option<Ticket> {
        let own = self.destinations.get(&claim.destination);
        let will_have = own.map_or(0, |waiters| waiters.length) + 1;
        let all = self.destinations.iter();
        let (most, waiters) = all.max_by_key(|(_, waiters)| waiters.length)?;
        let is_other = waiters.length > will_have && *most != claim.destination;
        let from = if is_other { *most } else { claim.destination };
        let will_have = if is_other {
            0
        } else {
            self.clients.get(&claim).map_or(0, List::len) + 1
        };
        let clients = self.clients.iter();
        let clients = clients.filter(|(claim, _)| claim.destination == from);
        let (_, greatest) = clients.max_by_key(|(_, own)| own.len())?;
        if greatest.len() <= will_have {
            return None;
        }
        self.pop_slot(greatest.last()?)
    }
}

#[cfg(test)]
mod tests;
