//! Passive health checks: outlier detection, targets that cannot be connected to.

pub(crate) mod outlier;
pub(crate) mod reachability;
