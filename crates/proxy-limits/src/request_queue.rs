//! A queue of waiting requests, fair between clients.

mod slots;

use crate::client_key::{ClientKey, KeySeed};
use slots::{List, Slots, Waiting};
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
    /// Its ticket.
    pub ticket: Ticket,
    /// A request displaced by it: the newest one of the client with the most waiting requests. It
    /// is no longer queued.
    pub displaced: Option<Ticket>,
}

/// The queue is full, and no client has more waiting requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{max_requests} requests wait already")]
pub struct QueueFull {
    /// The maximum length of the queue.
    pub max_requests: u32,
}

/// Waiting requests: clients in rotation, and each client's requests in order of arrival. One
/// client with a thousand requests delays another one by one request, not by a thousand.
///
/// A plain data structure for one thread: the caller keeps a waker for each [`Ticket`], calls
/// [`Self::pop`] when a slot is free, [`Self::pop_expired`] when time has passed, and
/// [`Self::remove`] when a client disconnects. All of them take constant time, without allocation up
/// to 1 024 requests; only a [`Self::push`] to a full queue visits every client.
#[derive(Debug)]
pub struct RequestQueue {
    settings: RequestQueueSettings,
    slots: Slots,
    // In order of arrival, and so of deadlines.
    arrivals: List,
    clients: HashMap<ClientKey, List, KeySeed>,
    // The heads of the clients' lists, in rotation.
    turns: List,
}

/// Whether a client that lost a request goes to the end of the rotation.
#[derive(Clone, Copy)]
enum Turn {
    Used,
    Kept,
}

impl RequestQueue {
    /// An empty queue, with memory for its maximum length, at most for 1 024 requests. `seed` prevents
    /// clients from choosing addresses with colliding hashes.
    #[must_use]
    pub fn new(settings: RequestQueueSettings, seed: KeySeed) -> Self {
        let capacity = settings.max_requests.min(RESERVED_REQUESTS) as usize;
        Self {
            settings,
            slots: Slots::with_capacity(capacity),
            arrivals: List::default(),
            // Twice what it will hold: a table that is never more than half full tidies itself in place.
            clients: HashMap::with_capacity_and_hasher(2 * capacity, seed),
            turns: List::default(),
        }
    }

    /// Applies `settings` to requests that come from now on. The queue holds what it held.
    pub fn apply(&mut self, settings: RequestQueueSettings) {
        self.settings = settings;
    }

    /// What the queue is set to.
    pub const fn settings(&self) -> RequestQueueSettings {
        self.settings
    }

    /// Queues a request of `client` at `now_ns`.
    ///
    /// # Errors
    /// [`QueueFull`] when the queue is full and no other client has at least two more waiting.
    pub fn push(&mut self, client: ClientKey, now_ns: u64) -> Result<Queued, QueueFull> {
        if self.len() < self.settings.max_requests as usize {
            let ticket = self.insert(client, now_ns);
            return Ok(Queued {
                ticket,
                displaced: None,
            });
        }
        self.push_in_place(client, now_ns)
    }

    /// Queues a request of `client` at `now_ns` in the place of another, however long the queue is: for
    /// a bound that several queues share.
    ///
    /// # Errors
    /// [`QueueFull`] when no other client has at least two more waiting.
    pub fn push_in_place(&mut self, client: ClientKey, now_ns: u64) -> Result<Queued, QueueFull> {
        let max_requests = self.settings.max_requests;
        let displaced = self.displace(client).ok_or(QueueFull { max_requests })?;
        Ok(Queued {
            ticket: self.insert(client, now_ns),
            displaced: Some(displaced),
        })
    }

    fn insert(&mut self, client: ClientKey, now_ns: u64) -> Ticket {
        let max_wait = self.settings.max_wait;
        let wait_ns = u64::try_from(max_wait.as_nanos()).unwrap_or(u64::MAX);
        let ticket = self.slots.insert(Waiting {
            client,
            deadline_ns: now_ns.saturating_add(wait_ns),
        });
        self.slots
            .arrivals
            .push_back(&mut self.arrivals, ticket.slot);
        let own = self.clients.entry(client).or_default();
        if own.is_empty() {
            self.slots.turns.push_back(&mut self.turns, ticket.slot);
        }
        self.slots.own.push_back(own, ticket.slot);
        ticket
    }

    /// The next request in rotation: the oldest of the client that has waited longest for its turn.
    /// It is no longer queued.
    pub fn pop(&mut self) -> Option<Ticket> {
        let slot = self.turns.first()?;
        let ticket = self.slots.ticket(slot)?;
        self.take(slot, Turn::Used);
        Some(ticket)
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

    /// Removes a request after its client has disconnected. False if it was not queued any more.
    pub fn remove(&mut self, ticket: Ticket) -> bool {
        let queued = self.slots.ticket(ticket.slot) == Some(ticket);
        if queued {
            self.take(ticket.slot, Turn::Kept);
        }
        queued
    }

    /// When the next request reaches its maximum wait, in nanoseconds as passed to [`Self::push`].
    pub fn next_deadline_ns(&self) -> Option<u64> {
        Some(self.slots.waiting(self.arrivals.first()?)?.deadline_ns)
    }

    /// Number of waiting requests.
    pub const fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// Whether no request is waiting.
    pub const fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    fn pop_slot(&mut self, slot: u32) -> Option<Ticket> {
        let ticket = self.slots.ticket(slot)?;
        self.take(slot, Turn::Kept);
        Some(ticket)
    }

    /// Takes the request of `slot` out of every list.
    fn take(&mut self, slot: u32, turn: Turn) {
        let Some(Waiting { client, .. }) = self.slots.waiting(slot) else {
            return;
        };
        self.slots.arrivals.remove(&mut self.arrivals, slot);
        if let Some(own) = self.clients.get_mut(&client) {
            let was_first = own.first() == Some(slot);
            self.slots.own.remove(own, slot);
            match (was_first, own.first(), turn) {
                (true, Some(next), Turn::Used) => {
                    self.slots.turns.remove(&mut self.turns, slot);
                    self.slots.turns.push_back(&mut self.turns, next);
                }
                (true, Some(next), Turn::Kept) => {
                    self.slots.turns.replace(&mut self.turns, slot, next);
                }
                (true, None, _) => {
                    self.slots.turns.remove(&mut self.turns, slot);
                    self.clients.remove(&client);
                }
                (false, ..) => {}
            }
        }
        self.slots.free(slot);
    }

    /// Makes room for `client`: takes out the newest request of the client with the most, if that one
    /// has more than `client` will have.
    fn displace(&mut self, client: ClientKey) -> Option<Ticket> {
        let will_have = self.clients.get(&client).map_or(0, List::len) + 1;
        let most = self.clients.values().max_by_key(|own| own.len())?;
        if most.len() <= will_have {
            return None;
        }
        self.pop_slot(most.last()?)
    }
}

#[cfg(test)]
mod tests;
