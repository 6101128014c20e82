//! What one worker counts for one target of an upstream.

use super::MetricGroup;
use super::cell::{Counter, Gauge};

/// Counts of one target on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct TargetMetrics {
    /// Requests sent or tried to be sent.
    pub requests: Counter,
    /// Requests that failed for a reason of the target's.
    pub failures: Counter,
    /// Requests being served.
    pub active: Gauge,
}

/// Counts of one target over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetTotal {
    /// Requests sent or tried to be sent.
    pub requests: u64,
    /// Requests that failed for a reason of the target's.
    pub failures: u64,
    /// Requests being served.
    pub active: u64,
}

impl MetricGroup for TargetMetrics {
    type Total = TargetTotal;

    fn add_to(&self, total: &mut TargetTotal) {
        let Self {
            requests,
            failures,
            active,
        } = self;
        total.requests += requests.get();
        total.failures += failures.get();
        total.active += active.get();
    }
}
