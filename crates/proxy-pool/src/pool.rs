//! The idle HTTP/1.1 connections of one worker.

use crate::connection::{Connection, ConnectionOwner};
use crate::http2::Http2Pool;
use crate::idle_limit::IdleShare;
use crate::limit::PoolMember;
use crate::pool_settings::PoolSettings;
use proxy_clock::Clock;
use proxy_upstream::TargetId;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The idle connections of one worker. The newest one is used first.
#[derive(Debug)]
pub struct Pool<B> {
    clock: Rc<Clock>,
    /// Indexed by the target's slot.
    target_pools: RefCell<Vec<Option<TargetPool<B>>>>,
    size: Cell<u32>,
    http2: Rc<Http2Pool>,
    /// Connections granted to requests that have not taken them yet, by ticket.
    handed_over: RefCell<HashMap<u64, Connection<B>>>,
    /// Targets with an idle connection to be closed, because a request waits for its permit.
    evictions: UnboundedSender<TargetId>,
    eviction_requests: RefCell<UnboundedReceiver<TargetId>>,
}

#[derive(Debug)]
struct TargetPool<B> {
    settings: PoolSettings,
    idle: Vec<Connection<B>>,
    idle_share: IdleShare,
    /// `None` if connections are unlimited.
    member: Option<Arc<PoolMember>>,
}

impl<B> Pool<B> {
    /// Returns a connection to the pool, if it is reusable, its target is in the active plan, and
    /// there is room.
    pub fn checkin(&self, mut connection: Connection<B>) {
        if !connection.is_ready() || connection.is_orphaned() {
            return;
        }
        let mut target_pools = self.target_pools.borrow_mut();
        let target = connection.target;
        let Some(target_pool) = target_pool_of(&mut target_pools, target) else {
            return;
        };
        if target_pool
            .settings
            .is_too_old(connection.since, self.clock.now())
        {
            return;
        }
        if let Some(member) = target_pool
            .member
            .as_ref()
            .filter(|it| it.limit().is_wanted())
        {
            let is_shared = connection.owner.is_none();
            let granted = is_shared.then(|| member.limit().grant_connection(member));
            if let Some(ticket) = granted.flatten() {
                self.handed_over.borrow_mut().insert(ticket, connection);
            }
            // Dropping the connection grants its permit to the first waiting request.
            return;
        }
        if !target_pool.idle_share.covers(target_pool.idle.len() + 1) {
            if connection.owner.is_none() || target_pool.idle.is_empty() {
                return;
            }
            // The client of the oldest connection may be gone, and no other client can use it.
            drop(target_pool.idle.remove(0));
            self.size.set(self.size.get().saturating_sub(1));
        }
        connection.idle_since = self.clock.now();
        connection.idle_mark = target_pool.member.as_ref().map(PoolMember::mark_idle);
        target_pool.idle.push(connection);
        self.size.set(self.size.get() + 1);
        if target_pool
            .member
            .as_ref()
            .is_some_and(|it| it.limit().is_wanted())
        {
            // A request may have begun to wait without seeing the mark.
            drop(target_pools);
            self.evict(target);
        }
    }
}

impl<B> Pool<B> {
    /// A pool without connections.
    #[must_use]
    pub fn new(clock: Rc<Clock>) -> Self {
        let (evictions, eviction_requests) = unbounded_channel();
        Self {
            http2: Rc::new(Http2Pool::new(Rc::clone(&clock), evictions.clone())),
            clock,
            target_pools: RefCell::default(),
            size: Cell::new(0),
            handed_over: RefCell::default(),
            evictions,
            eviction_requests: RefCell::new(eviction_requests),
        }
    }

    /// Closes idle connections for waiting requests of other workers, on notification. Never ready:
    /// a worker polls it in a separate task.
    pub fn poll_evictions(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let requested = self.eviction_requests.borrow_mut().poll_recv(cx);
            match ready!(requested) {
                Some(target) => self.evict(target),
                None => return Poll::Pending,
            }
        }
    }

    /// The membership of this pool under the limit of `target`.
    pub(crate) fn member(&self, target: TargetId) -> Option<Arc<PoolMember>> {
        let mut target_pools = self.target_pools.borrow_mut();
        target_pool_of(&mut target_pools, target)?.member.clone()
    }

    /// Takes the connection granted to the request with this ticket.
    pub(crate) fn take_handed_over(&self, ticket: u64) -> Option<Connection<B>> {
        self.handed_over.borrow_mut().remove(&ticket)
    }

    /// Closes idle connections to `target` while requests wait for permits.
    fn evict(&self, target: TargetId) {
        self.http2.evict(target);
        let mut target_pools = self.target_pools.borrow_mut();
        let Some(target_pool) = target_pool_of(&mut target_pools, target) else {
            return;
        };
        let Some(member) = target_pool.member.clone() else {
            return;
        };
        while member.limit().is_wanted() && !target_pool.idle.is_empty() {
            drop(target_pool.idle.remove(0));
            self.size.set(self.size.get().saturating_sub(1));
        }
        // This pool may have no idle connection any more, while another pool has one.
        member.limit().request_eviction();
    }

    /// Applies the targets of a new plan. Idle connections to remaining targets are kept, all other
    /// idle connections are closed.
    pub fn apply(&self, targets: Vec<PoolSettings>) {
        self.http2.apply(&targets);
        let mut target_pools = self.target_pools.borrow_mut();
        let mut old = std::mem::take(&mut *target_pools);
        let mut size = 0;
        for settings in targets {
            let slot = settings.target.slot as usize;
            let known = old.get_mut(slot).and_then(Option::take);
            let known = known.filter(|target_pool| target_pool.settings.target == settings.target);
            let (idle, idle_share, known) = match known {
                Some(target_pool) => {
                    let TargetPool {
                        settings: _,
                        idle,
                        idle_share,
                        member,
                    } = target_pool;
                    (idle, Some(idle_share), member)
                }
                None => (Vec::new(), None, None),
            };
            let idle_share = idle_share.filter(|share| share.is_of(&settings.idle_limit));
            let idle_share = idle_share.unwrap_or_else(|| IdleShare::new(&settings.idle_limit));
            let member = PoolMember::reuse_or_join(
                settings.limit.as_ref(),
                settings.target,
                known,
                &self.evictions,
            );
            size += idle.len();
            let slots = target_pools.len().max(slot + 1);
            target_pools.resize_with(slots, || None);
            if let Some(place) = target_pools.get_mut(slot) {
                *place = Some(TargetPool {
                    settings,
                    idle,
                    idle_share,
                    member,
                });
            }
        }
        self.size.set(u32::try_from(size).unwrap_or(u32::MAX));
    }

    /// Takes an idle connection to `target`.
    pub fn checkout(&self, target: TargetId) -> Option<Connection<B>> {
        let mut target_pools = self.target_pools.borrow_mut();
        let target_pool = target_pool_of(&mut target_pools, target)?;
        while let Some(mut connection) = target_pool.idle.pop() {
            connection.idle_mark = None;
            self.size.set(self.size.get().saturating_sub(1));
            let is_old = target_pool
                .settings
                .is_too_old(connection.since, self.clock.now());
            if !is_old && connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Takes an idle connection to `target` that is reserved for this client.
    pub fn checkout_of_client(
        &self,
        target: TargetId,
        owner: &ConnectionOwner,
    ) -> Option<Connection<B>> {
        let mut target_pools = self.target_pools.borrow_mut();
        let TargetPool { settings, idle, .. } = target_pool_of(&mut target_pools, target)?;
        let is_own = |connection: &Connection<B>| {
            let known = connection.owner.as_ref();
            known.is_some_and(|known| known.is_same(owner))
        };
        while let Some(position) = idle.iter().rposition(is_own) {
            let mut connection = idle.remove(position);
            connection.idle_mark = None;
            self.size.set(self.size.get().saturating_sub(1));
            if !settings.is_too_old(connection.since, self.clock.now()) && connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// The pool of shared HTTP/2 connections.
    pub fn http2_pool(&self) -> &Rc<Http2Pool> {
        &self.http2
    }

    /// Number of idle connections.
    pub fn size(&self) -> u32 {
        self.size.get()
    }

    /// Number of idle connections to one target.
    pub fn idle(&self, target: TargetId) -> usize {
        let mut target_pools = self.target_pools.borrow_mut();
        target_pool_of(&mut target_pools, target).map_or(0, |target_pool| target_pool.idle.len())
    }

    /// Closes connections that were idle for too long, were closed by the target, or are reserved
    /// for a disconnected client.
    pub fn sweep(&self) {
        self.http2.sweep();
        let now = self.clock.now();
        let mut cx = Context::from_waker(Waker::noop());
        let mut size = 0;
        for target_pool in self.target_pools.borrow_mut().iter_mut().flatten() {
            let TargetPool {
                settings,
                idle,
                idle_share,
                member: _,
            } = target_pool;
            idle.retain_mut(|connection| {
                !settings.is_idle_too_long(connection.idle_since, now)
                    && !settings.is_too_old(connection.since, now)
                    && !connection.is_orphaned()
                    && connection.is_kept(&mut cx)
            });
            let kept = idle_share.shrink(idle.len());
            // The newest connections are last, and stay.
            idle.drain(..idle.len().saturating_sub(kept));
            if idle.is_empty() {
                *idle = Vec::new();
            }
            size += idle.len();
        }
        self.size.set(u32::try_from(size).unwrap_or(u32::MAX));
    }

    /// Closes every idle connection.
    pub fn clear(&self) {
        self.http2.clear();
        for target_pool in self.target_pools.borrow_mut().iter_mut().flatten() {
            target_pool.idle.clear();
        }
        self.size.set(0);
    }
}

/// The pool of `target`; `None` if its slot belongs to another target now.
fn target_pool_of<B>(
    target_pools: &mut [Option<TargetPool<B>>],
    target: TargetId,
) -> Option<&mut TargetPool<B>> {
    let target_pool = target_pools.get_mut(target.slot as usize)?.as_mut()?;
    (target_pool.settings.target == target).then_some(target_pool)
}
