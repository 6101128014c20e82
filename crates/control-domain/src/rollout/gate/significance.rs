//! Statistical significance: tests whether a difference between two sides exceeds chance. See
//! decision record 0032.
//!
//! Evidence is in nats: the negative natural logarithm of an upper bound on the probability that
//! two equal sides differ at least as much.

/// Error rate: at most one of so many harmless rollouts is stopped by chance.
const HARMLESS_ROLLOUTS: f64 = 200.0;
/// Maximum number of batches per rollout for which this rate holds.
const MAX_BATCHES: f64 = 100.0;
/// Assumed number of evaluations per batch with new reports.
const EVALUATIONS_PER_BATCH: f64 = 20.0;
/// Number of comparisons per route: 59 of sizes; the rest of statuses, reasons, share of the mix,
/// and latency.
const COMPARISONS_OF_A_ROUTE: f64 = 96.0;

/// Hits among requests, such as responses with one status among all responses of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counted {
    /// Number of hits; at most `total`.
    pub(super) hits: f64,
    /// Number of requests.
    pub(super) total: f64,
}

/// A mean with the variance of its estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Counted {
    /// Hits per request; 0 without requests.
    pub(super) fn share(self) -> f64 {
        if self.total > 0.0 {
            self.hits / self.total
        } else {
            0.0
        }
    }
}

/// Minimum evidence of a significant comparison, if there are `routes` routes. It is so high
/// that all comparisons, in all evaluations of all batches, stop at most one harmless rollout in
/// 200.
pub(super) fn needed(routes: usize) -> f64 {
    let routes = f64::from(u32::try_from(routes).unwrap_or(u32::MAX)) + 1.0;
    (HARMLESS_ROLLOUTS * MAX_BATCHES * EVALUATIONS_PER_BATCH * COMPARISONS_OF_A_ROUTE * routes).ln()
}

/// Evidence that hits are more frequent in `own`; 0 if they are not.
///
/// If the sides are equal, each hit belongs to `own` with a probability equal to `own`'s part of
/// all requests. The Chernoff–Hoeffding bound limits the tail of that binomial distribution, and
/// holds for drawing without replacement as well.
pub(super) fn growth(own: Counted, others: Counted) -> f64 {
    let (hits, total) = (own.hits + others.hits, own.total + others.total);
    if hits <= 0.0 || total <= 0.0 {
        return 0.0;
    }
    let (found, expected) = (own.hits / hits, own.total / total);
    if found <= expected {
        return 0.0;
    }
    hits * (part(found, expected) + part(1.0 - found, 1.0 - expected))
}

/// Evidence that the mean of `own` is above the other side's, by the normal tail.
pub(super) fn excess(own: Estimate, others: Estimate) -> f64 {
    let difference = own.mean - others.mean;
    if difference <= 0.0 {
        return 0.0;
    }
    let variance = own.variance + others.variance;
    difference * difference / (2.0 * variance.max(f64::MIN_POSITIVE))
}

/// One of the two terms of the relative entropy between two binary distributions.
fn part(found: f64, expected: f64) -> f64 {
    if found > 0.0 {
        found * (found / expected).ln()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(hits: f64, total: f64) -> Counted {
        Counted { hits, total }
    }

    #[test]
    fn hits_on_one_side_only_have_the_evidence_of_equal_coin_tosses() {
        let evidence = growth(counted(5.0, 100.0), counted(0.0, 100.0));
        assert!((evidence - 5.0 * 2.0_f64.ln()).abs() < 1e-9, "{evidence}");
        assert!(evidence < needed(1), "five of a hundred are no verdict");
        assert!(growth(counted(100.0, 100.0), counted(0.0, 100.0)) > needed(500));
    }

    #[test]
    fn an_equal_or_better_side_is_no_evidence() {
        for (own, others) in [
            ((5.0, 100.0), (5.0, 100.0)),
            ((1.0, 100.0), (50.0, 1_000.0)),
            ((0.0, 0.0), (5.0, 100.0)),
            ((0.0, 100.0), (0.0, 100.0)),
        ] {
            let evidence = growth(counted(own.0, own.1), counted(others.0, others.1));
            assert!(evidence <= 0.0, "{own:?} {others:?}: {evidence}");
        }
    }

    #[test]
    fn a_mean_is_compared_by_its_scatter() {
        let estimate = |mean, variance| Estimate { mean, variance };
        let evidence = excess(estimate(39.0, 0.5), estimate(30.0, 0.5));
        assert!((evidence - 40.5).abs() < 1e-9, "{evidence}");
        assert!(excess(estimate(30.0, 0.0), estimate(30.0, 0.0)) <= 0.0);
    }
}
