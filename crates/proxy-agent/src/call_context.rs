//! Facts of a call that outlive its future.

use crate::early_denial::EarlyDenial;
use std::cell::Cell;

/// Facts of a call that outlive its future, which may be dropped before it is ready.
#[derive(Debug, Default)]
pub struct CallContext {
    /// A denial that was read before the call failed or was dropped, and is still valid.
    pub denial: EarlyDenial,
    /// Set before the call is dropped for the agent's timeout.
    pub has_expired: Cell<bool>,
}
