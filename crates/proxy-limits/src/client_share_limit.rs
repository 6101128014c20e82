//! A concurrency limit that keeps its last units for clients that hold few.

use crate::client_key::{ClientKey, KeySeed};
use crate::concurrency_limit::{ConcurrencyLimit, LimitReached, Permit};
use crate::fair_shares::{Occupancy, fair_share, release};
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Limits the number of concurrent units over all threads, shared fairly among clients.
///
/// The first half of a limit of `C` units is granted without accounting, and costs what a
/// [`ConcurrencyLimit`] does. The `F = C / 2` units above it are counted for their clients:
///
/// - While the clients hold fewer than [`fair_share`] of them together, any client gets one more. Clients
///   that take all they get are stopped with `F / 9` units free, 55 of a limit of 1 000; a limit of at most
///   32 units is used up.
/// - Of the rest, a client without a counted unit gets one, so that clients with one unit each use up the
///   whole limit. Any other may have `k` units if `k` for each client are fewer than the free ones.
///
/// The table has at most one entry for each counted unit, and is empty while the limit has room.
#[derive(Clone, Debug)]
pub struct ClientShareLimit {
    limit: ConcurrencyLimit,
    counts: Arc<Lock<ClientCounts>>,
}

#[expect(
    clippy::disallowed_types,
    reason = "held for a look-up in a table, and only while half of the units are held"
)]
type Lock<T> = std::sync::Mutex<T>;

/// Units that are counted for their clients.
#[derive(Debug)]
struct ClientCounts {
    clients: HashMap<ClientKey, u32, KeySeed>,
    total: u32,
}

/// One unit of a [`ClientShareLimit`], released on drop.
#[derive(Debug)]
pub struct ClientSharePermit {
    /// `None` if it was taken while half of the units were free. Dropped before the unit is free
    /// again.
    #[expect(dead_code, reason = "held to be dropped")]
    counted: Option<Box<CountedUnit>>,
    unit: Permit,
}

#[derive(Debug)]
struct CountedUnit {
    counts: Arc<Lock<ClientCounts>>,
    client: ClientKey,
}

impl ClientShareLimit {
    /// An unused limit of `max` units. `seed` prevents clients from choosing addresses with
    /// colliding hashes.
    #[must_use]
    pub fn new(max: u32, seed: KeySeed) -> Self {
        Self {
            limit: ConcurrencyLimit::new(max),
            counts: Arc::new(Lock::new(ClientCounts {
                clients: HashMap::with_hasher(seed),
                total: 0,
            })),
        }
    }

    /// Takes one unit. Its client is read only while half of the units are held.
    ///
    /// # Errors
    /// [`LimitReached`] at the maximum, or, with the held units for the maximum, if the client may
    /// have none of the free ones.
    #[inline]
    pub fn acquire(
        &self,
        client: impl FnOnce() -> ClientKey,
    ) -> Result<ClientSharePermit, LimitReached> {
        let (unit, before) = self.limit.acquire_after()?;
        let counted = if before.is_short() {
            Some(self.count_unit(client(), before)?)
        } else {
            None
        };
        Ok(ClientSharePermit { counted, unit })
    }

    #[cold]
    fn count_unit(
        &self,
        client: ClientKey,
        before: Occupancy,
    ) -> Result<Box<CountedUnit>, LimitReached> {
        // Tested and counted under one lock: no two threads take the same free unit for one client.
        let mut counts = lock(&self.counts);
        if !counts.admits(client, before.free()) {
            let held = before.held;
            return Err(LimitReached { held, max: held });
        }
        counts.enter(client);
        drop(counts);
        Ok(Box::new(CountedUnit {
            counts: Arc::clone(&self.counts),
            client,
        }))
    }

    /// Units held now.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.limit.held()
    }

    /// Sets the maximum for later acquisitions.
    pub fn set_max(&self, max: u32) {
        self.limit.set_max(max);
    }
}

impl ClientSharePermit {
    /// Returns true if the permit is a unit of `limit`.
    #[must_use]
    pub fn is_of(&self, limit: &ClientShareLimit) -> bool {
        self.unit.is_of(&limit.limit)
    }
}

impl ClientCounts {
    /// Returns true if `client` may have one more unit while `free` are free, 1 at least.
    fn admits(&self, client: ClientKey, free: u32) -> bool {
        let held = self.clients.get(&client).copied().unwrap_or_default();
        let clients = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        held == 0
            || self.total < fair_share(free)
            || held.saturating_add(1).saturating_mul(clients) < free
    }

    fn enter(&mut self, client: ClientKey) {
        *self.clients.entry(client).or_default() += 1;
        self.total += 1;
    }
}

impl Drop for CountedUnit {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        release(&mut counts.clients, &self.client);
        counts.total = counts.total.saturating_sub(1);
    }
}

fn lock(counts: &Lock<ClientCounts>) -> MutexGuard<'_, ClientCounts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn limit(max: u32) -> ClientShareLimit {
        ClientShareLimit::new(max, KeySeed { low: 1, high: 2 })
    }

    fn take(limit: &ClientShareLimit, client: u32) -> Option<ClientSharePermit> {
        limit.acquire(|| ClientKey::V4(client)).ok()
    }

    fn taken(
        limit: &ClientShareLimit,
        clients: impl Iterator<Item = u32>,
    ) -> Vec<ClientSharePermit> {
        clients.filter_map(|client| take(limit, client)).collect()
    }

    #[test]
    fn heavy_clients_leave_units_to_newcomers() {
        for greedy in [1, 10, 60] {
            let limit = limit(1_000);
            let held = taken(&limit, (0..1_500).map(|number| number % greedy));
            assert_eq!(held.len(), 945, "{greedy}");
            let refused = limit.acquire(|| ClientKey::V4(0)).unwrap_err();
            assert_eq!(
                refused,
                LimitReached {
                    held: 945,
                    max: 945
                },
                "{greedy}"
            );

            let newcomers = taken(&limit, 1_000..1_100);

            assert_eq!(newcomers.len(), 55, "{greedy}");
            let full = limit.acquire(|| ClientKey::V4(2_000)).unwrap_err();
            assert_eq!(
                full,
                LimitReached {
                    held: 1_000,
                    max: 1_000
                }
            );
        }
    }

    #[test]
    fn a_newcomer_gets_the_unit_that_is_released() {
        let limit = limit(1_000);
        let mut held = taken(&limit, (0..1_500).map(|number| number % 60));
        let _newcomers = taken(&limit, 1_000..1_055);
        held.pop();

        assert!(take(&limit, 0).is_none());
        assert!(take(&limit, 1_000).is_none());
        assert!(take(&limit, 2_000).is_some());
    }

    #[test]
    fn clients_with_one_unit_each_use_up_the_limit() {
        let limit = limit(1_000);
        assert_eq!(taken(&limit, 0..1_500).len(), 1_000);
    }

    #[test]
    fn a_second_client_gets_several_of_the_units_that_the_first_leaves() {
        let limit = limit(1_000);
        let _first = taken(&limit, std::iter::repeat_n(1, 1_500));
        let second = taken(&limit, std::iter::repeat_n(2, 100));
        assert_eq!(second.len(), 18);
    }

    #[test]
    fn a_small_limit_is_used_up_by_one_client() {
        for max in 0..=32 {
            let limit = limit(max);
            let held = taken(&limit, std::iter::repeat_n(1, 50));
            assert_eq!(held.len(), max as usize);
        }
    }

    #[test]
    fn a_permit_is_of_its_own_limit() {
        let (one, other) = (limit(1), limit(1));
        let permit = take(&one, 1).unwrap();
        assert!(permit.is_of(&one) && !permit.is_of(&other));
    }

    #[test]
    fn a_lowered_limit_keeps_permits_and_refuses_new_ones() {
        let limit = limit(3);
        let held = taken(&limit, 0..3);
        limit.set_max(1);
        assert!(take(&limit, 4).is_none());
        assert_eq!(limit.held(), 3);
        drop(held);
        assert!(take(&limit, 4).is_some());
    }

    #[test]
    fn threads_together_never_exceed_the_maximum() {
        let limit = limit(100);
        let held: Vec<_> = std::thread::scope(|scope| {
            let limit = &limit;
            let start =
                |client| scope.spawn(move || taken(limit, std::iter::repeat_n(client, 100)));
            let threads: Vec<_> = (0..4).map(start).collect();
            threads
                .into_iter()
                .flat_map(|one| one.join().unwrap())
                .collect()
        });
        assert!((80..=100).contains(&held.len()), "{}", held.len());
        assert_eq!(limit.held() as usize, held.len());
        drop(held);
        assert_eq!(limit.held(), 0);
    }

    proptest! {
        #[test]
        fn a_newcomer_gets_any_free_unit_and_counts_end_at_none(
            max in 1_u32..200,
            steps in prop::collection::vec((0_u32..6, any::<usize>(), 1_usize..30), 1..60),
        ) {
            let limit = limit(max);
            let mut held = Vec::new();
            for (client, pick, repeat) in steps {
                if pick % 3 == 0 && !held.is_empty() {
                    held.swap_remove(pick % held.len());
                }
                held.extend(taken(&limit, std::iter::repeat_n(client, repeat)));
                prop_assert_eq!(limit.held() as usize, held.len());
                let is_free = limit.held() < max;
                prop_assert_eq!(take(&limit, 99).is_some(), is_free);
            }
            held.clear();
            let counts = lock(&limit.counts);
            prop_assert!(counts.clients.is_empty() && counts.total == 0);
        }
    }
}
