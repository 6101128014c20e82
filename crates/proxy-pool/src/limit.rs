//! A limit on the connections to one target, shared by the pools of all workers.

use proxy_limits::ClientKey;
use proxy_upstream::TargetId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// Number of times that a waiting request may be overtaken by later requests of a worker with a
/// returned connection.
const MAX_OVERTAKEN: u32 = 8;

/// The maximum number of connections to one target over all workers, idle ones included.
///
/// Requests above the limit wait in one queue for all workers, in which clients take turns: a
/// client's second request waits until each other client has had a turn. A released permit is
/// granted to the first request of the queue at once. A connection returned to a pool is granted to
/// a request of the same worker if the first request of the queue has not been overtaken too often;
/// otherwise it is closed and its permit is granted to the first request. If a request begins to
/// wait while a worker keeps an idle connection, that worker is notified to close it.
#[derive(Debug)]
pub struct ConnectionLimit {
    held: AtomicU32,
    max: AtomicU32,
    /// Length of the queue, for pools to test whenever a connection is returned.
    waiting: AtomicU32,
    queue: Lock,
}

#[expect(
    clippy::disallowed_types,
    reason = "taken by requests that have to wait, and by those that end such a wait; for a few instructions"
)]
type Lock = std::sync::Mutex<Queue>;

#[derive(Debug, Default)]
struct Queue {
    /// Ordered by turn, then by arrival.
    waiters: VecDeque<Waiter>,
    /// The turn of the latest request served.
    turn: u64,
    members: Vec<Weak<PoolMember>>,
}

/// The next ticket. Unique over all limits, because one pool may wait for several limits.
static NEXT_TICKET: AtomicU64 = AtomicU64::new(0);

/// A waiting request.
#[derive(Debug)]
struct Waiter {
    ticket: u64,
    client: ClientKey,
    /// Number of the turn in which the request is served.
    turn: u64,
    /// The pool that may provide the connection.
    pool: Option<Arc<PoolMember>>,
    overtaken: u32,
    grant: oneshot::Sender<Grant>,
}

/// The result of a wait.
#[derive(Debug)]
pub(crate) enum Grant {
    /// A connection may be made.
    Permit(ConnectionPermit),
    /// The pool holds a connection for the request.
    Connection,
}

/// A position in the queue of a limit; left by [`ConnectionLimit::leave`].
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) ticket: u64,
    pub(crate) granted: oneshot::Receiver<Grant>,
}

/// Permit for one connection, released on drop.
#[derive(Debug)]
pub struct ConnectionPermit(Arc<ConnectionLimit>);

/// One worker's pool of connections to one target, registered at the target's limit.
#[derive(Debug)]
pub(crate) struct PoolMember {
    target: TargetId,
    limit: Arc<ConnectionLimit>,
    /// Number of idle connections in the pool.
    idle: AtomicU32,
    /// Notifies the pool to close an idle connection to the target.
    evictions: UnboundedSender<TargetId>,
}

/// Counts a connection as idle until it is dropped.
#[derive(Debug)]
pub(crate) struct IdleMark(Arc<PoolMember>);

impl ConnectionLimit {
    /// A limit of `max` connections.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self {
            held: AtomicU32::new(0),
            max: AtomicU32::new(max),
            waiting: AtomicU32::new(0),
            queue: Lock::default(),
        }
    }

    /// Takes a permit; `None` if the limit is reached or requests are waiting.
    #[must_use]
    pub fn acquire(self: &Arc<Self>) -> Option<ConnectionPermit> {
        if self.is_wanted() {
            return None;
        }
        self.take_free()
    }

    /// Maximum number of connections.
    pub fn max(&self) -> u32 {
        self.max.load(Ordering::Relaxed)
    }

    /// Sets the maximum. A lower one closes no connections: no permits are granted until enough
    /// connections have ended.
    pub fn set_max(self: &Arc<Self>, max: u32) {
        self.max.store(max, Ordering::SeqCst);
        self.serve();
    }

    /// Returns true if requests are waiting.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        // Either this load sees a request that begins to wait, or that request sees the permit
        // released before.
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Queues a request of `client`, which may also get a connection of `pool`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        client: ClientKey,
        pool: Option<Arc<PoolMember>>,
    ) -> Queued {
        let (grant, granted) = oneshot::channel();
        let ticket = NEXT_TICKET.fetch_add(1, Ordering::Relaxed);
        let mut queue = self.lock();
        let turn = queue.next_turn(client);
        queue.push(Waiter {
            ticket,
            client,
            turn,
            pool,
            overtaken: 0,
            grant,
        });
        self.note_length(&queue);
        drop(queue);
        self.serve();
        self.request_eviction();
        Queued { ticket, granted }
    }

    /// Removes the request with this ticket from the queue, if it still waits.
    pub(crate) fn leave(&self, ticket: u64) {
        let mut queue = self.lock();
        queue.waiters.retain(|waiter| waiter.ticket != ticket);
        self.note_length(&queue);
    }

    /// Ends the wait of a request that can use a connection of `pool`, and returns its ticket.
    /// `None` means that the connection should be closed.
    pub(crate) fn grant_connection(&self, pool: &Arc<PoolMember>) -> Option<u64> {
        loop {
            let waiter = self.pop_for(pool)?;
            let ticket = waiter.ticket;
            if waiter.grant.send(Grant::Connection).is_ok() {
                return Some(ticket);
            }
        }
    }

    /// Notifies a pool with an idle connection to close one, if a request is waiting.
    pub(crate) fn request_eviction(&self) {
        if !self.is_wanted() {
            return;
        }
        let mut queue = self.lock();
        queue.members.retain(|member| member.strong_count() > 0);
        for member in queue.members.iter().filter_map(Weak::upgrade) {
            if member.idle.load(Ordering::SeqCst) > 0 && member.evict() {
                return;
            }
        }
    }

    fn pop_for(&self, pool: &Arc<PoolMember>) -> Option<Waiter> {
        let mut queue = self.lock();
        let suits = |waiter: &Waiter| {
            let wanted = waiter.pool.as_ref();
            wanted.is_some_and(|member| Arc::ptr_eq(member, pool))
        };
        let position = queue.waiters.iter().position(suits)?;
        if position > 0 {
            let first = queue.waiters.front_mut()?;
            if first.overtaken >= MAX_OVERTAKEN {
                return None;
            }
            first.overtaken += 1;
        }
        let waiter = queue.take(position);
        self.note_length(&queue);
        waiter
    }

    fn serve(self: &Arc<Self>) {
        while let Some((waiter, permit)) = self.next_served() {
            // If the request was cancelled, the permit is dropped and granted to the next request.
            drop(waiter.grant.send(Grant::Permit(permit)));
        }
    }

    fn next_served(self: &Arc<Self>) -> Option<(Waiter, ConnectionPermit)> {
        let mut queue = self.lock();
        queue.waiters.front()?;
        let permit = self.take_free()?;
        let waiter = queue.take(0);
        self.note_length(&queue);
        drop(queue);
        Some((waiter?, permit))
    }

    fn take_free(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let max = self.max.load(Ordering::SeqCst);
        let one_more = |held| (held < max).then_some(held + 1);
        let taken = self
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more);
        taken.is_ok().then(|| ConnectionPermit(Arc::clone(self)))
    }

    fn note_length(&self, queue: &Queue) {
        let length = u32::try_from(queue.waiters.len()).unwrap_or(u32::MAX);
        self.waiting.store(length, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The turn of another request of `client`: the current turn, or one after the client's last.
    fn next_turn(&self, client: ClientKey) -> u64 {
        let mut latest_first = self.waiters.iter().rev();
        let last = latest_first.find(|waiter| waiter.client == client);
        last.map_or(self.turn, |last| last.turn.saturating_add(1))
    }

    fn push(&mut self, waiter: Waiter) {
        let earlier = |other: &Waiter| other.turn <= waiter.turn;
        let position = self.waiters.partition_point(earlier);
        self.waiters.insert(position, waiter);
    }

    fn take(&mut self, position: usize) -> Option<Waiter> {
        let waiter = self.waiters.remove(position)?;
        self.turn = self.turn.max(waiter.turn);
        Some(waiter)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
        if self.0.is_wanted() {
            self.0.serve();
        }
    }
}

impl PoolMember {
    /// The membership of a pool under `limit`; `known` is reused if the limit is the same.
    pub(crate) fn reuse_or_join(
        limit: Option<&Arc<ConnectionLimit>>,
        target: TargetId,
        known: Option<Arc<Self>>,
        evictions: &UnboundedSender<TargetId>,
    ) -> Option<Arc<Self>> {
        let limit = limit?;
        let known = known.filter(|known| Arc::ptr_eq(&known.limit, limit));
        known.or_else(|| Some(Self::join(limit, target, evictions.clone())))
    }

    /// Registers a pool at `limit`. The pool is notified by `evictions` to close idle connections
    /// to `target`.
    fn join(
        limit: &Arc<ConnectionLimit>,
        target: TargetId,
        evictions: UnboundedSender<TargetId>,
    ) -> Arc<Self> {
        let member = Arc::new(Self {
            target,
            limit: Arc::clone(limit),
            idle: AtomicU32::new(0),
            evictions,
        });
        let mut queue = limit.lock();
        queue.members.retain(|known| known.strong_count() > 0);
        queue.members.push(Arc::downgrade(&member));
        drop(queue);
        member
    }

    pub(crate) fn limit(&self) -> &Arc<ConnectionLimit> {
        &self.limit
    }

    /// Counts a connection as idle until the mark is dropped.
    pub(crate) fn mark_idle(self: &Arc<Self>) -> IdleMark {
        self.idle.fetch_add(1, Ordering::SeqCst);
        IdleMark(Arc::clone(self))
    }

    /// Notifies the pool to close an idle connection. Returns false if the pool was dropped.
    pub(crate) fn evict(&self) -> bool {
        self.evictions.send(self.target).is_ok()
    }
}

impl Drop for IdleMark {
    fn drop(&mut self) {
        self.0.idle.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    const ONE: ClientKey = ClientKey::V4(1);

    const TARGET: TargetId = TargetId { slot: 0, epoch: 0 };

    fn limit(max: u32) -> Arc<ConnectionLimit> {
        Arc::new(ConnectionLimit::new(max))
    }

    fn member(limit: &Arc<ConnectionLimit>) -> (Arc<PoolMember>, UnboundedReceiver<TargetId>) {
        let (evictions, asked) = unbounded_channel();
        (PoolMember::join(limit, TARGET, evictions), asked)
    }

    fn permit(queued: &mut Queued) -> Option<ConnectionPermit> {
        match queued.granted.try_recv() {
            Ok(Grant::Permit(permit)) => Some(permit),
            Ok(Grant::Connection) | Err(_) => None,
        }
    }

    #[test]
    fn a_freed_permit_is_granted_to_the_first_waiting_request() {
        let limit = limit(1);
        let held = limit.acquire().unwrap();
        let [mut first, mut second] = [0, 1].map(|_| limit.enter(ONE, None));
        assert!(permit(&mut first).is_none());

        drop(held);
        let held = permit(&mut first).unwrap();
        assert!(permit(&mut second).is_none());
        drop(held);
        let held = permit(&mut second).unwrap();
        assert!(limit.acquire().is_none());
        drop(held);
        assert!(limit.acquire().is_some());
    }

    #[test]
    fn a_client_with_one_request_waits_for_one_of_the_other_client() {
        let limit = limit(1);
        let mut held = limit.acquire();
        let mut greedy: Vec<Queued> = (0..9).map(|_| limit.enter(ONE, None)).collect();
        drop(held.take());
        held = permit(&mut greedy[0]);
        let mut bystander = limit.enter(ClientKey::V4(2), None);
        let mut again = limit.enter(ClientKey::V4(2), None);

        drop(held.take());
        held = permit(&mut bystander);
        assert!(held.is_some(), "the next permit");
        drop(held.take());
        held = permit(&mut greedy[1]);
        assert!(held.is_some(), "in turn");
        drop(held);
        assert!(permit(&mut again).is_some());
    }

    #[test]
    fn a_newcomer_does_not_pass_those_that_wait() {
        let limit = limit(1);
        let held = limit.acquire().unwrap();
        let _waiting = limit.enter(ONE, None);
        limit.set_max(1);

        assert!(limit.acquire().is_none());
        drop(held);
        assert!(limit.acquire().is_none(), "the place was given away");
    }

    #[test]
    fn a_request_that_gives_up_takes_no_place() {
        let limit = limit(1);
        let held = limit.acquire().unwrap();
        let [gone, left] = [0, 1].map(|_| limit.enter(ONE, None));
        let mut last = limit.enter(ONE, None);
        limit.leave(left.ticket);
        // This request leaves after it got the permit.
        drop(held);
        drop(gone);

        assert!(permit(&mut last).is_some());
    }

    #[test]
    fn a_higher_limit_is_active_at_once() {
        let limit = limit(1);
        let _held = limit.acquire().unwrap();
        let mut waiting = limit.enter(ONE, None);

        limit.set_max(2);
        let second = permit(&mut waiting);
        assert!(second.is_some());
        limit.set_max(1);
        drop(second);
        assert!(limit.acquire().is_none());
    }

    #[test]
    fn only_a_pool_with_an_idle_connection_is_asked_to_close_one() {
        let limit = limit(1);
        let _held = limit.acquire().unwrap();
        let (_busy, mut not_asked) = member(&limit);
        let (keeping, mut asked) = member(&limit);
        let mark = keeping.mark_idle();

        let _first = limit.enter(ONE, None);
        assert_eq!(asked.try_recv().unwrap(), TARGET);
        drop(mark);
        let _second = limit.enter(ONE, None);
        assert!(asked.try_recv().is_err() && not_asked.try_recv().is_err());
    }

    #[test]
    fn a_connection_is_granted_to_its_own_worker_until_the_first_waiter_was_overtaken_often() {
        let limit = limit(1);
        let _held = limit.acquire().unwrap();
        let (own, _own_asked) = member(&limit);
        let (other, _other_asked) = member(&limit);
        let _first = limit.enter(ONE, Some(other));
        let enter = || limit.enter(ONE, Some(Arc::clone(&own)));
        let mut waiting: Vec<Queued> = (0..=MAX_OVERTAKEN).map(|_| enter()).collect();

        for queued in waiting.iter().take(MAX_OVERTAKEN as usize) {
            assert_eq!(limit.grant_connection(&own), Some(queued.ticket));
        }
        assert_eq!(limit.grant_connection(&own), None);
        let last = waiting.last_mut().unwrap();
        assert!(last.granted.try_recv().is_err());
    }
}
