//! Metrics of one target of an upstream on one worker.

use super::cell::{Counter, Gauge};
use super::group::MetricGroup;

/// Metrics of one target on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct TargetMetrics {
    /// Requests sent, or attempted to send.
    pub requests: Counter,
    /// Requests that failed because of the target.
    pub failures: Counter,
    /// Requests in flight.
    pub active: Gauge,
}

/// Metrics of one target over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetTotal {
    /// Requests sent, or attempted to send.
    pub requests: u64,
    /// Requests that failed because of the target.
    pub failures: u64,
    /// Requests in flight.
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
