//! Facts of a call that outlive its future.

use crate::early_denial::EarlyDenial;
use std::cell::Cell;

/// Facts of a call that outlive its future, which may be dropped before it is ready.
#[derive(Debug, Default)]
pub struct CallContext {
    /// A denial read before the call failed or was dropped. It remains valid.
    pub denial: EarlyDenial,
    /// Set if the call is dropped because of the agent's timeout, before the drop.
    pub has_expired: Cell<bool>,
}
