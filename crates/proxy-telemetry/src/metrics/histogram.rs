//! Histograms of durations with fixed buckets.

use super::cell::Counter;
use std::time::Duration;

/// Upper bounds of the buckets, inclusive, in nanoseconds: 100 µs to 60 s.
///
/// Bounds that objectives use (100 ms, 250 ms, 1 s) rather than powers of two; each is at least
/// twice the one before, so that no two lie between neighbouring powers of two.
pub const BOUNDS_NS: [u64; 18] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];

/// The upper bound of each bucket in seconds, in the canonical form of `OpenMetrics`.
pub(crate) const BOUNDS_TEXT: [&str; BUCKET_COUNT] = [
    "0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1",
    "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "60.0", "+Inf",
];

/// Number of buckets, with the last one above every bound.
pub(crate) const BUCKET_COUNT: usize = BOUNDS_NS.len() + 1;

/// Indexed by the highest bit of a number: the lowest bucket it may belong to, and the bound above
/// which it belongs to the next.
const BY_HIGHEST_BIT: [(usize, u64); 64] = by_highest_bit();

/// A histogram of durations, written by one thread.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Counter; BUCKET_COUNT],
    /// Sum in units of 1024 ns. Each request in flight adds a second per second: in nanoseconds,
    /// the sum would overflow within weeks on a busy worker.
    sum: Counter,
}

/// The sum of histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramTotal {
    /// Number of durations in each bucket, not cumulative; the last is above every bound.
    pub buckets: [u64; BUCKET_COUNT],
    /// Sum of all durations, in nanoseconds, each rounded to a microsecond or so.
    pub sum_ns: u128,
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub fn record(&self, took: Duration) {
        let ns = nanoseconds(took);
        if let Some(bucket) = self.buckets.get(bucket_of(ns)) {
            bucket.add(1);
        }
        self.sum.add(ns.wrapping_add(512) >> 10);
    }

    pub(crate) fn add_to(&self, total: &mut HistogramTotal) {
        for (sum, bucket) in total.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.get();
        }
        total.sum_ns += u128::from(self.sum.get()) << 10;
    }
}

impl HistogramTotal {
    /// Number of recorded durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Nanoseconds of a duration. Wraps after 584 years: a check would cost time for every request.
#[inline]
fn nanoseconds(took: Duration) -> u64 {
    let whole = took.as_secs().wrapping_mul(1_000_000_000);
    whole.wrapping_add(u64::from(took.subsec_nanos()))
}

/// The index of the bucket of a duration.
pub(crate) fn bucket(took: Duration) -> usize {
    bucket_of(nanoseconds(took))
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    let place = (ns | 1).ilog2() as usize;
    let (first, bound) = BY_HIGHEST_BIT.get(place).copied().unwrap_or_default();
    first + usize::from(ns > bound)
}

#[expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, where an index out of range is a compile error"
)]
const fn by_highest_bit() -> [(usize, u64); 64] {
    let mut table = [(BOUNDS_NS.len(), u64::MAX); 64];
    let mut place = 0;
    while place < table.len() {
        let mut first = 0;
        while first < BOUNDS_NS.len() && BOUNDS_NS[first] < 1 << place {
            first += 1;
        }
        if first < BOUNDS_NS.len() {
            table[place] = (first, BOUNDS_NS[first]);
        }
        place += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(ns: u64) -> usize {
        BOUNDS_NS.iter().take_while(|bound| ns > **bound).count()
    }

    #[test]
    fn the_table_agrees_with_a_search_at_every_edge() {
        let powers = (0..64).map(|bit| 1_u64 << bit);
        for edge in BOUNDS_NS.into_iter().chain(powers).chain([0, u64::MAX]) {
            for ns in [edge.saturating_sub(1), edge, edge.saturating_add(1)] {
                assert_eq!(bucket_of(ns), searched(ns), "{ns} ns");
            }
        }
    }

    #[test]
    fn bounds_are_equal_as_texts_and_numbers() {
        for (ns, text) in BOUNDS_NS.into_iter().zip(BOUNDS_TEXT) {
            let (whole, part) = text.split_once('.').unwrap();
            let written = format!("{whole}{part:0<9}").parse();
            assert_eq!(written, Ok(ns), "{text}");
        }
    }

    #[test]
    fn a_duration_is_counted_once_and_summed_to_a_microsecond_or_so() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_micros(100));
        histogram.record(Duration::from_nanos(100_001));
        histogram.record(Duration::from_hours(1));

        let mut total = HistogramTotal::default();
        histogram.add_to(&mut total);

        assert_eq!((total.buckets[0], total.buckets[1]), (1, 1));
        assert_eq!((total.buckets[18], total.count()), (1, 3));
        assert!(total.sum_ns.abs_diff(3_600_000_200_001) <= 3 * 512);
    }

    #[test]
    fn rounding_does_not_shift_the_sum() {
        let histogram = Histogram::default();
        for ns in 0..102_400 {
            histogram.record(Duration::from_nanos(ns));
        }

        let mut total = HistogramTotal::default();
        histogram.add_to(&mut total);

        let exact = 102_400 * 102_399 / 2;
        assert!(total.sum_ns.abs_diff(exact) < exact / 10_000, "{total:?}");
    }
}
