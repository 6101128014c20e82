//! A limit on the retries of an upstream.

use std::sync::atomic::{AtomicU64, Ordering};

/// Retries per second that are always allowed, for any number of requests.
pub const MIN_RETRIES_PER_SECOND: u64 = 3;

/// Maximum retries of one upstream, over all threads: at most a share of its requests, and
/// [`MIN_RETRIES_PER_SECOND`] regardless. Without it, retries multiply the load of an upstream that
/// fails because of load.
///
/// The earned budget is halved every second, so that a quiet hour accumulates nothing. Times are
/// nanoseconds since an origin that all callers share.
#[derive(Debug, Default)]
pub struct RetryBudget {
    // The second of the last access, and the requests that count, in hundredths.
    balance: AtomicU64,
    // The second of the last retry beyond the share, and the number of such retries in it.
    beyond: AtomicU64,
}

const BALANCE_BITS: u32 = 32;
const CREDIT_PER_REQUEST: u64 = 100;
const SECOND_NS: u64 = 1_000_000_000;

impl RetryBudget {
    /// Counts `requests`, without retries, that arrived until `now_ns`.
    #[inline]
    pub fn record_requests(&self, requests: u64, now_ns: u64) {
        let earned = requests.saturating_mul(CREDIT_PER_REQUEST);
        self.change(now_ns, |balance| Some(balance.saturating_add(earned)));
    }

    /// Takes one retry at `now_ns`. False if the budget is exhausted.
    pub fn try_retry(&self, percent: u32, now_ns: u64) -> bool {
        let share = u64::from(percent.min(100));
        let price = (100 * CREDIT_PER_REQUEST).checked_div(share);
        price.is_some_and(|price| self.change(now_ns, |balance| balance.checked_sub(price)))
            || self.try_beyond(now_ns)
    }

    fn try_beyond(&self, now_ns: u64) -> bool {
        let second = second(now_ns);
        let update = |packed| {
            let (at, taken) = unpack(packed);
            let taken = if at == second { taken } else { 0 };
            (taken < MIN_RETRIES_PER_SECOND).then(|| pack(second, taken + 1))
        };
        self.beyond
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update)
            .is_ok()
    }

    fn change(&self, now_ns: u64, change: impl Fn(u64) -> Option<u64>) -> bool {
        let second = second(now_ns);
        let update = |packed| {
            let (at, balance) = unpack(packed);
            // The slightly older time of another worker does not turn it back.
            let passed = second.wrapping_sub(at);
            let (at, balance) = if matches!(passed, 1..=0x7fff_ffff) {
                (second, balance.checked_shr(passed).unwrap_or(0))
            } else {
                (at, balance)
            };
            Some(pack(at, change(balance)?))
        };
        self.balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update)
            .is_ok()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only differences count")]
fn second(now_ns: u64) -> u32 {
    (now_ns / SECOND_NS) as u32
}

fn pack(second: u32, balance: u64) -> u64 {
    u64::from(second) << BALANCE_BITS | balance.min(u64::from(u32::MAX))
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
fn unpack(packed: u64) -> (u32, u64) {
    let balance = packed as u32;
    ((packed >> BALANCE_BITS) as u32, u64::from(balance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    fn retries(budget: &RetryBudget, now_ns: u64) -> usize {
        (0..10_000)
            .take_while(|_| budget.try_retry(20, now_ns))
            .count()
    }

    #[test]
    fn without_requests_three_retries_a_second_are_allowed() {
        let budget = RetryBudget::default();

        assert_eq!(retries(&budget, 0), 3);
        assert_eq!(retries(&budget, SECOND_NS - 1), 0);
        assert_eq!(retries(&budget, 100 * SECOND_NS), 3);
    }

    #[test]
    fn a_hundred_requests_earn_twenty_retries() {
        let budget = RetryBudget::default();
        budget.record_requests(100, 0);

        assert_eq!(retries(&budget, 0), 20 + 3);
    }

    #[test]
    fn each_caller_has_a_share_of_its_own() {
        let spent = |percent: u32| {
            let budget = RetryBudget::default();
            budget.record_requests(1_000, 0);
            let retries = (0..10_000).take_while(|_| budget.try_retry(percent, 0));
            retries.count()
        };

        assert_eq!([0, 1, 50, 100].map(spent), [3, 10 + 3, 500 + 3, 1_000 + 3]);
    }

    #[test]
    fn earned_retries_expire() {
        let budget = RetryBudget::default();
        budget.record_requests(1_000, 0);
        assert_eq!(retries(&budget, 3 * SECOND_NS), 200 / 8 + 3);
        assert_eq!(retries(&budget, 60 * SECOND_NS), 3);
    }

    proptest! {
        #[test]
        fn retries_never_exceed_the_share_and_the_least(
            steps in prop::collection::vec((0_u64..SECOND_NS / 4, 0_u32..50, 0_u32..50), 1..100),
        ) {
            let budget = RetryBudget::default();
            let (mut now, mut requests, mut retried) = (0, 0_u64, 0_u64);
            for (gap, sent, failed) in steps {
                now += gap;
                budget.record_requests(sent.into(), now);
                requests += u64::from(sent);
                retried += (0..failed).filter(|_| budget.try_retry(20, now)).count() as u64;
                let least = 3 + 3 * now / SECOND_NS;
                prop_assert!(retried <= requests / 5 + least);
            }
        }
    }
}
