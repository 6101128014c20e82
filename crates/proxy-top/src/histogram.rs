//! Histograms of durations.

/// A histogram with cumulative buckets, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    /// Upper bounds in ascending order, the last one infinite, with the number of values up to each.
    buckets: Vec<(f64, f64)>,
    sum: f64,
    count: f64,
}

impl Histogram {
    pub(crate) fn push(&mut self, bound: f64, up_to: f64) {
        self.buckets.push((bound, up_to));
        self.count = self.count.max(up_to);
    }

    pub(crate) const fn set_sum(&mut self, sum: f64) {
        self.sum = sum;
    }

    /// Number of values.
    pub(crate) const fn count(&self) -> f64 {
        self.count
    }

    /// Sum of all values.
    pub(crate) const fn sum(&self) -> f64 {
        self.sum
    }

    /// The values that were added after `before`; all after a restart of the proxy.
    pub(crate) fn since(&self, before: Option<&Self>) -> Self {
        let before =
            before.filter(|it| it.count <= self.count && it.buckets.len() == self.buckets.len());
        let Some(before) = before else {
            return self.clone();
        };
        let buckets = self.buckets.iter().zip(&before.buckets);
        Self {
            buckets: buckets
                .map(|((bound, now), (_, before))| (*bound, (now - before).max(0.0)))
                .collect(),
            sum: (self.sum - before.sum).max(0.0),
            count: self.count - before.count,
        }
    }

    /// Adds the values of another histogram with the same bounds.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.buckets.is_empty() {
            self.clone_from(other);
            return;
        }
        for ((_, own), (_, more)) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += more;
        }
        self.sum += other.sum;
        self.count += other.count;
    }

    /// Mean of the values; `None` without one.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// The value that this share of all values does not exceed, interpolated within its bucket; the highest finite bound
    /// for values above it. `None` without values.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        if self.count <= 0.0 {
            return None;
        }
        let wanted = share * self.count;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, up_to) in &self.buckets {
            if bound.is_infinite() {
                break;
            }
            if wanted <= *up_to {
                let within = up_to - below;
                let part = if within > 0.0 {
                    (wanted - below) / within
                } else {
                    1.0
                };
                return Some(lower + (bound - lower) * part);
            }
            (lower, below) = (*bound, *up_to);
        }
        Some(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: [f64; 3], sum: f64) -> Histogram {
        let mut histogram = Histogram::default();
        for (bound, count) in [0.1, 0.2, f64::INFINITY].into_iter().zip(counts) {
            histogram.push(bound, count);
        }
        histogram.set_sum(sum);
        histogram
    }

    #[test]
    fn quantiles_are_interpolated_within_their_bucket() {
        let some = histogram([50.0, 100.0, 100.0], 9.0);
        let quantile = |share| format!("{:.3}", some.quantile(share).unwrap_or_default());
        let shares = [0.25, 0.5, 0.75, 1.0];
        assert_eq!(shares.map(quantile), ["0.050", "0.100", "0.150", "0.200"]);
        let slow = histogram([0.0, 0.0, 4.0], 40.0);
        assert_eq!((slow.quantile(0.5), slow.mean()), (Some(0.2), Some(10.0)));
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(Histogram::default().mean(), None);
    }

    #[test]
    fn a_difference_of_histograms_has_the_added_counts() {
        let before = histogram([10.0, 10.0, 10.0], 1.0);
        let now = histogram([10.0, 14.0, 14.0], 1.5);
        let added = now.since(Some(&before));
        assert_eq!(added, histogram([0.0, 4.0, 4.0], 0.5));
        assert_eq!(now.since(None), now);
        assert_eq!(
            before.since(Some(&now)),
            before,
            "the proxy was started again"
        );
        let mut both = added;
        both.add(&before);
        assert_eq!(both, now);
    }
}
