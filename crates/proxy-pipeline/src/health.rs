//! Passive health checks: ejection of targets that fail requests or connection attempts.

pub(crate) mod outlier;
pub(crate) mod reachability;
