//! The idle connections of one worker.

use crate::connection::Connection;
use crate::http2::Trunks;
use proxy_clock::{Clock, Tick};
use proxy_limits::{Full, Gauge, Permit};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

/// Which target a connection leads to: an index that stays with the target over reloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetSlot(pub u32);

/// How the connections of one target are kept.
#[derive(Clone, Debug)]
pub struct PoolSettings {
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
    shelves: RefCell<Vec<Shelf<B>>>,
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
    /// Takes a connection back, if it is good for another request and there is room.
    pub fn put(&self, slot: TargetSlot, mut connection: Connection<B>) {
        if !connection.is_ready() {
            return;
        }
        let mut shelves = self.shelves.borrow_mut();
        let Some(shelf) = shelves.get_mut(slot.0 as usize) else {
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

    /// Makes room for the targets of a new plan, by slot. Connections to targets that stay are kept;
    /// a slot without settings is emptied.
    pub fn adopt(&self, settings: Vec<Option<PoolSettings>>) {
        self.trunks.adopt(&settings);
        let mut shelves = self.shelves.borrow_mut();
        let mut old = std::mem::take(&mut *shelves).into_iter();
        for settings in settings {
            let known = old.next();
            let kept = known.map(|shelf| shelf.idle).unwrap_or_default();
            shelves.push(match settings {
                Some(settings) => Shelf {
                    settings,
                    idle: kept,
                },
                None => Shelf::closed(),
            });
        }
        let size = shelves.iter().map(|shelf| shelf.idle.len()).sum::<usize>();
        self.size.set(u32::try_from(size).unwrap_or(u32::MAX));
    }

    /// An idle connection to the target whose addresses are of `generation`.
    pub fn take(&self, slot: TargetSlot, generation: u32) -> Option<Connection<B>> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.get_mut(slot.0 as usize)?;
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

    /// How connections of this target are kept.
    pub fn limit(&self, slot: TargetSlot) -> Option<Arc<ConnectionLimit>> {
        let shelves = self.shelves.borrow();
        shelves.get(slot.0 as usize)?.settings.limit.clone()
    }

    /// Idle connections.
    pub fn size(&self) -> u32 {
        self.size.get()
    }

    /// Idle connections to one target.
    pub fn idle(&self, slot: TargetSlot) -> usize {
        let shelves = self.shelves.borrow();
        shelves
            .get(slot.0 as usize)
            .map_or(0, |shelf| shelf.idle.len())
    }

    /// Closes what has been idle for too long, what the target has closed, and what others wait for.
    pub fn sweep(&self) {
        self.trunks.sweep();
        let now = self.clock.now();
        let mut cx = Context::from_waker(Waker::noop());
        let mut size = 0;
        for shelf in self.shelves.borrow_mut().iter_mut() {
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
        for shelf in self.shelves.borrow_mut().iter_mut() {
            shelf.idle.clear();
        }
        self.size.set(0);
    }
}

impl<B> Shelf<B> {
    fn closed() -> Self {
        let settings = PoolSettings {
            max_idle: 0,
            idle_for: Duration::ZERO,
            limit: None,
        };
        Self {
            settings,
            idle: Vec::new(),
        }
    }
}

fn is_over(since: Tick, idle_for: Duration, now: Tick) -> bool {
    let ticks = idle_for.as_millis() / proxy_clock::TICK.as_millis();
    u128::from(now.0.saturating_sub(since.0)) > ticks
}
