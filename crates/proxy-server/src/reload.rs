//! The reload: one transaction over the state that outlives plans.

pub(crate) mod limit_registry;
pub(crate) mod server;
