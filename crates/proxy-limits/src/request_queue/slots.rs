//! Slots of waiting requests, and the lists through them.

use crate::fair_shares::Claim;

/// A waiting request, returned to the caller at its turn.
///
/// Unique: a ticket is not reused after its request has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub(super) slot: u32,
    serial: u32,
}

/// State of a waiting request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) claim: Claim,
    pub(super) deadline_ns: u64,
}

/// Numbered slots, each in up to four lists at once.
#[derive(Debug)]
pub(super) struct Slots {
    places: Vec<Slot>,
    free: Vec<u32>,
    /// All requests.
    pub(super) arrivals: Links,
    /// The requests of one client for one destination.
    pub(super) own: Links,
    /// The first request of each client for one destination.
    pub(super) turns: Links,
    /// The first request for each destination.
    pub(super) destinations: Links,
}

#[derive(Debug)]
struct Slot {
    serial: u32,
    waiting: Option<Waiting>,
}

/// Reason why a slot leaves a rotation.
#[derive(Clone, Copy)]
pub(super) enum SlotRemoval {
    /// The request was served: its successor moves to the end.
    Used,
    /// The request was not served: its successor keeps the place.
    Kept,
}

/// Links between neighbouring slots in the lists of one kind. A slot is in one of them at most.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    before: Option<u32>,
    after: Option<u32>,
}

/// The ends of one list.
#[derive(Debug, Default)]
pub(super) struct List {
    first: Option<u32>,
    last: Option<u32>,
    length: usize,
}

impl Slots {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let links = || Links(Vec::with_capacity(capacity));
        Self {
            places: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            arrivals: links(),
            own: links(),
            turns: links(),
            destinations: links(),
        }
    }

    /// Memory taken, in slots.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        let links = [&self.arrivals, &self.own, &self.turns, &self.destinations];
        let links: usize = links.iter().map(|links| links.0.capacity()).sum();
        self.places.capacity() + self.free.capacity() + links
    }

    pub(super) fn insert(&mut self, waiting: Waiting) -> Ticket {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(Slot {
                serial: 0,
                waiting: None,
            });
            for links in [
                &mut self.arrivals,
                &mut self.own,
                &mut self.turns,
                &mut self.destinations,
            ] {
                links.0.push(Link::default());
            }
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let place = self.places.get_mut(slot as usize);
        let serial = place.map_or(0, |place| {
            place.waiting = Some(waiting);
            place.serial
        });
        Ticket { slot, serial }
    }

    pub(super) fn free(&mut self, slot: u32) {
        if let Some(place) = self.places.get_mut(slot as usize) {
            place.waiting = None;
            place.serial = place.serial.wrapping_add(1);
            self.free.push(slot);
        }
    }

    pub(super) fn waiting(&self, slot: u32) -> Option<Waiting> {
        self.places.get(slot as usize)?.waiting
    }

    /// The ticket of the request that waits at `slot`.
    pub(super) fn ticket(&self, slot: u32) -> Option<Ticket> {
        let place = self.places.get(slot as usize)?;
        let serial = place.serial;
        place.waiting.map(|_| Ticket { slot, serial })
    }
}

impl Links {
    pub(super) fn push_back(&mut self, list: &mut List, slot: u32) {
        let before = list.last.replace(slot);
        self.set(slot, |link| {
            *link = Link {
                before,
                after: None,
            };
        });
        match before {
            Some(before) => self.set(before, |link| link.after = Some(slot)),
            None => list.first = Some(slot),
        }
        list.length += 1;
    }

    pub(super) fn remove(&mut self, list: &mut List, slot: u32) {
        let Link { before, after } = self.get(slot);
        match before {
            Some(before) => self.set(before, |link| link.after = after),
            None => list.first = after,
        }
        match after {
            Some(after) => self.set(after, |link| link.before = before),
            None => list.last = before,
        }
        list.length -= 1;
    }

    /// The slots of `list`, in order.
    pub(super) fn iter(&self, list: &List) -> impl Iterator<Item = u32> {
        std::iter::successors(list.first, |slot| self.get(*slot).after)
    }

    /// Removes `slot` from a rotation, which continues with its successor, if any.
    pub(super) fn advance(
        &mut self,
        list: &mut List,
        slot: u32,
        successor: Option<u32>,
        turn: SlotRemoval,
    ) {
        match (successor, turn) {
            (None, _) => self.remove(list, slot),
            (Some(next), SlotRemoval::Used) => {
                self.remove(list, slot);
                self.push_back(list, next);
            }
            (Some(next), SlotRemoval::Kept) if next == slot => {}
            (Some(next), SlotRemoval::Kept) => self.replace(list, slot, next),
        }
    }

    /// Puts `new` in the place of `slot`.
    fn replace(&mut self, list: &mut List, slot: u32, new: u32) {
        let link = self.get(slot);
        self.set(new, |place| *place = link);
        match link.before {
            Some(before) => self.set(before, |link| link.after = Some(new)),
            None => list.first = Some(new),
        }
        match link.after {
            Some(after) => self.set(after, |link| link.before = Some(new)),
            None => list.last = Some(new),
        }
    }

    fn get(&self, slot: u32) -> Link {
        self.0.get(slot as usize).copied().unwrap_or_default()
    }

    fn set(&mut self, slot: u32, change: impl FnOnce(&mut Link)) {
        if let Some(link) = self.0.get_mut(slot as usize) {
            change(link);
        }
    }
}

impl List {
    pub(super) const fn first(&self) -> Option<u32> {
        self.first
    }

    pub(super) const fn last(&self) -> Option<u32> {
        self.last
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }
}
