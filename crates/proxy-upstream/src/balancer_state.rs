//! The input of a load-balancing decision.

use crate::sticky::StickyToken;
use std::cell::Cell;

/// The targets of an upstream as one worker sees them at one moment. Targets are identified by
/// their index in the configuration; every method takes constant time.
pub trait BalancerState {
    /// Targets that take requests: healthy, not draining, with a weight above 0; in the order of
    /// the configuration.
    fn ready(&self) -> &[u16];

    /// The target's weight, 1 to 10 000.
    fn weight(&self, target: u16) -> u32;

    /// Returns true if all ready targets have the same weight.
    fn has_equal_weights(&self) -> bool;

    /// The target's share of its weight in thousandths, 1 to 1000: less than the whole during slow
    /// start.
    fn share(&self, target: u16) -> u32;

    /// Number of requests in flight at the target, of all workers.
    fn active_requests(&self, target: u16) -> u32;

    /// The target's average latency in nanoseconds; `None` before its first response.
    fn latency_ns(&self, target: u16) -> Option<f32>;

    /// The hash of the target's address: [`target_hash`](crate::target_hash).
    fn address_hash(&self, target: u16) -> u64;

    /// The target of a client's cookie, if it is usable; a draining target may be, for clients
    /// bound to it.
    fn session(&self, token: StickyToken) -> Option<u16>;

    /// The worker's state of rotation.
    fn rotation(&self) -> &Rotation;
}

/// The parts of a request that a decision depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct BalancingRequest {
    /// The hash of the client's address: [`client_hash`](crate::client_hash).
    pub client_hash: u64,
    /// Random bits, new for each request.
    pub random: u64,
    /// The session in the request's cookie.
    pub session: Option<StickyToken>,
    /// True if the client used HTTPS: a new session's cookie is `Secure`.
    pub is_https: bool,
}

/// One worker's state of rotation over the targets of one upstream. Not shared between workers.
#[derive(Debug)]
pub struct Rotation {
    turn: Cell<u32>,
    // By target: its credit, in units of weight × share.
    owed: Box<[Cell<i64>]>,
}

impl Rotation {
    /// The initial state for `targets` targets. Workers begin at different `turn`s; otherwise the
    /// first requests would all go to the first target.
    #[must_use]
    pub fn new(targets: usize, turn: u32) -> Self {
        Self {
            turn: Cell::new(turn),
            owed: (0..targets).map(|_| Cell::new(0)).collect(),
        }
    }

    /// Number of earlier requests, in a `u32` that wraps.
    #[inline]
    pub fn turn(&self) -> u32 {
        self.turn.get()
    }

    #[inline]
    pub(crate) fn step(&self) {
        self.turn.set(self.turn.get().wrapping_add(1));
    }

    #[inline]
    pub(crate) fn owed(&self, target: u16) -> i64 {
        self.owed.get(usize::from(target)).map_or(0, Cell::get)
    }

    #[inline]
    pub(crate) fn owe(&self, target: u16, owed: i64) {
        if let Some(cell) = self.owed.get(usize::from(target)) {
            cell.set(owed);
        }
    }
}
