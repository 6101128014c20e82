//! Quantiles estimated from summed histograms.

use super::histogram::{BOUNDS_NS, HistogramTotal};
use std::time::Duration;

impl HistogramTotal {
    /// The duration that `permille` of 1000 did not exceed; `None` without a recorded duration.
    ///
    /// Durations are assumed to be spread evenly within a bucket; above the last bound the result
    /// is that bound.
    pub fn quantile(&self, permille: u16) -> Option<Duration> {
        let count = u128::from(self.count());
        let rank = (count * u128::from(permille.min(1000)))
            .div_ceil(1000)
            .max(1);
        let mut below = 0;
        let mut lower = 0;
        for (bucket, upper) in self.buckets.iter().zip(BOUNDS_NS) {
            let inside = u128::from(*bucket);
            if rank <= below + inside {
                let width = u128::from(upper - lower);
                let share = width * (rank - below) / inside;
                let share = u64::try_from(share).unwrap_or(u64::MAX);
                return Some(Duration::from_nanos(lower.saturating_add(share)));
            }
            below += inside;
            lower = upper;
        }
        (count > 0).then(|| Duration::from_nanos(lower))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Histogram;

    fn recorded(durations: impl IntoIterator<Item = Duration>) -> HistogramTotal {
        let histogram = Histogram::default();
        for took in durations {
            histogram.record(took);
        }
        let mut total = HistogramTotal::default();
        histogram.add_to(&mut total);
        total
    }

    #[test]
    fn nothing_counted_has_no_quantile() {
        assert_eq!(HistogramTotal::default().quantile(500), None);
    }

    #[test]
    fn evenly_spread_durations_are_estimated_closely() {
        let total = recorded((1..=1000).map(Duration::from_millis));

        let median = total.quantile(500).unwrap().as_millis();
        let p99 = total.quantile(990).unwrap().as_millis();

        assert!((495..=505).contains(&median), "{median}");
        assert!((985..=995).contains(&p99), "{p99}");
    }

    #[test]
    fn above_the_last_bound_the_bound_is_the_answer() {
        let total = recorded([Duration::from_hours(1)]);

        assert_eq!(total.quantile(500), Some(Duration::from_mins(1)));
    }

    #[test]
    fn a_higher_quantile_is_never_shorter() {
        let total = recorded([3, 80, 80, 900, 20_000, 70_000].map(Duration::from_millis));

        let all: Vec<_> = (0..=1000).map(|at| total.quantile(at)).collect();

        assert!(all.is_sorted());
    }
}
