//! Number of connections per client.

use crate::client_key::{ClientKey, KeySeed};
use crate::concurrency_limit::LimitReached;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

/// Number of parts of the table, each with its own lock. A power of two.
const SHARDS: usize = 64;

/// Connections of each client over all threads, up to a ceiling for each.
///
/// Only clients with a connection have an entry, so the table is never larger than the number of
/// open connections.
#[derive(Debug)]
pub struct ConnectionsByClient {
    max: AtomicU32,
    seed: KeySeed,
    shards: Box<[Shard]>,
}

/// Counts a connection of its client until dropped.
#[derive(Debug)]
pub struct ClientPermit {
    clients: Arc<ConnectionsByClient>,
    client: ClientKey,
}

#[expect(
    clippy::disallowed_types,
    reason = "taken when a connection begins and when it ends, for one look-up, and by no request"
)]
type Shard = std::sync::Mutex<HashMap<ClientKey, u32, KeySeed>>;

impl ConnectionsByClient {
    /// An empty table that admits up to `max` connections of each client. `seed` prevents clients
    /// from choosing addresses that slow down look-ups.
    #[must_use]
    pub fn new(max: u32, seed: KeySeed) -> Self {
        let shard = |_| Shard::new(HashMap::with_hasher(seed));
        Self {
            max: AtomicU32::new(max),
            seed,
            shards: (0..SHARDS).map(shard).collect(),
        }
    }

    /// Counts one more connection of `client`.
    ///
    /// # Errors
    /// [`LimitReached`] if the client has the maximum number of connections.
    pub fn acquire(self: &Arc<Self>, client: ClientKey) -> Result<ClientPermit, LimitReached> {
        self.enter(client)?;
        Ok(ClientPermit {
            clients: Arc::clone(self),
            client,
        })
    }

    fn enter(&self, client: ClientKey) -> Result<(), LimitReached> {
        let max = self.max.load(Ordering::Relaxed);
        let Some(mut shard) = self.shard(client) else {
            return Ok(());
        };
        let held = shard.get(&client).copied().unwrap_or_default();
        if max <= held {
            return Err(LimitReached { held, max });
        }
        shard.insert(client, held + 1);
        Ok(())
    }

    fn leave(&self, client: ClientKey) {
        let Some(mut shard) = self.shard(client) else {
            return;
        };
        if let Entry::Occupied(mut count) = shard.entry(client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Sets the maximum for new connections.
    pub fn set_max(&self, max: u32) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// The ceiling of each client.
    pub fn max(&self) -> u32 {
        self.max.load(Ordering::Relaxed)
    }

    /// Number of connections of the client with the most.
    pub fn greatest(&self) -> u32 {
        let greatest = |shard| lock(shard).values().copied().max();
        self.shards.iter().filter_map(greatest).max().unwrap_or(0)
    }

    fn shard(&self, client: ClientKey) -> Option<MutexGuard<'_, HashMap<ClientKey, u32, KeySeed>>> {
        // Low bits: the hash tables of the shards use the other bits first.
        let hash = usize::try_from(self.seed.hash_one(client) & (SHARDS as u64 - 1));
        self.shards.get(hash.unwrap_or_default()).map(lock)
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        self.clients.leave(self.client);
    }
}

fn lock(shard: &Shard) -> MutexGuard<'_, HashMap<ClientKey, u32, KeySeed>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: KeySeed = KeySeed { low: 3, high: 4 };

    #[test]
    fn connections_are_limited_per_client() {
        let table = ConnectionsByClient::new(2, SEED);
        let (one, other) = (ClientKey::V4(1), ClientKey::V4(2));

        assert!(table.enter(one).is_ok());
        assert!(table.enter(one).is_ok());
        assert_eq!(table.enter(one), Err(LimitReached { held: 2, max: 2 }));
        assert!(table.enter(other).is_ok());
        assert_eq!(table.greatest(), 2);
        table.leave(one);
        assert!(table.enter(one).is_ok());
    }

    #[test]
    fn a_client_without_connections_is_removed() {
        let table = ConnectionsByClient::new(2, SEED);
        for number in 0..1_000 {
            table.enter(ClientKey::V6(number)).unwrap();
            table.leave(ClientKey::V6(number));
        }

        assert!(table.shards.iter().all(|shard| lock(shard).is_empty()));
    }

    #[test]
    fn threads_together_never_exceed_the_ceiling() {
        let table = ConnectionsByClient::new(100, SEED);
        let client = ClientKey::V4(9);
        let entered: usize = std::thread::scope(|scope| {
            let enter = || (0..100).filter(|_| table.enter(client).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(enter)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).sum()
        });

        assert_eq!(entered, 100);
    }
}
