//! The denial at the beginning of an incomplete answer.

use agent_protocol::{Block, Decision};
use std::cell::RefCell;

/// The denial at the beginning of an incomplete answer. It is valid regardless of the remainder: a
/// body that is too large, stalls or is incomplete is omitted.
#[derive(Debug, Default)]
pub struct EarlyDenial(RefCell<Option<Decision>>);

impl EarlyDenial {
    /// Removes and returns the denial; `None` if the agent has not denied.
    pub fn take(&self) -> Option<Decision> {
        self.0.take()
    }

    /// Stores `decision`, unless a more complete one is stored.
    pub(crate) fn set(&self, decision: Decision) {
        self.0.borrow_mut().get_or_insert(decision);
    }

    /// Stores the proxy's own 403.
    pub(crate) fn set_plain(&self) {
        self.set(Decision::Block(Block::default()));
    }
}
