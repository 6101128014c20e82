//! Facts of a call that outlive its future.

use crate::early_denial::EarlyDenial;
use std::cell::Cell;

/// Facts of a call that outlive its future, which may be dropped before it is ready.
#[derive(Debug, Default)]
pub struct CallContext {
    /// The denial that stands though the call has failed or was dropped.
    pub denial: EarlyDenial,
    /// The call is dropped because the agent's time is over. Set before that.
    pub has_expired: Cell<bool>,
}
