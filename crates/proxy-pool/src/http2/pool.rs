//! The shared connections of one worker.

use super::connect_notify::{ConnectNotify, Waiting};
use super::connection::{Http2Connection, StreamSlot};
use super::keep_alive_ping::{KeepAlivePing, is_past};
use crate::limit::{ConnectionPermit, PoolMember};
use crate::pool::PoolSettings;
use crate::upstream_stream::UpstreamStream;
use proxy_clock::Clock;
use proxy_upstream::{TargetId, TargetState};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// The connections of one worker that carry many requests at once, by target.
#[derive(Debug)]
pub struct Http2Pool {
    clock: Rc<Clock>,
    /// By slot of the target.
    shelves: RefCell<Vec<Option<TargetPool>>>,
    evictions: UnboundedSender<TargetId>,
}

#[derive(Debug)]
struct TargetPool {
    settings: PoolSettings,
    /// None where connections are not limited.
    member: Option<Arc<PoolMember>>,
    http2_pool: Vec<Rc<Http2Connection>>,
    /// Connections that are being made.
    building: usize,
    /// Told when a connection can be used, or will not be made.
    news: Rc<ConnectNotify>,
    /// Requests that the target took on one connection when it was last asked.
    room: Option<u32>,
}

/// How somebody comes by a place for a request.
#[derive(Debug)]
pub enum Checkout {
    /// Here it is.
    StreamSlot(StreamSlot),
    /// By making a connection, which others may wait for.
    Build(Connecting),
    /// By waiting for a connection that is being made.
    Wait(Waiting),
}

/// Requests on one connection of which nothing is known yet. [RFC 9113 §6.5.2]
const USUAL_ROOM: u32 = 100;

/// A connection that is being made. Dropped, it is not.
#[derive(Debug)]
pub struct Connecting {
    http2_pool: Rc<Http2Pool>,
    target: TargetId,
    generation: u32,
    news: Rc<ConnectNotify>,
}

impl Http2Pool {
    /// No connections yet.
    #[must_use]
    pub(crate) fn new(clock: Rc<Clock>, evictions: UnboundedSender<TargetId>) -> Self {
        Self {
            clock,
            shelves: RefCell::default(),
            evictions,
        }
    }

    /// The way to a place on a connection to `target`, by one of the addresses that it has in `state`. The
    /// plan in force may have no such target any more: a request of an older plan makes a connection that is
    /// used for nothing else.
    pub fn way(self: &Rc<Self>, target: TargetId, state: &TargetState) -> Checkout {
        let generation = state.generation();
        let mut shelves = self.shelves.borrow_mut();
        let build = |news| {
            Checkout::Build(Connecting {
                http2_pool: Rc::clone(self),
                target,
                generation,
                news,
            })
        };
        let Some(shelf) = shelf_of(&mut shelves, target) else {
            return build(Rc::default());
        };
        shelf
            .http2_pool
            .retain(|trunk| trunk.is_current(state) && !trunk.is_over());
        if let Some(trunk) = shelf.http2_pool.iter().find(|trunk| trunk.has_room()) {
            return Checkout::StreamSlot(trunk.lane(true));
        }
        if shelf.news.waiting() < shelf.expected() {
            return Checkout::Wait(shelf.news.wait());
        }
        shelf.building += 1;
        build(Rc::clone(&shelf.news))
    }

    /// Connections to one target, and how many of them are idle.
    pub fn open(&self, target: TargetId) -> (usize, usize) {
        let open = self.on_shelf(target, |shelf| {
            let idle = shelf
                .http2_pool
                .iter()
                .filter_map(|trunk| trunk.idle_since());
            (shelf.http2_pool.len(), idle.count())
        });
        open.unwrap_or_default()
    }

    pub(crate) fn adopt(&self, targets: &[PoolSettings]) {
        let mut shelves = self.shelves.borrow_mut();
        let mut old = std::mem::take(&mut *shelves);
        for settings in targets {
            let slot = settings.target.slot as usize;
            let known = old.get_mut(slot).and_then(Option::take);
            let known = known.filter(|shelf| shelf.settings.target == settings.target);
            let settings = settings.clone();
            let mut shelf = known.unwrap_or_else(|| TargetPool::new(settings.clone()));
            shelf.member = PoolMember::of(
                settings.limit.as_ref(),
                settings.target,
                shelf.member.take(),
                &self.evictions,
            );
            shelf.settings = settings;
            let slots = shelves.len().max(slot + 1);
            shelves.resize_with(slots, || None);
            if let Some(place) = shelves.get_mut(slot) {
                *place = Some(shelf);
            }
        }
    }

    /// Lets go of an idle connection to `target`, if a request waits for its place.
    pub(crate) fn evict(&self, target: TargetId) {
        let evicted = self.on_shelf(target, |shelf| {
            let limit = shelf.settings.limit.as_ref()?;
            let idle = |trunk: &Rc<Http2Connection>| trunk.idle_since().is_some();
            let position = shelf.http2_pool.iter().position(idle);
            let position = position.filter(|_| limit.is_wanted())?;
            Some(shelf.http2_pool.remove(position))
        });
        drop(evicted);
    }

    /// Lets go of what has ended, of what was idle for too long and of what is more than may be kept;
    /// looks whether the rest lives.
    pub(crate) fn sweep(&self) {
        let now = self.clock.now();
        for shelf in self.shelves.borrow_mut().iter_mut().flatten() {
            let settings = &shelf.settings;
            let mut kept = 0;
            shelf.http2_pool.retain(|trunk| {
                trunk.check();
                let Some(since) = trunk.idle_since() else {
                    return !trunk.is_over();
                };
                kept += 1;
                let stale = kept > settings.max_idle;
                !stale && !is_past(since, settings.idle_for, now) && !trunk.is_over()
            });
        }
    }

    /// Lets go of all connections; those in use end with their last request.
    pub(crate) fn clear(&self) {
        for shelf in self.shelves.borrow_mut().iter_mut().flatten() {
            shelf.http2_pool.clear();
        }
    }

    fn on_shelf<T>(&self, target: TargetId, work: impl FnOnce(&mut TargetPool) -> T) -> Option<T> {
        let mut shelves = self.shelves.borrow_mut();
        shelf_of(&mut shelves, target).map(work)
    }
}

/// The shelf of `target`; none when its slot belongs to another target by now.
fn shelf_of(shelves: &mut [Option<TargetPool>], target: TargetId) -> Option<&mut TargetPool> {
    let shelf = shelves.get_mut(target.slot as usize)?.as_mut()?;
    (shelf.settings.target == target).then_some(shelf)
}

impl TargetPool {
    fn new(settings: PoolSettings) -> Self {
        Self {
            settings,
            member: None,
            http2_pool: Vec::new(),
            building: 0,
            news: Rc::default(),
            room: None,
        }
    }

    /// Places that connections under way will have, as far as one can tell, less those of the requests
    /// they are made for.
    fn expected(&mut self) -> usize {
        let settled = self.http2_pool.iter().filter_map(|trunk| trunk.most());
        self.room = settled.max().or(self.room);
        let young = self
            .http2_pool
            .iter()
            .filter(|trunk| trunk.most().is_none());
        let more = self.room.unwrap_or(USUAL_ROOM).saturating_sub(1);
        (self.building + young.count()) * more as usize
    }
}

impl Connecting {
    /// Speaks HTTP/2 over `transport`, for everybody who waits. `permit` is given back when the
    /// connection ends.
    ///
    /// # Errors
    /// `h2`'s, when not even the first bytes could be sent.
    pub async fn finish(
        self,
        transport: UpstreamStream,
        permit: Option<ConnectionPermit>,
    ) -> Result<StreamSlot, h2::Error> {
        let pulse = KeepAlivePing::new(Rc::clone(&self.http2_pool.clock), Rc::clone(&self.news));
        let member = self
            .http2_pool
            .on_shelf(self.target, |shelf| shelf.member.clone());
        let place = (permit, member.flatten());
        let trunk = Http2Connection::start(transport, pulse, self.generation, place).await?;
        let lane = trunk.lane(false);
        self.http2_pool
            .on_shelf(self.target, |shelf| shelf.http2_pool.push(trunk));
        Ok(lane)
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        let settled = self.http2_pool.on_shelf(self.target, |shelf| {
            shelf.building = shelf.building.saturating_sub(1);
            // A connection that was made tells by its first sign of life.
            shelf.http2_pool.iter().all(|trunk| trunk.most().is_some())
        });
        // Without a shelf the requests that wait have to find another way.
        if settled.unwrap_or(true) {
            self.news.tell();
        }
    }
}
