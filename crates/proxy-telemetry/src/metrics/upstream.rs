//! What one worker counts for one upstream.

use super::MetricGroup;
use super::cell::{Counter, Gauge};
use super::histogram::{Histogram, HistogramTotal};
use super::reason_counters::{ReasonCounters, ReasonTotals};
use std::time::Duration;

/// Distinct failure reasons an upstream counts apart on each worker.
const MAX_REASONS: usize = 24;

/// Counts of one upstream on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct UpstreamMetrics {
    /// Times a request was sent or tried to be sent, retries too.
    pub attempts: Counter,
    /// Attempts after the first of a request.
    pub retries: Counter,
    /// Pooled connections that turned out to be closed when they were to be used.
    pub pool_stale: Counter,
    /// Connections open to the upstream, in use or idle.
    pub pool_size: Gauge,
    /// Connections kept for the next request.
    pub pool_idle: Gauge,
    failures: ReasonCounters<MAX_REASONS>,
    duration: Histogram,
}

/// Counts of one upstream over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTotal {
    /// Times a request was sent or tried to be sent, retries too.
    pub attempts: u64,
    /// Attempts after the first of a request.
    pub retries: u64,
    /// Pooled connections that turned out to be closed when they were to be used.
    pub pool_stale: u64,
    /// Connections open to the upstream, in use or idle.
    pub pool_size: u64,
    /// Connections kept for the next request.
    pub pool_idle: u64,
    pub(crate) failures: ReasonTotals,
    /// From an attempt's start to the head of its response.
    pub duration: HistogramTotal,
}

impl UpstreamMetrics {
    /// Counts an attempt that failed; `reason` is a position in the registry's reasons.
    pub fn failed(&self, reason: u16) {
        self.failures.add(reason);
    }

    /// Counts how long an attempt waited for the head of its response.
    #[inline]
    pub fn answered(&self, took: Duration) {
        self.duration.record(took);
    }
}

impl UpstreamTotal {
    /// Attempts that failed.
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
            pool_stale,
            pool_size,
            pool_idle,
            failures,
            duration,
        } = self;
        total.attempts += attempts.get();
        total.retries += retries.get();
        total.pool_stale += pool_stale.get();
        total.pool_size += pool_size.get();
        total.pool_idle += pool_idle.get();
        failures.add_to(&mut total.failures);
        duration.add_to(&mut total.duration);
    }
}
