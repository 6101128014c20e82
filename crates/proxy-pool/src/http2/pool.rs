//! The shared HTTP/2 connections of one worker.

use super::connect_notify::{ConnectNotify, Waiting};
use super::connection::{Http2Connection, StreamSlot};
use super::keep_alive_ping::{KeepAlivePing, is_past};
use crate::idle_limit::IdleShare;
use crate::limit::{ConnectionPermit, PoolMember};
use crate::pool_settings::PoolSettings;
use crate::transport::UpstreamStream;
use proxy_clock::Clock;
use proxy_upstream::TargetId;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// Numbers of HTTP/2 connections to a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenConnections {
    /// All open connections.
    pub all: usize,
    /// Connections without a request.
    pub idle: usize,
}

/// The shared connections of one worker, by target.
#[derive(Debug)]
pub struct Http2Pool {
    clock: Rc<Clock>,
    /// Indexed by the target's slot.
    target_pools: RefCell<Vec<Option<TargetPool>>>,
    evictions: UnboundedSender<TargetId>,
}

#[derive(Debug)]
struct TargetPool {
    settings: PoolSettings,
    idle_share: IdleShare,
    /// `None` if connections are unlimited.
    member: Option<Arc<PoolMember>>,
    connections: Vec<Rc<Http2Connection>>,
    /// Number of connection attempts in progress.
    connecting: usize,
    /// Notified when a connection becomes usable, or an attempt failed.
    notify: Rc<ConnectNotify>,
    /// Maximum number of concurrent requests that the target last announced.
    room: Option<u32>,
}

/// Assignment of a request to a connection.
#[derive(Debug)]
pub enum Checkout {
    /// A slot of an existing connection.
    StreamSlot(StreamSlot),
    /// A connection attempt by this request, for which other requests may wait.
    Build(Connecting),
    /// A wait for a connection attempt in progress.
    Wait(Waiting),
}

/// Assumed number of concurrent requests of a new connection. [RFC 9113 §6.5.2]
const ASSUMED_STREAMS: u32 = 100;

/// A connection attempt, cancelled on drop.
#[derive(Debug)]
pub struct Connecting {
    http2_pool: Rc<Http2Pool>,
    target: TargetId,
    notify: Rc<ConnectNotify>,
}

impl Http2Pool {
    /// A pool without connections.
    #[must_use]
    pub(crate) fn new(clock: Rc<Clock>, evictions: UnboundedSender<TargetId>) -> Self {
        Self {
            clock,
            target_pools: RefCell::default(),
            evictions,
        }
    }

    /// Reserves a stream on a connection to `target`, or permits a new connection. If the target is
    /// only in an older plan, the new connection is not shared.
    pub fn checkout(self: &Rc<Self>, target: TargetId) -> Checkout {
        let mut target_pools = self.target_pools.borrow_mut();
        let Some(target_pool) = target_pool_of(&mut target_pools, target) else {
            drop(target_pools);
            return Checkout::Build(self.begin(target));
        };
        let (settings, now) = (&target_pool.settings, self.clock.now());
        target_pool.connections.retain(|connection| {
            !connection.is_over() && !settings.is_too_old(connection.since(), now)
        });
        if let Some(connection) = target_pool
            .connections
            .iter()
            .find(|connection| connection.has_room())
        {
            return Checkout::StreamSlot(connection.reserve_stream(true));
        }
        if target_pool.notify.waiting() < target_pool.expected() {
            return Checkout::Wait(target_pool.notify.wait());
        }
        drop(target_pools);
        Checkout::Build(self.begin(target))
    }

    /// Begins a connection attempt. Other requests may wait for it if the active plan has the
    /// target.
    fn begin(self: &Rc<Self>, target: TargetId) -> Connecting {
        let notify = self.with_target(target, |target_pool| {
            target_pool.connecting += 1;
            Rc::clone(&target_pool.notify)
        });
        Connecting {
            http2_pool: Rc::clone(self),
            target,
            notify: notify.unwrap_or_default(),
        }
    }

    /// Numbers of connections to one target.
    pub fn open(&self, target: TargetId) -> OpenConnections {
        let open = self.with_target(target, |target_pool| {
            let idle = target_pool
                .connections
                .iter()
                .filter_map(|connection| connection.idle_since());
            OpenConnections {
                all: target_pool.connections.len(),
                idle: idle.count(),
            }
        });
        open.unwrap_or_default()
    }

    pub(crate) fn apply(&self, targets: &[PoolSettings]) {
        let mut target_pools = self.target_pools.borrow_mut();
        let mut old = std::mem::take(&mut *target_pools);
        for settings in targets {
            let slot = settings.target.slot as usize;
            let known = old.get_mut(slot).and_then(Option::take);
            let known = known.filter(|target_pool| target_pool.settings.target == settings.target);
            let settings = settings.clone();
            let mut target_pool = known.unwrap_or_else(|| TargetPool::new(settings.clone()));
            target_pool.member = PoolMember::reuse_or_join(
                settings.limit.as_ref(),
                settings.target,
                target_pool.member.take(),
                &self.evictions,
            );
            if !target_pool.idle_share.is_of(&settings.idle_limit) {
                target_pool.idle_share = IdleShare::new(&settings.idle_limit);
            }
            target_pool.settings = settings;
            let slots = target_pools.len().max(slot + 1);
            target_pools.resize_with(slots, || None);
            if let Some(place) = target_pools.get_mut(slot) {
                *place = Some(target_pool);
            }
        }
    }

    pub(crate) fn evict(&self, target: TargetId) {
        let evicted = self.with_target(target, |target_pool| {
            let limit = target_pool.settings.limit.as_ref()?;
            let idle = |connection: &Rc<Http2Connection>| connection.idle_since().is_some();
            let position = target_pool.connections.iter().position(idle);
            let position = position.filter(|_| limit.is_wanted())?;
            Some(target_pool.connections.remove(position))
        });
        drop(evicted);
    }

    /// Closes connections that have ended, were idle for too long or exceed the maximum of idle
    /// ones; checks the rest for liveness.
    pub(crate) fn sweep(&self) {
        let now = self.clock.now();
        for target_pool in self.target_pools.borrow_mut().iter_mut().flatten() {
            let TargetPool {
                settings,
                idle_share,
                connections,
                ..
            } = target_pool;
            connections.retain(|connection| {
                connection.check();
                let is_unused_too_long = connection
                    .idle_since()
                    .is_some_and(|since| is_past(since, settings.idle_for, now));
                !is_unused_too_long
                    && !settings.is_too_old(connection.since(), now)
                    && !connection.is_over()
            });
            let is_idle = |connection: &Rc<Http2Connection>| connection.idle_since().is_some();
            let idle = connections.iter().filter(|one| is_idle(one)).count();
            // Takes permits for new idle connections up to the limit, and releases those of ended
            // connections.
            idle_share.covers(idle);
            let mut excess = idle.saturating_sub(idle_share.shrink(idle));
            // The newest connections are last, and stay.
            connections.retain(|connection| {
                let is_excess = excess > 0 && is_idle(connection);
                excess -= usize::from(is_excess);
                !is_excess
            });
        }
    }

    /// Drops all connections. A connection in use ends with its last request.
    pub(crate) fn clear(&self) {
        for target_pool in self.target_pools.borrow_mut().iter_mut().flatten() {
            target_pool.connections.clear();
        }
    }

    fn with_target<T>(
        &self,
        target: TargetId,
        work: impl FnOnce(&mut TargetPool) -> T,
    ) -> Option<T> {
        let mut target_pools = self.target_pools.borrow_mut();
        target_pool_of(&mut target_pools, target).map(work)
    }
}

/// The pool of `target`; `None` if its slot belongs to another target now.
fn target_pool_of(
    target_pools: &mut [Option<TargetPool>],
    target: TargetId,
) -> Option<&mut TargetPool> {
    let target_pool = target_pools.get_mut(target.slot as usize)?.as_mut()?;
    (target_pool.settings.target == target).then_some(target_pool)
}

impl TargetPool {
    fn new(settings: PoolSettings) -> Self {
        Self {
            idle_share: IdleShare::new(&settings.idle_limit),
            settings,
            member: None,
            connections: Vec::new(),
            connecting: 0,
            notify: Rc::default(),
            room: None,
        }
    }

    /// Estimated number of streams on future connections, without the requests that attempt these.
    fn expected(&mut self) -> usize {
        let settled = self
            .connections
            .iter()
            .filter_map(|connection| connection.max_requests());
        self.room = settled.max().or(self.room);
        let young = self
            .connections
            .iter()
            .filter(|connection| connection.max_requests().is_none());
        let more = self.room.unwrap_or(ASSUMED_STREAMS).saturating_sub(1);
        (self.connecting + young.count()) * more as usize
    }
}

impl Connecting {
    /// Redirects the attempt to `target`, which answered in place of the first one.
    #[must_use]
    pub fn for_target(self, target: TargetId) -> Self {
        if self.target == target {
            return self;
        }
        self.http2_pool.begin(target)
    }

    /// Starts HTTP/2 over `transport`, for all waiting requests. `permit` is released when the
    /// connection ends.
    ///
    /// # Errors
    /// The error of `h2`, if the preface could not be sent.
    pub async fn finish(
        self,
        transport: UpstreamStream,
        permit: Option<ConnectionPermit>,
    ) -> Result<StreamSlot, h2::Error> {
        let keep_alive =
            KeepAlivePing::new(Rc::clone(&self.http2_pool.clock), Rc::clone(&self.notify));
        let member = self
            .http2_pool
            .with_target(self.target, |target_pool| target_pool.member.clone());
        let member = member.flatten();
        let connection = Http2Connection::start(transport, keep_alive, permit, member).await?;
        let stream_slot = connection.reserve_stream(false);
        self.http2_pool.with_target(self.target, |target_pool| {
            target_pool.connections.push(connection);
        });
        Ok(stream_slot)
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        let settled = self.http2_pool.with_target(self.target, |target_pool| {
            target_pool.connecting = target_pool.connecting.saturating_sub(1);
            // A new connection notifies when its first data arrives.
            target_pool
                .connections
                .iter()
                .all(|connection| connection.max_requests().is_some())
        });
        // If the pool is gone, the waiting requests have to try again.
        if settled.unwrap_or(true) {
            self.notify.notify_all();
        }
    }
}
