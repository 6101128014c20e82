//! A limit on concurrent units that clients share fairly.

use crate::client_key::ClientKey;
use crate::concurrency_limit::LimitReached;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Limits the number of concurrent units over all threads, shared fairly among clients.
///
/// At the maximum a unit is still granted to a client that would hold fewer than the client with
/// the most: the newest unit of the latter is displaced, as in a full
/// [`RequestQueue`](crate::RequestQueue). The holder of a displaced unit is woken through
/// [`FairPermit::poll_displaced`].
///
/// Unlike [`ConcurrencyLimit`](crate::ConcurrencyLimit), it takes a lock and allocates for each
/// unit.
#[derive(Clone, Debug)]
pub struct FairLimit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max: u32,
    /// A copy of the number of units held, for readers without the lock.
    held: AtomicU32,
    next_number: AtomicU64,
    clients: Lock<Clients>,
}

/// Units of each client that has any, in order of age.
type Clients = BTreeMap<ClientKey, BTreeMap<u64, Arc<Unit>>>;

#[expect(
    clippy::disallowed_types,
    reason = "held for a look-up in a table of at most `max` units, and by no request without a call \
              of an agent"
)]
type Lock<T> = std::sync::Mutex<T>;

#[derive(Debug, Default)]
struct Unit {
    is_displaced: AtomicBool,
    holder: Lock<Option<Waker>>,
}

/// One unit of a [`FairLimit`], released on drop.
#[derive(Debug)]
pub struct FairPermit {
    limit: FairLimit,
    client: ClientKey,
    number: u64,
    unit: Arc<Unit>,
}

impl FairLimit {
    /// An unused limit of `max` units.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self(Arc::new(Inner {
            max,
            held: AtomicU32::new(0),
            next_number: AtomicU64::new(0),
            clients: Lock::default(),
        }))
    }

    /// Takes one unit for `client`. At the maximum it displaces the newest unit of the client with
    /// the most.
    ///
    /// # Errors
    /// [`LimitReached`] at the maximum, if no other client holds at least two units more.
    pub fn acquire(&self, client: ClientKey) -> Result<FairPermit, LimitReached> {
        let Inner {
            max,
            held,
            next_number,
            clients,
        } = &*self.0;
        let mut clients = lock(clients);
        let displaced = if held.load(Ordering::Relaxed) < *max {
            None
        } else {
            let displaced = displace(&mut clients, client);
            Some(displaced.ok_or_else(|| self.reached())?)
        };
        let number = next_number.fetch_add(1, Ordering::Relaxed);
        let unit = Arc::new(Unit::default());
        let own = clients.entry(client).or_default();
        own.insert(number, Arc::clone(&unit));
        match displaced {
            None => {
                held.fetch_add(1, Ordering::Relaxed);
            }
            Some(unit) => {
                drop(clients);
                unit.displace();
            }
        }
        Ok(FairPermit {
            limit: self.clone(),
            client,
            number,
            unit,
        })
    }

    /// Units held now.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Configured maximum, shared by all threads.
    #[must_use]
    pub fn max(&self) -> u32 {
        self.0.max
    }

    fn reached(&self) -> LimitReached {
        LimitReached {
            held: self.held(),
            max: self.max(),
        }
    }
}

impl FairPermit {
    /// Ready when another client has displaced the unit, which is then no longer held.
    pub fn poll_displaced(&self, cx: &Context<'_>) -> Poll<LimitReached> {
        if !self.unit.is_displaced.load(Ordering::Acquire) {
            let mut holder = lock(&self.unit.holder);
            if holder.as_ref().is_none_or(|old| !old.will_wake(cx.waker())) {
                *holder = Some(cx.waker().clone());
            }
        }
        // Read again after the waker is in place: no displacement is missed.
        if self.unit.is_displaced.load(Ordering::Acquire) {
            Poll::Ready(self.limit.reached())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let Inner { held, clients, .. } = &*self.limit.0;
        if remove(&mut lock(clients), self.client, self.number).is_some() {
            held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Unit {
    fn displace(&self) {
        self.is_displaced.store(true, Ordering::Release);
        let holder = lock(&self.holder).take();
        if let Some(holder) = holder {
            holder.wake();
        }
    }
}

/// Removes the newest unit of the client with the most, if `client` will have fewer.
fn displace(clients: &mut Clients, client: ClientKey) -> Option<Arc<Unit>> {
    let will_have = clients.get(&client).map_or(0, BTreeMap::len) + 1;
    let (most, units) = clients.iter().max_by_key(|(_, units)| units.len())?;
    if units.len() <= will_have {
        return None;
    }
    let (most, (newest, _)) = (*most, units.last_key_value()?);
    let newest = *newest;
    remove(clients, most, newest)
}

fn remove(clients: &mut Clients, client: ClientKey, number: u64) -> Option<Arc<Unit>> {
    let units = clients.get_mut(&client)?;
    let unit = units.remove(&number);
    if units.is_empty() {
        clients.remove(&client);
    }
    unit
}

fn lock<T>(lock: &Lock<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ClientKey = ClientKey::V4(1);
    const OTHER: ClientKey = ClientKey::V4(2);

    fn is_displaced(permit: &FairPermit) -> bool {
        let cx = Context::from_waker(Waker::noop());
        permit.poll_displaced(&cx).is_ready()
    }

    fn acquired(limit: &FairLimit, client: ClientKey, count: usize) -> Vec<FairPermit> {
        (0..count).map(|_| limit.acquire(client).unwrap()).collect()
    }

    #[test]
    fn a_client_alone_may_have_all_units_and_no_more() {
        let limit = FairLimit::new(3);
        let held = acquired(&limit, ONE, 3);

        let refused = limit.acquire(ONE).unwrap_err();

        assert_eq!(refused, LimitReached { held: 3, max: 3 });
        assert!(!held.iter().any(is_displaced));
        drop(held);
        assert_eq!(limit.held(), 0);
        assert!(limit.acquire(ONE).is_ok());
    }

    #[test]
    fn a_newcomer_displaces_the_newest_units_of_the_client_with_the_most_up_to_its_share() {
        let limit = FairLimit::new(4);
        let first = acquired(&limit, ONE, 4);

        let second = acquired(&limit, OTHER, 2);

        let displaced: Vec<_> = first.iter().map(is_displaced).collect();
        assert_eq!(displaced, [false, false, true, true]);
        assert!(limit.acquire(OTHER).is_err(), "both have their share");
        assert!(limit.acquire(ONE).is_err());
        assert_eq!(limit.held(), 4);
        drop(first);
        assert_eq!(limit.held(), 2, "a displaced unit is released once");
        drop(second);
        assert_eq!(limit.held(), 0);
    }

    #[test]
    fn the_holder_of_a_displaced_unit_is_woken() {
        struct Flag(AtomicBool);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let limit = FairLimit::new(2);
        let held = acquired(&limit, ONE, 2);
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&flag));
        let polled = held.last().unwrap();
        assert!(
            polled
                .poll_displaced(&Context::from_waker(&waker))
                .is_pending()
        );

        let _other = limit.acquire(OTHER).unwrap();

        assert!(flag.0.load(Ordering::SeqCst));
        assert!(is_displaced(polled));
    }

    #[test]
    fn threads_together_never_exceed_the_maximum() {
        let limit = FairLimit::new(100);
        let held: Vec<_> = std::thread::scope(|scope| {
            let acquire = |client| {
                let limit = &limit;
                scope.spawn(move || {
                    let tries = (0..100).map(|_| limit.acquire(ClientKey::V4(client)));
                    tries.filter_map(Result::ok).collect::<Vec<_>>()
                })
            };
            let threads: Vec<_> = (0..4).map(acquire).collect();
            threads.into_iter().map(|one| one.join().unwrap()).collect()
        });

        let kept = held.iter().flatten().filter(|one| !is_displaced(one));
        assert_eq!(kept.count(), 100);
        assert_eq!(limit.held(), 100);
    }
}
