//! The shared connections of one worker.

use super::news::{News, Waiting};
use super::pulse::{Pulse, is_past};
use super::trunk::{Lane, Trunk};
use crate::limit::{ConnectionPermit, PoolMember};
use crate::pool::PoolSettings;
use crate::transport::Transport;
use proxy_clock::Clock;
use proxy_upstream::{TargetId, TargetState};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// The connections of one worker that carry many requests at once, by target.
#[derive(Debug)]
pub struct Trunks {
    clock: Rc<Clock>,
    /// By slot of the target.
    shelves: RefCell<Vec<Option<Shelf>>>,
    evictions: UnboundedSender<TargetId>,
}

#[derive(Debug)]
struct Shelf {
    settings: PoolSettings,
    /// None where connections are not limited.
    member: Option<Arc<PoolMember>>,
    trunks: Vec<Rc<Trunk>>,
    /// Connections that are being made.
    building: usize,
    /// Told when a connection can be used, or will not be made.
    news: Rc<News>,
    /// Requests that the target took on one connection when it was last asked.
    room: Option<u32>,
}

/// How somebody comes by a place for a request.
#[derive(Debug)]
pub enum Way {
    /// Here it is.
    Lane(Lane),
    /// By making a connection, which others may wait for.
    Build(Building),
    /// By waiting for a connection that is being made.
    Wait(Waiting),
}

/// Requests on one connection of which nothing is known yet. [RFC 9113 §6.5.2]
const USUAL_ROOM: u32 = 100;

/// A connection that is being made. Dropped, it is not.
#[derive(Debug)]
pub struct Building {
    trunks: Rc<Trunks>,
    target: TargetId,
    generation: u32,
    news: Rc<News>,
}

impl Trunks {
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
    pub fn way(self: &Rc<Self>, target: TargetId, state: &TargetState) -> Way {
        let generation = state.generation();
        let mut shelves = self.shelves.borrow_mut();
        let build = |news| {
            Way::Build(Building {
                trunks: Rc::clone(self),
                target,
                generation,
                news,
            })
        };
        let Some(shelf) = shelf_of(&mut shelves, target) else {
            return build(Rc::default());
        };
        shelf
            .trunks
            .retain(|trunk| trunk.is_current(state) && !trunk.is_over());
        if let Some(trunk) = shelf.trunks.iter().find(|trunk| trunk.has_room()) {
            return Way::Lane(trunk.lane(true));
        }
        if shelf.news.waiting() < shelf.expected() {
            return Way::Wait(shelf.news.wait());
        }
        shelf.building += 1;
        build(Rc::clone(&shelf.news))
    }

    /// Connections to one target, and how many of them are idle.
    pub fn open(&self, target: TargetId) -> (usize, usize) {
        let open = self.on_shelf(target, |shelf| {
            let idle = shelf.trunks.iter().filter_map(|trunk| trunk.idle_since());
            (shelf.trunks.len(), idle.count())
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
            let mut shelf = known.unwrap_or_else(|| Shelf::new(settings.clone()));
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
            let idle = |trunk: &Rc<Trunk>| trunk.idle_since().is_some();
            let position = shelf.trunks.iter().position(idle);
            let position = position.filter(|_| limit.is_wanted())?;
            Some(shelf.trunks.remove(position))
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
            shelf.trunks.retain(|trunk| {
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
            shelf.trunks.clear();
        }
    }

    fn on_shelf<T>(&self, target: TargetId, work: impl FnOnce(&mut Shelf) -> T) -> Option<T> {
        let mut shelves = self.shelves.borrow_mut();
        shelf_of(&mut shelves, target).map(work)
    }
}

/// The shelf of `target`; none when its slot belongs to another target by now.
fn shelf_of(shelves: &mut [Option<Shelf>], target: TargetId) -> Option<&mut Shelf> {
    let shelf = shelves.get_mut(target.slot as usize)?.as_mut()?;
    (shelf.settings.target == target).then_some(shelf)
}

impl Shelf {
    fn new(settings: PoolSettings) -> Self {
        Self {
            settings,
            member: None,
            trunks: Vec::new(),
            building: 0,
            news: Rc::default(),
            room: None,
        }
    }

    /// Places that connections under way will have, as far as one can tell, less those of the requests
    /// they are made for.
    fn expected(&mut self) -> usize {
        let settled = self.trunks.iter().filter_map(|trunk| trunk.most());
        self.room = settled.max().or(self.room);
        let young = self.trunks.iter().filter(|trunk| trunk.most().is_none());
        let more = self.room.unwrap_or(USUAL_ROOM).saturating_sub(1);
        (self.building + young.count()) * more as usize
    }
}

impl Building {
    /// Speaks HTTP/2 over `transport`, for everybody who waits. `permit` is given back when the
    /// connection ends.
    ///
    /// # Errors
    /// `h2`'s, when not even the first bytes could be sent.
    pub async fn finish(
        self,
        transport: Transport,
        permit: Option<ConnectionPermit>,
    ) -> Result<Lane, h2::Error> {
        let pulse = Pulse::new(Rc::clone(&self.trunks.clock), Rc::clone(&self.news));
        let member = self
            .trunks
            .on_shelf(self.target, |shelf| shelf.member.clone());
        let place = (permit, member.flatten());
        let trunk = Trunk::start(transport, pulse, self.generation, place).await?;
        let lane = trunk.lane(false);
        self.trunks
            .on_shelf(self.target, |shelf| shelf.trunks.push(trunk));
        Ok(lane)
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        let settled = self.trunks.on_shelf(self.target, |shelf| {
            shelf.building = shelf.building.saturating_sub(1);
            // A connection that was made tells by its first sign of life.
            shelf.trunks.iter().all(|trunk| trunk.most().is_some())
        });
        // Without a shelf the requests that wait have to find another way.
        if settled.unwrap_or(true) {
            self.news.tell();
        }
    }
}
