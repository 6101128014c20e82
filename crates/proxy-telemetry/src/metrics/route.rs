//! Metrics of one route on one worker.

use super::cell::Counter;
use super::group::MetricGroup;
use super::histogram::{Histogram, HistogramTotal};
use super::reason_counters::{ReasonCounters, ReasonTotals};
use std::time::Duration;

/// Number of statuses that a worker counts separately for one route.
const MAX_STATUSES: usize = 12;

/// Number of reasons of failures that a worker counts separately for one route.
const MAX_REASONS: usize = 8;

/// Number of classes of answers by body size: none, then powers of two.
const SIZE_CLASSES: usize = 32;

/// The result of a request, as far as metrics record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Status sent, 100–999; 499 if the client disconnected before there was one.
    pub status: u16,
    /// From the first byte of the request to the last of the response.
    pub took: Duration,
    /// Body bytes received from the client.
    pub bytes_in: u64,
    /// Body bytes sent to the client.
    pub bytes_out: u64,
    /// True if the request failed for a reason of the proxy or the upstream, or the status is 5xx.
    /// Refusals that the client caused, such as 401, 404 and 429, are not failures.
    pub failed: bool,
    /// True if the client disconnected before the end.
    pub aborted: bool,
}

/// Metrics of one route on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct RouteMetrics {
    statuses: ReasonCounters<MAX_STATUSES>,
    duration: Histogram,
    first_byte: Histogram,
    bytes_in: Counter,
    bytes_out: Counter,
    sizes: [Counter; SIZE_CLASSES],
    failed: Counter,
    aborted: Counter,
    failures: ReasonCounters<MAX_REASONS>,
}

/// Metrics of one route over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTotal {
    pub(crate) statuses: ReasonTotals,
    /// Durations of requests.
    pub duration: HistogramTotal,
    /// Times until the first body byte of streamed responses was sent.
    pub first_byte: HistogramTotal,
    /// Body bytes received from clients.
    pub bytes_in: u64,
    /// Body bytes sent to clients.
    pub bytes_out: u64,
    sizes: [u64; SIZE_CLASSES],
    /// Failed requests.
    pub failed: u64,
    /// Requests aborted by the client.
    pub aborted: u64,
    pub(crate) failures: ReasonTotals,
}

impl RouteMetrics {
    /// Counts a finished request.
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
        if let Some(class) = self.sizes.get(size_class(bytes_out)) {
            class.add(1);
        }
        self.failed.add(u64::from(failed));
        self.aborted.add(u64::from(aborted));
    }
}

impl RouteMetrics {
    /// Counts the reason of a failed request, an index into the registry's reasons.
    pub fn fail(&self, reason: u16) {
        self.failures.add(reason);
    }

    /// Counts a streamed response. Its first body byte is sent `waited` after the first byte of the
    /// request.
    pub fn stream(&self, waited: Duration) {
        self.first_byte.record(waited);
    }
}

impl MetricGroup for RouteMetrics {
    type Total = RouteTotal;

    fn add_to(&self, total: &mut RouteTotal) {
        self.statuses.add_to(&mut total.statuses);
        self.duration.add_to(&mut total.duration);
        self.first_byte.add_to(&mut total.first_byte);
        total.bytes_in += self.bytes_in.get();
        total.bytes_out += self.bytes_out.get();
        for (sum, class) in total.sizes.iter_mut().zip(&self.sizes) {
            *sum += class.get();
        }
        total.failed += self.failed.get();
        total.aborted += self.aborted.get();
        self.failures.add_to(&mut total.failures);
    }
}

impl RouteTotal {
    /// Number of finished requests.
    pub fn requests(&self) -> u64 {
        self.statuses.sum()
    }

    /// Requests by status, in ascending order. Statuses without a slot are in
    /// [`Self::other_statuses`].
    pub fn by_status(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.statuses
            .by_key
            .iter()
            .map(|(key, count)| (*key, *count))
    }

    /// Answers by size of body, without classes that are empty: class 0 has no bytes, class n has
    /// 2^(n-1) to 2^n - 1, and class 31 all above.
    pub fn by_size(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        let counted = (0..).zip(self.sizes);
        counted.filter(|(_, count)| *count > 0)
    }

    /// Requests with a status of 500 or more.
    pub fn server_errors(&self) -> u64 {
        let failed = self.by_status().filter(|(status, _)| 500 <= *status);
        failed.map(|(_, count)| count).sum()
    }

    /// Requests with a status beyond the twelve that a worker counts separately for one route.
    pub fn other_statuses(&self) -> u64 {
        self.statuses.other
    }
}

/// The number of bits of a size.
fn size_class(bytes: u64) -> usize {
    let bits = u64::BITS - bytes.leading_zeros();
    usize::try_from(bits).map_or(0, |bits| bits.min(SIZE_CLASSES - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_by_powers_of_two() {
        let route = RouteMetrics::default();
        for bytes_out in [0, 1, 2, 3, 4, 1_023, 1_024, 1 << 30, u64::MAX] {
            route.record(&Outcome {
                status: 200,
                took: Duration::ZERO,
                bytes_in: 0,
                bytes_out,
                failed: false,
                aborted: false,
            });
        }
        let mut total = RouteTotal::default();
        route.add_to(&mut total);
        let found: Vec<_> = total.by_size().collect();
        assert_eq!(
            found,
            [(0, 1), (1, 1), (2, 2), (3, 1), (10, 1), (11, 1), (31, 2)]
        );
    }
}
