//! The reload: one transaction that replaces the plan and updates the state kept across plans.

pub(crate) mod former_plans;
pub(crate) mod limit_registry;
pub(crate) mod plan_gauges;
pub(crate) mod server;
