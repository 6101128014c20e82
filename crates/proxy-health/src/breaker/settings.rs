//! What a circuit breaker is set to.

use std::time::Duration;

/// When a breaker opens and closes. Taken apart by naming every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BreakerSettings {
    /// Failures in a row that open it: `failure-threshold`, at least 1.
    pub failure_threshold: u32,
    /// How long it stays open: `timeout-seconds`.
    pub timeout: Duration,
    /// Requests that may try at once whether the upstream is back: `half-open-max-requests`, 1 to
    /// 65 535.
    pub half_open_max_requests: u32,
    /// Successes of such requests that close it: `success-threshold`, 1 to 65 535.
    pub success_threshold: u32,
}
