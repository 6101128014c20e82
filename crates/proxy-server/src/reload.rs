//! The reload: one transaction over the state that outlives plans.

pub(crate) mod former_plans;
pub(crate) mod limit_registry;
pub(crate) mod plan_gauges;
pub(crate) mod server;
