//! The idle connections of one worker.

use crate::connection::Connection;
use crate::http2::Trunks;
use proxy_clock::{Clock, Tick};
use proxy_limits::{Full, Gauge, Permit};
use proxy_upstream::TargetId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

/// How the connections of one target are kept.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The target. Connections to any other are neither taken back nor given.
    pub target: TargetId,
    /// Idle connections kept at most, per worker.
    pub max_idle: usize,
    /// An idle connection older than this is closed.
    pub idle_for: Duration,
    /// Connections there may be at once over all workers, idle ones included. None: no limit.
    pub limit: Option<Arc<ConnectionLimit>>,
}

/// A ceiling on connections that several pools share.
#[derive(Debug)]
pub struct ConnectionLimit {
    gauge: Gauge,
    // While somebody waits, idle connections are closed instead of kept: the one who waits may
    // belong to another worker.
    waiting: AtomicU32,
}

/// The idle connections of one worker, newest first.
#[derive(Debug)]
pub struct Pool<B> {
    clock: Rc<Clock>,
    /// By slot of the target.
    shelves: RefCell<Vec<Option<Shelf<B>>>>,
    size: Cell<u32>,
    trunks: Rc<Trunks>,
}

#[derive(Debug)]
struct Shelf<B> {
    settings: PoolSettings,
    idle: Vec<Connection<B>>,
}

impl ConnectionLimit {
    /// A ceiling of `max` connections.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self {
            gauge: Gauge::new(max),
            waiting: AtomicU32::new(0),
        }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`Full`] when there is none.
    pub fn acquire(&self) -> Result<Permit, Full> {
        self.gauge.acquire()
    }

    /// The ceiling.
    pub fn max(&self) -> u32 {
        self.gauge.max()
    }

    /// Moves the ceiling for connections made from now on.
    pub fn set_max(&self, max: u32) {
        self.gauge.set_max(max);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// Says, while it lives, that somebody waits for a connection.
#[derive(Debug)]
pub(crate) struct Waiting<'l>(&'l ConnectionLimit);

impl<'l> Waiting<'l> {
    pub(crate) fn new(limit: &'l ConnectionLimit) -> Self {
        limit.waiting.fetch_add(1, Ordering::Relaxed);
        Self(limit)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<B> Pool<B> {
    /// Takes a connection back, if it is good for another request, its target is one of the plan in
    /// force, and there is room.
    pub fn put(&self, mut connection: Connection<B>) {
        if !connection.is_ready() {
            return;
        }
        let mut shelves = self.shelves.borrow_mut();
        let Some(shelf) = shelf_of(&mut shelves, connection.target) else {
            return;
        };
        let wanted = shelf
            .settings
            .limit
            .as_ref()
            .is_some_and(|limit| limit.is_wanted());
        if wanted || shelf.idle.len() >= shelf.settings.max_idle {
            return;
        }
        connection.idle_since = self.clock.now();
        shelf.idle.push(connection);
        self.size.set(self.size.get() + 1);
    }
}

impl<B> Pool<B> {
    /// An empty pool.
    #[must_use]
    pub fn new(clock: Rc<Clock>) -> Self {
        Self {
            trunks: Rc::new(Trunks::new(Rc::clone(&clock))),
            clock,
            shelves: RefCell::default(),
            size: Cell::new(0),
        }
    }

    /// Makes room for the targets of a new plan. Idle connections to targets that stay are kept, all
    /// others are closed.
    pub fn adopt(&self, targets: Vec<PoolSettings>) {
        self.trunks.adopt(&targets);
        let mut shelves = self.shelves.borrow_mut();
        let mut old = std::mem::take(&mut *shelves);
        let mut size = 0;
        for settings in targets {
            let slot = settings.target.slot as usize;
            let known = old.get_mut(slot).and_then(Option::take);
            let known = known.filter(|shelf| shelf.settings.target == settings.target);
            let idle = known.map(|shelf| shelf.idle).unwrap_or_default();
            size += idle.len();
            let slots = shelves.len().max(slot + 1);
            shelves.resize_with(slots, || None);
            if let Some(place) = shelves.get_mut(slot) {
                *place = Some(Shelf { settings, idle });
            }
        }
        self.size.set(u32::try_from(size).unwrap_or(u32::MAX));
    }

    /// An idle connection to `target`, whose addresses are of `generation`.
    pub fn take(&self, target: TargetId, generation: u32) -> Option<Connection<B>> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelf_of(&mut shelves, target)?;
        while let Some(connection) = shelf.idle.pop() {
            self.size.set(self.size.get().saturating_sub(1));
            if connection.is_ready() && connection.generation == generation {
                return Some(connection);
            }
        }
        None
    }

    /// The connections that carry many requests at once.
    pub fn trunks(&self) -> &Rc<Trunks> {
        &self.trunks
    }

    /// Idle connections.
    pub fn size(&self) -> u32 {
        self.size.get()
    }

    /// Idle connections to one target.
    pub fn idle(&self, target: TargetId) -> usize {
        let mut shelves = self.shelves.borrow_mut();
        shelf_of(&mut shelves, target).map_or(0, |shelf| shelf.idle.len())
    }

    /// Closes what has been idle for too long, what the target has closed, and what others wait for.
    pub fn sweep(&self) {
        self.trunks.sweep();
        let now = self.clock.now();
        let mut cx = Context::from_waker(Waker::noop());
        let mut size = 0;
        for shelf in self.shelves.borrow_mut().iter_mut().flatten() {
            let Shelf { settings, idle } = shelf;
            if settings
                .limit
                .as_ref()
                .is_some_and(|limit| limit.is_wanted())
            {
                idle.clear();
            }
            idle.retain_mut(|connection| {
                !is_over(connection.idle_since, settings.idle_for, now)
                    && connection.is_kept(&mut cx)
            });
            if idle.is_empty() {
                *idle = Vec::new();
            }
            size += idle.len();
        }
        self.size.set(u32::try_from(size).unwrap_or(u32::MAX));
    }

    /// Closes every idle connection.
    pub fn clear(&self) {
        self.trunks.clear();
        for shelf in self.shelves.borrow_mut().iter_mut().flatten() {
            shelf.idle.clear();
        }
        self.size.set(0);
    }
}

/// The shelf of `target`; none when its slot belongs to another target by now.
fn shelf_of<B>(shelves: &mut [Option<Shelf<B>>], target: TargetId) -> Option<&mut Shelf<B>> {
    let shelf = shelves.get_mut(target.slot as usize)?.as_mut()?;
    (shelf.settings.target == target).then_some(shelf)
}

fn is_over(since: Tick, idle_for: Duration, now: Tick) -> bool {
    let ticks = idle_for.as_millis() / proxy_clock::TICK.as_millis();
    u128::from(now.0.saturating_sub(since.0)) > ticks
}
