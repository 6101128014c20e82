//! Places at which owners take turns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use uuid::Uuid;

#[expect(
    clippy::disallowed_types,
    reason = "held for a look-up among those that wait, and by no request without a place"
)]
type Lock = std::sync::Mutex<Turns>;

/// Number of permits, and the maximum of one owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceLimits {
    /// Places in all.
    pub(crate) all: usize,
    /// Places of one owner.
    pub(crate) each: usize,
    /// Places beyond the first one of each owner, for all owners together.
    pub(crate) further: usize,
}

/// A pool of places. A free place is granted to the owner that holds the fewest and, among equals,
/// to the one served longest ago, regardless of the number of its waiting requests.
#[derive(Clone, Debug)]
pub(crate) struct FairPlaces(Arc<Lock>);

#[derive(Debug)]
struct Turns {
    limits: PlaceLimits,
    owners: BTreeMap<Uuid, Owner>,
    /// In the order of their arrival.
    waiting: VecDeque<Waiter>,
    grants: u64,
}

/// An owner that holds a place or waits for one.
#[derive(Debug, Default)]
struct Owner {
    held: usize,
    waiting: usize,
    /// Number of its last grant; 0 before its first.
    served: u64,
}

#[derive(Debug)]
struct Waiter {
    owner: Uuid,
    granted: oneshot::Sender<()>,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct FairPlace {
    places: FairPlaces,
    owner: Uuid,
}

/// A wait for a place, cancelled when dropped.
struct Wait<'a> {
    places: &'a FairPlaces,
    owner: Uuid,
    granted: oneshot::Receiver<()>,
    is_over: bool,
}

impl FairPlaces {
    pub(crate) fn new(limits: PlaceLimits) -> Self {
        Self(Arc::new(Lock::new(Turns {
            limits,
            owners: BTreeMap::new(),
            waiting: VecDeque::new(),
            grants: 0,
        })))
    }

    /// Waits for a place of `owner`.
    pub(crate) async fn take(&self, owner: Uuid) -> FairPlace {
        let (sender, granted) = oneshot::channel();
        let mut wait = Wait {
            places: self,
            owner,
            granted,
            is_over: false,
        };
        self.turns().enter(Waiter {
            owner,
            granted: sender,
        });
        // The sender is dropped unused only if its receiver is dropped too.
        (&mut wait.granted).await.unwrap_or_default();
        wait.is_over = true;
        FairPlace {
            places: self.clone(),
            owner,
        }
    }

    /// Places that `owner` holds.
    pub(crate) fn held_by(&self, owner: Uuid) -> usize {
        let turns = self.turns();
        turns.owners.get(&owner).map_or(0, |owner| owner.held)
    }

    /// Returns true if an owner without a place waits for one.
    pub(crate) fn are_wanted(&self) -> bool {
        let turns = self.turns();
        let mut owners = turns.owners.values();
        owners.any(|owner| owner.held == 0 && 0 < owner.waiting)
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    fn enter(&mut self, waiter: Waiter) {
        self.owners.entry(waiter.owner).or_default().waiting += 1;
        self.waiting.push_back(waiter);
        self.grant();
    }

    /// Grants free places to waiters.
    fn grant(&mut self) {
        while let Some(waiter) = self.next() {
            let owner = self.owners.entry(waiter.owner).or_default();
            owner.waiting -= 1;
            if waiter.granted.send(()).is_ok() {
                self.grants += 1;
                (owner.held, owner.served) = (owner.held + 1, self.grants);
            } else {
                self.forget(waiter.owner);
            }
        }
    }

    /// The waiter for the next free place.
    fn next(&mut self) -> Option<Waiter> {
        let held: usize = self.owners.values().map(|owner| owner.held).sum();
        let further = |owner: &Owner| owner.held.saturating_sub(1);
        let further: usize = self.owners.values().map(further).sum();
        let PlaceLimits {
            all,
            each,
            further: most_further,
        } = self.limits;
        if all <= held {
            return None;
        }
        let waiting = self.waiting.iter().enumerate();
        let waiting = waiting.filter_map(|(at, waiter)| {
            let owner = self.owners.get(&waiter.owner)?;
            let may = owner.held == 0 || owner.held < each && further < most_further;
            may.then_some((owner.held, owner.served, at))
        });
        let (.., at) = waiting.min()?;
        self.waiting.remove(at)
    }

    fn leave(&mut self, owner: Uuid) {
        if let Some(owner) = self.owners.get_mut(&owner) {
            owner.held -= 1;
        }
        self.grant();
        self.forget(owner);
    }

    fn forget(&mut self, id: Uuid) {
        let is_idle = |owner: &Owner| owner.held == 0 && owner.waiting == 0;
        if self.owners.get(&id).is_some_and(is_idle) {
            self.owners.remove(&id);
        }
    }
}

impl Drop for FairPlace {
    fn drop(&mut self) {
        self.places.turns().leave(self.owner);
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut turns = self.places.turns();
        // Under the lock no place is granted between both.
        self.granted.close();
        if self.granted.try_recv().is_ok() {
            turns.leave(self.owner);
            return;
        }
        let before = turns.waiting.len();
        turns.waiting.retain(|waiter| !waiter.granted.is_closed());
        let left = before - turns.waiting.len();
        if let Some(owner) = turns.owners.get_mut(&self.owner) {
            owner.waiting -= left;
        }
        turns.forget(self.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);

    fn places(all: usize, each: usize) -> FairPlaces {
        FairPlaces::new(PlaceLimits {
            all,
            each,
            further: all,
        })
    }

    type Begun<'a> = Pin<Box<dyn Future<Output = FairPlace> + 'a>>;

    /// The place, if it was granted.
    async fn granted(wait: &mut Begun<'_>) -> Option<FairPlace> {
        let poll = |context: &mut std::task::Context<'_>| match wait.as_mut().poll(context) {
            Poll::Ready(place) => Poll::Ready(Some(place)),
            Poll::Pending => Poll::Ready(None),
        };
        poll_fn(poll).await
    }

    /// A wait that has begun.
    async fn begun(places: &FairPlaces, owner: Uuid) -> Begun<'_> {
        let mut wait: Begun<'_> = Box::pin(places.take(owner));
        assert!(granted(&mut wait).await.is_none(), "no place is free");
        wait
    }

    #[tokio::test]
    async fn the_next_place_is_for_the_owner_without_one() {
        let places = places(2, 2);
        let (first, _second) = (places.take(A).await, places.take(A).await);
        let third = begun(&places, A).await;
        assert!(!places.are_wanted(), "its owner holds a place");
        let mut other = begun(&places, B).await;
        assert!(places.are_wanted());
        drop(first);
        assert!(granted(&mut other).await.is_some());
        drop(third);
        assert!(!places.are_wanted());
    }

    #[tokio::test]
    async fn owners_take_turns_however_many_of_one_wait() {
        let places = places(1, 1);
        let mut held = places.take(A).await;
        let (mut of_a, mut of_b) = (VecDeque::new(), VecDeque::new());
        for _ in 0..4 {
            of_a.push_back(begun(&places, A).await);
        }
        for _ in 0..3 {
            of_b.push_back(begun(&places, B).await);
        }
        for turn in 0..6 {
            drop(held);
            let queue = if turn % 2 == 0 { &mut of_b } else { &mut of_a };
            let mut next = queue.pop_front().unwrap();
            held = granted(&mut next).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_wait_that_ends_leaves_nothing_behind() {
        let places = places(1, 1);
        let held = places.take(A).await;
        drop((begun(&places, A).await, begun(&places, B).await));
        let next = begun(&places, B).await;
        drop(held);
        // The place was granted, and the grant not yet received.
        drop(next);
        drop(places.take(A).await);
        let turns = places.turns();
        assert!(
            turns.owners.is_empty() && turns.waiting.is_empty(),
            "{turns:?}"
        );
    }
}
