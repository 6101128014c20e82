//! What one worker counts for one route.

use super::MetricGroup;
use super::cell::Counter;
use super::histogram::{Histogram, HistogramTotal};
use super::reason_counters::{ReasonCounters, ReasonTotals};
use std::time::Duration;

/// Distinct statuses a route counts apart on each worker.
const MAX_STATUSES: usize = 12;

/// How a request ended, as far as metrics care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Status sent, 100–999; 499 when the client left before there was one.
    pub status: u16,
    /// From the first byte of the request to the last of the response.
    pub took: Duration,
    /// Body bytes received from the client.
    pub bytes_in: u64,
    /// Body bytes sent to the client.
    pub bytes_out: u64,
    /// Whether it failed: the proxy or the upstream gave a reason, or the status is 5xx.
    pub failed: bool,
    /// Whether the client left before the end.
    pub aborted: bool,
}

/// Counts of one route on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct RouteMetrics {
    statuses: ReasonCounters<MAX_STATUSES>,
    duration: Histogram,
    bytes_in: Counter,
    bytes_out: Counter,
    failed: Counter,
    aborted: Counter,
}

/// Counts of one route over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTotal {
    pub(crate) statuses: ReasonTotals,
    /// How long requests took.
    pub duration: HistogramTotal,
    /// Body bytes received from clients.
    pub bytes_in: u64,
    /// Body bytes sent to clients.
    pub bytes_out: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests whose client left before the end.
    pub aborted: u64,
}

impl RouteMetrics {
    /// Counts one request that is over.
    #[inline]
    pub fn record(&self, outcome: &Outcome) {
        let Outcome {
            status,
            took,
            bytes_in,
            bytes_out,
            failed,
            aborted,
        } = *outcome;
        self.statuses.add(status);
        self.duration.record(took);
        self.bytes_in.add(bytes_in);
        self.bytes_out.add(bytes_out);
        self.failed.add(u64::from(failed));
        self.aborted.add(u64::from(aborted));
    }
}

impl MetricGroup for RouteMetrics {
    type Total = RouteTotal;

    fn add_to(&self, total: &mut RouteTotal) {
        self.statuses.add_to(&mut total.statuses);
        self.duration.add_to(&mut total.duration);
        total.bytes_in += self.bytes_in.get();
        total.bytes_out += self.bytes_out.get();
        total.failed += self.failed.get();
        total.aborted += self.aborted.get();
    }
}

impl RouteTotal {
    /// Requests that are over.
    pub fn requests(&self) -> u64 {
        self.statuses.sum()
    }

    /// Requests by status, in ascending order; the few that found no slot of their own are in
    /// [`Self::other_statuses`].
    pub fn by_status(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.statuses
            .by_key
            .iter()
            .map(|(key, count)| (*key, *count))
    }

    /// Requests whose status was beyond the twelve that a worker tells apart for one route.
    pub fn other_statuses(&self) -> u64 {
        self.statuses.other
    }
}
