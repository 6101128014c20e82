//! Permits for password hashing: each hash takes 19 MiB and a tenth of a second of one core. A
//! permit keeps its memory for the next hash.

use crate::error::Error;
use control_auth::PasswordMemory;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;

/// Maximum number of concurrent comparisons for unknown browsers.
const UNKNOWN_BROWSER_PERMITS: usize = 2;
/// Maximum number of concurrent comparisons for signed-in users and known browsers, which a flood
/// of unknown clients must not delay.
const KNOWN_BROWSER_PERMITS: usize = 2;
/// Maximum number of waiting requests per network; further ones are refused at once.
const MAX_WAITING_OF_NETWORK: usize = 8;
/// Maximum number of waiting requests; further ones are refused at once.
const MAX_WAITING: usize = 1_024;
/// Maximum wait for a permit.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The permits of this replica. Networks of unknown browsers take turns: each has one request in
/// the shared queue, and its further requests wait behind that one.
#[derive(Debug)]
pub(crate) struct PasswordPermits {
    strangers: PermitPool,
    known: PermitPool,
    waiting: Semaphore,
    networks: Mutex<HashMap<IpAddr, Arc<NetworkQueue>>>,
}

/// Free permits, each with its memory; `None` before the permit's first use.
#[derive(Debug)]
struct PermitPool {
    freed: Sender<Option<PasswordMemory>>,
    free: Mutex<Receiver<Option<PasswordMemory>>>,
}

/// A permit with its memory. The hashing thread owns it, so a client that disconnects does not free
/// it early.
#[derive(Debug)]
pub(crate) struct PasswordPermit {
    memory: Option<PasswordMemory>,
    freed: Sender<Option<PasswordMemory>>,
}

impl PermitPool {
    fn new(permits: usize) -> Self {
        let (freed, free) = channel(permits);
        for _ in 0..permits {
            // The channel has capacity for all permits.
            drop(freed.try_send(None));
        }
        let free = Mutex::new(free);
        Self { freed, free }
    }

    /// Waits for a permit, first come, first served. Never `None`: the pool owns a sender.
    async fn acquire(&self) -> Option<PasswordPermit> {
        let memory = self.free.lock().await.recv().await?;
        Some(self.permit(memory))
    }

    /// Takes a permit if one is free and no other call waits.
    fn try_acquire(&self) -> Option<PasswordPermit> {
        let memory = self.free.try_lock().ok()?.try_recv().ok()?;
        Some(self.permit(memory))
    }

    fn permit(&self, memory: Option<PasswordMemory>) -> PasswordPermit {
        let freed = self.freed.clone();
        PasswordPermit { memory, freed }
    }
}

impl PasswordPermit {
    /// Memory for one hash, allocated at the first use.
    pub(crate) fn memory(&mut self) -> &mut PasswordMemory {
        self.memory.get_or_insert_default()
    }
}

impl Drop for PasswordPermit {
    fn drop(&mut self) {
        drop(self.freed.try_send(self.memory.take()));
    }
}

/// Queue of one network; dropped when none of its requests waits.
#[derive(Debug)]
struct NetworkQueue {
    turn: Semaphore,
    waiting: Semaphore,
}

/// Class of client that a password is hashed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordOwner {
    /// A browser that never signed in, at this address.
    Stranger(Option<IpAddr>),
    /// A signed-in user, or a browser that the user signed in with before.
    Known,
}

impl Default for PasswordPermits {
    fn default() -> Self {
        Self {
            strangers: PermitPool::new(UNKNOWN_BROWSER_PERMITS),
            known: PermitPool::new(KNOWN_BROWSER_PERMITS),
            waiting: Semaphore::new(MAX_WAITING),
            networks: Mutex::default(),
        }
    }
}

impl PasswordPermits {
    /// Waits for a permit, to be held until the password is hashed.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySignIns`] if too many requests wait, or no permit is free within ten
    /// seconds.
    pub(crate) async fn acquire(&self, owner: PasswordOwner) -> Result<PasswordPermit, Error> {
        let permit = match owner {
            PasswordOwner::Known => timeout(MAX_WAIT, self.known.acquire()).await,
            PasswordOwner::Stranger(address) => {
                if let Some(permit) = self.strangers.try_acquire() {
                    return Ok(permit);
                }
                let refused = |_| Error::TooManySignIns;
                let _waiting = self.waiting.try_acquire().map_err(refused)?;
                let turns = self.turns(network(address)).await;
                let _own = turns.waiting.try_acquire().map_err(refused)?;
                let queued = async {
                    let _turn = turns.turn.acquire().await.ok()?;
                    self.strangers.acquire().await
                };
                timeout(MAX_WAIT, queued).await
            }
        };
        let permit = permit.map_err(|_| Error::TooManySignIns)?;
        permit.ok_or(Error::Stopped)
    }

    /// The queue of a network. Drops queues without a waiting request first.
    async fn turns(&self, network: IpAddr) -> Arc<NetworkQueue> {
        let mut networks = self.networks.lock().await;
        networks.retain(|_, turns| 1 < Arc::strong_count(turns));
        let turns = networks.entry(network).or_insert_with(|| {
            Arc::new(NetworkQueue {
                turn: Semaphore::new(1),
                waiting: Semaphore::new(MAX_WAITING_OF_NETWORK),
            })
        });
        Arc::clone(turns)
    }
}

/// The /24 network of an IPv4 address, or the /48 network of an IPv6 address.
fn network(address: Option<IpAddr>) -> IpAddr {
    match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => {
            let [a, b, c, _] = address.octets();
            Ipv4Addr::new(a, b, c, 0).into()
        }
        Some(IpAddr::V6(address)) => {
            let [a, b, c, ..] = address.segments();
            Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into()
        }
        None => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_auth::{Password, PasswordHash};
    use std::fs;
    use std::sync::Barrier;
    use tokio::task::{JoinSet, spawn_blocking};

    const MIB: u64 = 1024 * 1024;
    /// Threads for blocking work; each of the allocator's arenas belongs to some of them.
    const THREADS: usize = 48;
    const PASSWORDS: u8 = 32;

    fn resident_bytes() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        1024 * number.unwrap().parse::<u64>().unwrap()
    }

    async fn compare(permits: Arc<PasswordPermits>, number: u8, hash: PasswordHash) {
        let owner = match number % 2 {
            0 => PasswordOwner::Known,
            _ => at(&format!("192.0.{number}.1")),
        };
        let mut permit = permits.acquire(owner).await.unwrap();
        let wrong = Password::new("wrong horse".to_owned());
        let compared = spawn_blocking(move || hash.verify_in(permit.memory(), &wrong));
        assert!(compared.await.unwrap().is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_passwords_take_no_more_memory_than_the_permits() {
        let barrier = Arc::new(Barrier::new(THREADS));
        let mut threads = JoinSet::new();
        for _ in 0..THREADS {
            let barrier = Arc::clone(&barrier);
            threads.spawn_blocking(move || barrier.wait());
        }
        threads.join_all().await;
        let hash = PasswordHash::unknown();
        let permits = Arc::new(PasswordPermits::default());
        compare(Arc::clone(&permits), 0, hash.clone()).await;
        let before = resident_bytes();
        let mut tasks = JoinSet::new();
        for number in 0..PASSWORDS {
            tasks.spawn(compare(Arc::clone(&permits), number, hash.clone()));
        }
        tasks.join_all().await;
        let grown = resident_bytes().saturating_sub(before) / MIB;
        // Three more permits of 19 MiB, and memory that the allocator keeps.
        assert!(grown < 90, "{grown} MiB");
    }

    fn at(address: &str) -> PasswordOwner {
        PasswordOwner::Stranger(Some(address.parse().unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_unknown_clients_leaves_permits_to_known_ones() {
        let permits = PasswordPermits::default();
        let mut held = Vec::new();
        for _ in 0..UNKNOWN_BROWSER_PERMITS {
            held.push(permits.acquire(at("192.0.2.1")).await.unwrap());
        }
        let flood = (0..MAX_WAITING_OF_NETWORK).map(|_| permits.acquire(at("192.0.2.2")));
        let mut flood: Vec<_> = flood.map(Box::pin).collect();
        for waiting in &mut flood {
            assert!(futures_poll(waiting).is_pending());
        }
        let refused = permits.acquire(at("192.0.2.3")).await;
        assert!(matches!(refused, Err(Error::TooManySignIns)), "{refused:?}");
        assert!(permits.acquire(PasswordOwner::Known).await.is_ok());
        held.pop();
        let first = flood.remove(0).await;
        assert!(first.is_ok(), "the permit that became free");
        let second = flood.remove(0).await;
        assert!(
            matches!(second, Err(Error::TooManySignIns)),
            "waited too long"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_waits_for_one_request_of_each_other_network() {
        let permits = PasswordPermits::default();
        let mut held = Vec::new();
        for _ in 0..UNKNOWN_BROWSER_PERMITS {
            held.push(permits.acquire(at("192.0.2.1")).await.unwrap());
        }
        let flood = (0..MAX_WAITING_OF_NETWORK).map(|_| permits.acquire(at("192.0.2.2")));
        let mut flood: Vec<_> = flood.map(Box::pin).collect();
        for waiting in &mut flood {
            assert!(futures_poll(waiting).is_pending());
        }
        let mut owner = Box::pin(permits.acquire(at("2001:db8::1")));
        assert!(futures_poll(&mut owner).is_pending());
        held.pop();
        drop(flood.remove(0).await.unwrap());
        assert!(owner.await.is_ok(), "the second permit that became free");
        drop(flood);
        let last = permits.turns(network(None)).await;
        assert_eq!(permits.networks.lock().await.len(), 1, "{last:?}");
    }

    fn futures_poll<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(future).poll(&mut context)
    }
}
