//! A budget shared fairly among its owners.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use uuid::Uuid;

#[expect(
    clippy::disallowed_types,
    reason = "held for a look-up among waiters, never across an await"
)]
type Lock = std::sync::Mutex<FairQueue>;

/// Limits of a budget, in units of the caller's choice, such as tasks or bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetLimits {
    /// Units in total.
    pub(crate) all: usize,
    /// Maximum number of units per owner.
    pub(crate) each: usize,
    /// Units that stay free for owners without a permit: an owner's second and later permits may
    /// not use them.
    pub(crate) reserve: usize,
}

/// Divides a budget fairly among owners. Free units go to the waiting owner that holds the fewest
/// units; ties go to the owner served longest ago. The number of an owner's waiting requests does
/// not matter, and a request that is too large for now does not block smaller ones.
#[derive(Clone, Debug)]
pub(crate) struct FairPermits(Arc<Lock>);

#[derive(Debug)]
struct FairQueue {
    limits: BudgetLimits,
    owners: BTreeMap<Uuid, Owner>,
    /// In order of arrival.
    waiting: VecDeque<Waiter>,
    grants: u64,
}

/// State of an owner that holds a permit or waits for one.
#[derive(Debug, Default)]
struct Owner {
    /// Units of the owner's permits.
    held: usize,
    waiting: usize,
    /// Number of the owner's last grant; 0 before the first.
    served: u64,
}

#[derive(Debug)]
struct Waiter {
    owner: Uuid,
    units: usize,
    granted: oneshot::Sender<()>,
}

/// Units granted to an owner, released on drop.
#[derive(Debug)]
pub(crate) struct FairPermit {
    permits: FairPermits,
    owner: Uuid,
    units: usize,
}

/// A request in the queue, removed when dropped.
struct Wait<'a> {
    permits: &'a FairPermits,
    owner: Uuid,
    units: usize,
    granted: oneshot::Receiver<()>,
    is_over: bool,
}

impl FairPermits {
    pub(crate) fn new(limits: BudgetLimits) -> Self {
        Self(Arc::new(Lock::new(FairQueue {
            limits,
            owners: BTreeMap::new(),
            waiting: VecDeque::new(),
            grants: 0,
        })))
    }

    /// Waits for `units` of the budget for `owner`. `units` must not exceed the limit per owner: a
    /// larger request waits forever.
    pub(crate) async fn acquire(&self, owner: Uuid, units: usize) -> FairPermit {
        let (sender, granted) = oneshot::channel();
        let mut wait = Wait {
            permits: self,
            owner,
            units,
            granted,
            is_over: false,
        };
        self.turns().enter(Waiter {
            owner,
            units,
            granted: sender,
        });
        // The sender is dropped unused only if its receiver is dropped too.
        (&mut wait.granted).await.unwrap_or_default();
        wait.is_over = true;
        FairPermit {
            permits: self.clone(),
            owner,
            units,
        }
    }

    /// Units that `owner` holds now.
    pub(crate) fn held_by(&self, owner: Uuid) -> usize {
        let turns = self.turns();
        turns.owners.get(&owner).map_or(0, |owner| owner.held)
    }

    /// Returns true if an owner without a permit waits for one.
    pub(crate) fn are_wanted(&self) -> bool {
        let turns = self.turns();
        let mut owners = turns.owners.values();
        owners.any(|owner| owner.held == 0 && 0 < owner.waiting)
    }

    fn turns(&self) -> MutexGuard<'_, FairQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FairQueue {
    fn enter(&mut self, waiter: Waiter) {
        self.owners.entry(waiter.owner).or_default().waiting += 1;
        self.waiting.push_back(waiter);
        self.grant();
    }

    /// Grants free permits to waiters.
    fn grant(&mut self) {
        while let Some(waiter) = self.next() {
            let owner = self.owners.entry(waiter.owner).or_default();
            owner.waiting -= 1;
            if waiter.granted.send(()).is_ok() {
                self.grants += 1;
                (owner.held, owner.served) = (owner.held + waiter.units, self.grants);
            } else {
                self.forget(waiter.owner);
            }
        }
    }

    /// Removes the next waiter that fits into the budget.
    fn next(&mut self) -> Option<Waiter> {
        let BudgetLimits { all, each, reserve } = self.limits;
        let held: usize = self.owners.values().map(|owner| owner.held).sum();
        let waiting = self.waiting.iter().enumerate();
        let waiting = waiting.filter_map(|(at, Waiter { owner, units, .. })| {
            let owner = self.owners.get(owner)?;
            let reserve = if owner.held == 0 { 0 } else { reserve };
            let fits = owner.held + units <= each && held + units + reserve <= all;
            fits.then_some((owner.held, owner.served, at))
        });
        let (.., at) = waiting.min()?;
        self.waiting.remove(at)
    }

    fn leave(&mut self, owner: Uuid, units: usize) {
        if let Some(owner) = self.owners.get_mut(&owner) {
            owner.held -= units;
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

impl Drop for FairPermit {
    fn drop(&mut self) {
        self.permits.turns().leave(self.owner, self.units);
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut turns = self.permits.turns();
        // The caller holds the lock: no permit is granted between the two calls.
        self.granted.close();
        if self.granted.try_recv().is_ok() {
            turns.leave(self.owner, self.units);
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

    fn permits(all: usize, each: usize) -> FairPermits {
        FairPermits::new(BudgetLimits {
            all,
            each,
            reserve: 0,
        })
    }

    type Waiting<'a> = Pin<Box<dyn Future<Output = FairPermit> + 'a>>;

    /// The permit, if it was granted.
    async fn granted(wait: &mut Waiting<'_>) -> Option<FairPermit> {
        let poll = |context: &mut std::task::Context<'_>| match wait.as_mut().poll(context) {
            Poll::Ready(permit) => Poll::Ready(Some(permit)),
            Poll::Pending => Poll::Ready(None),
        };
        poll_fn(poll).await
    }

    /// A wait that has begun.
    async fn begun(permits: &FairPermits, owner: Uuid, units: usize) -> Waiting<'_> {
        let mut wait: Waiting<'_> = Box::pin(permits.acquire(owner, units));
        assert!(granted(&mut wait).await.is_none(), "too little is free");
        wait
    }

    #[tokio::test]
    async fn the_next_permit_is_for_the_owner_without_one() {
        let permits = permits(2, 2);
        let (first, _second) = (permits.acquire(A, 1).await, permits.acquire(A, 1).await);
        let third = begun(&permits, A, 1).await;
        assert!(!permits.are_wanted(), "its owner holds a permit");
        let mut other = begun(&permits, B, 1).await;
        assert!(permits.are_wanted());
        drop(first);
        assert!(granted(&mut other).await.is_some());
        drop(third);
        assert!(!permits.are_wanted());
    }

    #[tokio::test]
    async fn owners_take_turns_however_many_of_one_wait() {
        let permits = permits(1, 1);
        let mut held = permits.acquire(A, 1).await;
        let (mut of_a, mut of_b) = (VecDeque::new(), VecDeque::new());
        for _ in 0..4 {
            of_a.push_back(begun(&permits, A, 1).await);
        }
        for _ in 0..3 {
            of_b.push_back(begun(&permits, B, 1).await);
        }
        for turn in 0..6 {
            drop(held);
            let queue = if turn % 2 == 0 { &mut of_b } else { &mut of_a };
            let mut next = queue.pop_front().unwrap();
            held = granted(&mut next).await.unwrap();
        }
    }

    #[tokio::test]
    async fn further_permits_leave_the_reserve_and_large_ones_hold_up_no_small_one() {
        let permits = FairPermits::new(BudgetLimits {
            all: 10,
            each: 6,
            reserve: 3,
        });
        let first = permits.acquire(A, 4).await;
        let mut too_much = begun(&permits, A, 3).await;
        let second = permits.acquire(A, 2).await;
        let other = permits.acquire(B, 1).await;
        let mut further = begun(&permits, B, 1).await;
        let mut large = begun(&permits, Uuid::from_u128(3), 4).await;
        let small = permits.acquire(Uuid::from_u128(4), 3).await;
        drop(other);
        let further = granted(&mut further).await.unwrap();
        assert!(granted(&mut large).await.is_none(), "one is free");
        drop((first, second, small, further));
        assert!(granted(&mut large).await.is_some());
        assert!(granted(&mut too_much).await.is_some());
    }

    #[tokio::test]
    async fn an_ended_wait_leaves_no_state() {
        let permits = permits(1, 1);
        let held = permits.acquire(A, 1).await;
        drop((begun(&permits, A, 1).await, begun(&permits, B, 1).await));
        let next = begun(&permits, B, 1).await;
        drop(held);
        // The permit was granted, and the grant not yet received.
        drop(next);
        drop(permits.acquire(A, 1).await);
        let turns = permits.turns();
        assert!(
            turns.owners.is_empty() && turns.waiting.is_empty(),
            "{turns:?}"
        );
    }
}
