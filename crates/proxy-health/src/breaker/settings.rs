//! Settings of a circuit breaker.

use std::time::Duration;

/// Settings of a breaker. Destructured by naming every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BreakerSettings {
    /// Consecutive failures that open it: `failure-threshold`, at least 1.
    pub failure_threshold: u32,
    /// Time for which it stays open: `timeout-seconds`.
    pub timeout: Duration,
    /// Maximum number of concurrent probes: `half-open-max-requests`, 1 to 65 535.
    pub half_open_max_requests: u32,
    /// Successful probes that close it: `success-threshold`, 1 to 65 535.
    pub success_threshold: u32,
}
