//! Trial of a bundle, and the failure rate that ends it.

use super::served_certificates::ServedCertificates;
use control_wire::Order;
use std::time::Duration;

/// Minimum number of requests for judging the failures.
const MIN_REQUESTS: u64 = 100;
/// Minimum share of failures that ends a trial, in percent.
const MIN_FAILED_PERCENT: u64 = 20;
/// Minimum share of failures that ends a trial, as a multiple of the share before.
const MIN_FAILED_FACTOR: u64 = 10;

/// Requests of clients under one bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Number of answered requests.
    pub requests: u64,
    /// Responses with a status of 500 or more.
    pub errors: u64,
}

/// A bundle on trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// Order to be confirmed.
    pub(super) order: Order,
    /// Time limit, from the switch or from the last message that the rollout is paused.
    pub(super) confirm_within: Duration,
    /// Time when the node reverts.
    pub(super) until: Duration,
    /// Requests under the previous bundle.
    pub(super) before: Served,
    pub(super) certificates_before: ServedCertificates,
}

impl Served {
    /// Returns true if far more requests fail than `before`; false while there are few requests.
    pub(super) fn is_far_worse_than(self, before: Self) -> bool {
        let share_permyriad = |served: Self| {
            let parts = u128::from(served.errors) * 10_000;
            parts.checked_div(u128::from(served.requests)).unwrap_or(0)
        };
        let share = share_permyriad(self);
        MIN_REQUESTS <= self.requests
            && u128::from(MIN_FAILED_PERCENT) * 100 <= share
            && u128::from(MIN_FAILED_FACTOR) * share_permyriad(before) <= share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_failures_of_many_requests_are_far_worse() {
        let served = |errors, requests| Served { requests, errors };
        let before = served(10, 1_000);
        for (now, is_worse) in [
            (served(99, 99), false),
            (served(19, 100), false),
            (served(20, 100), true),
            (served(1_000, 1_000), true),
        ] {
            assert_eq!(now.is_far_worse_than(before), is_worse, "{now:?}");
        }
        assert!(!served(40, 100).is_far_worse_than(served(5, 100)));
        assert!(served(20, 100).is_far_worse_than(Served::default()));
    }
}
