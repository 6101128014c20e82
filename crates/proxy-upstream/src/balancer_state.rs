//! What a choice between targets looks at.

use crate::sticky::StickyToken;
use std::cell::Cell;

/// The targets of an upstream as one worker sees them at one moment. Targets are named by their position in
/// the configuration; every method answers in constant time.
pub trait BalancerState {
    /// Targets that take requests: well, not draining, of a weight above 0; in the order of the
    /// configuration.
    fn ready(&self) -> &[u16];

    /// The target's weight, 1 to 10 000.
    fn weight(&self, target: u16) -> u32;

    /// The target's share of its weight in thousandths, 1 to 1000: less than the whole while it starts
    /// slowly.
    fn share(&self, target: u16) -> u32;

    /// Requests that the target has in hand, of all workers.
    fn active_requests(&self, target: u16) -> u32;

    /// The target's average latency in nanoseconds; none before its first response.
    fn latency_ns(&self, target: u16) -> Option<f32>;

    /// The hash of the target's address: [`target_hash`](crate::target_hash).
    fn address_hash(&self, target: u16) -> u64;

    /// The target that a client's cookie names, if it may be called; a draining target may
    /// still be, by clients bound to it.
    fn session(&self, token: StickyToken) -> Option<u16>;

    /// Where the worker has come to in turns, and what it owes to each target.
    fn rotation(&self) -> &Rotation;
}

/// What a choice looks at in a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct BalancingRequest {
    /// The hash of the client's address: [`client_hash`](crate::client_hash).
    pub client_hash: u64,
    /// Random bits, new for each request.
    pub random: u64,
    /// The session that the request's cookie names.
    pub session: Option<StickyToken>,
}

/// How far one worker has come with the targets of one upstream. Not shared: each worker goes round by
/// itself.
#[derive(Debug)]
pub struct Rotation {
    turn: Cell<u32>,
    // By target: how much its share of the requests lags behind. In units of weight × share.
    owed: Box<[Cell<i64>]>,
}

impl Rotation {
    /// The beginning, for `targets` targets. Workers begin at different `turn`s, or a few requests would
    /// all go to the first target.
    #[must_use]
    pub fn new(targets: usize, turn: u32) -> Self {
        Self {
            turn: Cell::new(turn),
            owed: (0..targets).map(|_| Cell::new(0)).collect(),
        }
    }

    /// Requests that were spread before, in a `u32` that wraps.
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
