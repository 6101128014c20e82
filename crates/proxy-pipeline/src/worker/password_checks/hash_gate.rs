//! Limits on the password hashes that run at once, over all workers.

use proxy_limits::{ClientKey, RateDecision};
use std::collections::HashMap;
use std::sync::{Condvar, MutexGuard, PoisonError};

/// Maximum memory of all running hashes, in bytes: as much as the most costly Argon2 hash takes.
const MAX_HASH_BYTES: u64 = 256 << 20;

/// Bounds the memory of running hashes, and the attempts of each client. Threads that compute
/// hashes wait here; workers never do.
#[derive(Debug, Default)]
pub struct HashGate {
    state: Lock,
    changed: Condvar,
}

#[expect(
    clippy::disallowed_types,
    reason = "taken at both ends of a hash, which takes milliseconds at least"
)]
type Lock = std::sync::Mutex<GateState>;

#[derive(Debug, Default)]
struct GateState {
    held_bytes: u64,
    /// Hashes with memory begin in the order of their tickets, so that small ones do not overtake a
    /// large one forever.
    next_ticket: u64,
    served_ticket: u64,
    /// Number of hashes of each client that run or wait for memory.
    running: HashMap<ClientKey, u32>,
}

/// Cost of a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashCost {
    pub(crate) client: ClientKey,
    /// Memory in bytes; 0 for bcrypt.
    pub(crate) bytes: u64,
    /// Maximum of all running hashes, in bytes. A hash that needs more runs alone.
    pub(crate) max_bytes: u64,
}

/// A running hash; ended on drop.
#[derive(Debug)]
pub(crate) struct RunningHash<'g> {
    gate: &'g HashGate,
    cost: HashCost,
}

impl HashGate {
    /// Maximum memory of all running hashes, in bytes; at most a quarter of the process's memory
    /// limit.
    #[must_use]
    pub fn max_bytes(limit_bytes: Option<u64>) -> u64 {
        limit_bytes.map_or(MAX_HASH_BYTES, |limit| MAX_HASH_BYTES.min(limit / 4))
    }

    /// Begins a hash after `take`, which takes an attempt of the client or returns the decision
    /// against it. Blocks while the client's other hashes may still return attempts, and then while
    /// memory is short.
    ///
    /// # Errors
    /// The client has no attempt left.
    pub(crate) fn begin(
        &self,
        cost: HashCost,
        mut take: impl FnMut() -> Result<(), RateDecision>,
    ) -> Result<RunningHash<'_>, RateDecision> {
        let HashCost {
            client,
            bytes,
            max_bytes,
        } = cost;
        let mut state = self.state();
        while let Err(decision) = take() {
            if !state.running.contains_key(&client) {
                return Err(decision);
            }
            state = self.wait(state);
        }
        *state.running.entry(client).or_default() += 1;
        if bytes > 0 {
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            while state.served_ticket != ticket || !state.has_room(bytes, max_bytes) {
                state = self.wait(state);
            }
            state.served_ticket += 1;
            state.held_bytes = state.held_bytes.saturating_add(bytes);
            // The next waiting hash may fit, too.
            self.changed.notify_all();
        }
        drop(state);
        Ok(RunningHash { gate: self, cost })
    }

    /// Number of running hashes of `client`, each of which may return its attempt.
    pub(crate) fn running(&self, client: ClientKey) -> u32 {
        self.state()
            .running
            .get(&client)
            .copied()
            .unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, GateState>) -> MutexGuard<'g, GateState> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }
}

impl GateState {
    fn has_room(&self, bytes: u64, max_bytes: u64) -> bool {
        self.held_bytes == 0 || self.held_bytes.saturating_add(bytes) <= max_bytes
    }
}

impl Drop for RunningHash<'_> {
    fn drop(&mut self) {
        let HashCost { client, bytes, .. } = self.cost;
        let mut state = self.gate.state();
        state.held_bytes = state.held_bytes.saturating_sub(bytes);
        let rest = state.running.get(&client).map_or(0, |running| running - 1);
        if rest == 0 {
            state.running.remove(&client);
        } else {
            state.running.insert(client, rest);
        }
        drop(state);
        self.gate.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    fn cost(client: u32, bytes: u64) -> HashCost {
        HashCost {
            client: ClientKey::V4(client),
            bytes,
            max_bytes: 100,
        }
    }

    #[test]
    fn hashes_of_all_threads_stay_within_the_memory_and_a_larger_one_runs_alone() {
        let gate = HashGate::default();
        let greatest = AtomicU64::new(0);
        thread::scope(|scope| {
            for number in 0..24_u32 {
                let (gate, greatest) = (&gate, &greatest);
                let bytes = [30, 60, 150][number as usize % 3];
                scope.spawn(move || {
                    let running = gate.begin(cost(number, bytes), || Ok(())).unwrap();
                    let held = gate.state().held_bytes;
                    assert!(held <= 100 || held == bytes, "{held}");
                    greatest.fetch_max(held, Ordering::Relaxed);
                    drop(running);
                });
            }
        });

        assert_eq!(greatest.into_inner(), 150);
        let state = gate.state();
        assert!(state.held_bytes == 0 && state.running.is_empty());
    }

    #[test]
    fn a_hash_without_memory_does_not_wait() {
        let gate = HashGate::default();
        let _large = gate.begin(cost(1, 100), || Ok(())).unwrap();

        let bcrypt = gate.begin(cost(1, 0), || Ok(())).unwrap();

        assert_eq!(gate.running(ClientKey::V4(1)), 2);
        drop(bcrypt);
        assert_eq!(gate.running(ClientKey::V4(1)), 1);
    }

    #[test]
    fn the_limit_of_the_process_bounds_all_hashes() {
        assert_eq!(HashGate::max_bytes(None), 256 << 20);
        assert_eq!(HashGate::max_bytes(Some(400)), 100);
    }
}
