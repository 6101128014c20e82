//! Metrics of one upstream on one worker.

use super::cell::{Counter, Gauge};
use super::group::MetricGroup;
use super::histogram::{Histogram, HistogramTotal};
use super::reason_counters::{ReasonCounters, ReasonTotals};
use std::time::Duration;

/// Number of failure reasons that a worker counts separately for one upstream.
const MAX_REASONS: usize = 24;

/// Metrics of one upstream on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct UpstreamMetrics {
    /// Attempts to send a request, retries included.
    pub attempts: Counter,
    /// Attempts after the first of a request.
    pub retries: Counter,
    /// Retries that the budget refused.
    pub retries_refused: Counter,
    /// Pooled connections found closed when they were taken.
    pub pool_stale: Counter,
    /// Connections to the upstream, in use or idle.
    pub pool_size: Gauge,
    /// Idle connections in the pool.
    pub pool_idle: Gauge,
    failures: ReasonCounters<MAX_REASONS>,
    duration: Histogram,
}

/// Metrics of one upstream over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTotal {
    /// Attempts to send a request, retries included.
    pub attempts: u64,
    /// Attempts after the first of a request.
    pub retries: u64,
    /// Retries that the budget refused.
    pub retries_refused: u64,
    /// Pooled connections found closed when they were taken.
    pub pool_stale: u64,
    /// Connections to the upstream, in use or idle.
    pub pool_size: u64,
    /// Idle connections in the pool.
    pub pool_idle: u64,
    pub(crate) failures: ReasonTotals,
    /// From an attempt's start to the head of its response.
    pub duration: HistogramTotal,
}

impl UpstreamMetrics {
    /// Counts a failed attempt; `reason` is an index into the registry's reasons.
    pub fn failed(&self, reason: u16) {
        self.failures.add(reason);
    }

    /// Records the time from an attempt's start to the head of its response.
    #[inline]
    pub fn answered(&self, took: Duration) {
        self.duration.record(took);
    }
}

impl UpstreamTotal {
    /// Number of failed attempts.
    pub fn failed(&self) -> u64 {
        self.failures.sum()
    }
}

impl MetricGroup for UpstreamMetrics {
    type Total = UpstreamTotal;

    fn add_to(&self, total: &mut UpstreamTotal) {
        let Self {
            attempts,
            retries,
            retries_refused,
            pool_stale,
            pool_size,
            pool_idle,
            failures,
            duration,
        } = self;
        total.attempts += attempts.get();
        total.retries += retries.get();
        total.retries_refused += retries_refused.get();
        total.pool_stale += pool_stale.get();
        total.pool_size += pool_size.get();
        total.pool_idle += pool_idle.get();
        failures.add_to(&mut total.failures);
        duration.add_to(&mut total.duration);
    }
}
