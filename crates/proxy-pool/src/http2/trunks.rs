//! The shared connections of one worker.

use super::news::{News, Waiting};
use super::pulse::{Pulse, is_past};
use super::trunk::{Lane, Trunk};
use crate::pool::{PoolSettings, TargetSlot};
use crate::transport::Transport;
use proxy_clock::Clock;
use proxy_limits::Permit;
use std::cell::RefCell;
use std::rc::Rc;

/// The connections of one worker that carry many requests at once, by target.
#[derive(Debug)]
pub struct Trunks {
    clock: Rc<Clock>,
    shelves: RefCell<Vec<Shelf>>,
}

#[derive(Debug, Default)]
struct Shelf {
    settings: Option<PoolSettings>,
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
    slot: TargetSlot,
    generation: u32,
    news: Rc<News>,
}

impl Trunks {
    /// No connections yet.
    #[must_use]
    pub(crate) fn new(clock: Rc<Clock>) -> Self {
        Self {
            clock,
            shelves: RefCell::default(),
        }
    }

    /// The way to a place on a connection to the target whose addresses are of `generation`; none when
    /// there is no such target.
    pub fn way(self: &Rc<Self>, slot: TargetSlot, generation: u32) -> Option<Way> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.get_mut(slot.0 as usize)?;
        shelf.settings.as_ref()?;
        shelf
            .trunks
            .retain(|trunk| trunk.generation == generation && !trunk.is_over());
        if let Some(trunk) = shelf.trunks.iter().find(|trunk| trunk.has_room()) {
            return Some(Way::Lane(trunk.lane(true)));
        }
        if shelf.news.waiting() < shelf.expected() {
            return Some(Way::Wait(shelf.news.wait()));
        }
        shelf.building += 1;
        Some(Way::Build(Building {
            trunks: Rc::clone(self),
            slot,
            generation,
            news: Rc::clone(&shelf.news),
        }))
    }

    /// Connections to one target, and how many of them nobody uses.
    pub fn open(&self, slot: TargetSlot) -> (usize, usize) {
        let shelves = self.shelves.borrow();
        let Some(shelf) = shelves.get(slot.0 as usize) else {
            return (0, 0);
        };
        let idle = shelf.trunks.iter().filter_map(|trunk| trunk.idle_since());
        (shelf.trunks.len(), idle.count())
    }

    pub(crate) fn adopt(&self, settings: &[Option<PoolSettings>]) {
        let mut shelves = self.shelves.borrow_mut();
        let slots = settings.len().max(shelves.len());
        shelves.resize_with(slots, Shelf::default);
        let none = std::iter::repeat(&None);
        for (shelf, settings) in shelves.iter_mut().zip(settings.iter().chain(none)) {
            shelf.settings.clone_from(settings);
            if settings.is_none() {
                shelf.trunks.clear();
            }
        }
    }

    /// Lets go of what has ended, of what was idle for too long, of what is more than may be kept, and
    /// of what others wait for; looks whether the rest lives.
    pub(crate) fn sweep(&self) {
        let now = self.clock.now();
        for shelf in self.shelves.borrow_mut().iter_mut() {
            let Some(settings) = &shelf.settings else {
                continue;
            };
            let wanted = settings
                .limit
                .as_ref()
                .is_some_and(|limit| limit.is_wanted());
            let mut kept = 0;
            shelf.trunks.retain(|trunk| {
                trunk.check();
                let Some(since) = trunk.idle_since() else {
                    return !trunk.is_over();
                };
                kept += 1;
                let stale = wanted || kept > settings.max_idle;
                !stale && !is_past(since, settings.idle_for, now) && !trunk.is_over()
            });
        }
    }

    /// Lets go of all connections; those in use end with their last request.
    pub(crate) fn clear(&self) {
        for shelf in self.shelves.borrow_mut().iter_mut() {
            shelf.trunks.clear();
        }
    }

    fn on_shelf<T>(&self, slot: TargetSlot, work: impl FnOnce(&mut Shelf) -> T) -> Option<T> {
        let mut shelves = self.shelves.borrow_mut();
        shelves.get_mut(slot.0 as usize).map(work)
    }
}

impl Shelf {
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
        permit: Option<Permit>,
    ) -> Result<Lane, h2::Error> {
        let pulse = Pulse::new(Rc::clone(&self.trunks.clock), Rc::clone(&self.news));
        let trunk = Trunk::start(transport, pulse, self.generation, permit).await?;
        let lane = trunk.lane(false);
        self.trunks
            .on_shelf(self.slot, |shelf| shelf.trunks.push(trunk));
        Ok(lane)
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        self.trunks.on_shelf(self.slot, |shelf| {
            shelf.building = shelf.building.saturating_sub(1);
            // Of one that was made its first sign of life tells.
            if shelf.trunks.iter().all(|trunk| trunk.most().is_some()) {
                self.news.tell();
            }
        });
    }
}
