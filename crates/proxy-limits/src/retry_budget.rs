//! How many retries an upstream has to bear.

use crate::rate::{Rate, RateError, RateLimitSettings};
use crate::token_bucket::TokenBucket;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many retries there may be beside first attempts. Taken apart by naming every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudgetSettings {
    /// Retries for each hundred requests, 0 to 100: `budget-percent`.
    pub percent: u32,
    /// Retries in each second that are allowed whatever the number of requests; at least 1.
    pub min_per_second: u32,
}

impl Default for RetryBudgetSettings {
    /// 20 % of the requests, and at least 3 a second.
    fn default() -> Self {
        Self {
            percent: 20,
            min_per_second: 3,
        }
    }
}

/// The retries that one upstream is to bear, over all threads: at most a share of its requests, and
/// some each second regardless. Without it, retries multiply the load of an upstream that fails
/// because of load.
///
/// What requests have earned is halved every second, so that a quiet hour saves up nothing.
#[derive(Debug)]
pub struct RetryBudget {
    percent: u64,
    // The second that it was last touched in, and the balance in hundredths of a retry.
    balance: AtomicU64,
    least: TokenBucket,
}

const BALANCE_BITS: u32 = 32;
const RETRY: u64 = 100;
const SECOND_NS: u64 = 1_000_000_000;

impl RetryBudget {
    /// A budget in which nothing has been earned at `now_ns`.
    ///
    /// # Errors
    /// [`RateError`] for a least number outside 1 to 10 000 000 a second.
    pub fn new(settings: RetryBudgetSettings, now_ns: u64) -> Result<Self, RateError> {
        let RetryBudgetSettings {
            percent,
            min_per_second,
        } = settings;
        let least = RateLimitSettings {
            rate: Rate::per_second(min_per_second)?,
            burst: min_per_second,
        };
        Ok(Self {
            percent: u64::from(percent.min(100)),
            balance: AtomicU64::new(pack(second(now_ns), 0)),
            least: TokenBucket::new(least, now_ns)?,
        })
    }

    /// Counts a request, retries not included, at `now_ns`.
    #[inline]
    pub fn record_request(&self, now_ns: u64) {
        self.change(now_ns, |balance| Some(balance + self.percent));
    }

    /// Takes one retry at `now_ns`. False when the budget is spent: the first answer stands.
    pub fn try_retry(&self, now_ns: u64) -> bool {
        self.change(now_ns, |balance| balance.checked_sub(RETRY))
            || self.least.admit(now_ns).admitted
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
        (0..10_000).take_while(|_| budget.try_retry(now_ns)).count()
    }

    #[test]
    fn without_requests_three_retries_a_second_are_allowed() {
        let budget = RetryBudget::new(RetryBudgetSettings::default(), 0).unwrap();

        assert_eq!(retries(&budget, 0), 3);
        assert_eq!(retries(&budget, SECOND_NS / 3 + 1), 1);
        assert_eq!(retries(&budget, 100 * SECOND_NS), 3);
    }

    #[test]
    fn a_hundred_requests_earn_twenty_retries() {
        let budget = RetryBudget::new(RetryBudgetSettings::default(), 0).unwrap();
        (0..100).for_each(|_| budget.record_request(0));

        assert_eq!(retries(&budget, 0), 20 + 3);
    }

    #[test]
    fn what_was_earned_fades() {
        let budget = RetryBudget::new(RetryBudgetSettings::default(), 0).unwrap();
        (0..1_000).for_each(|_| budget.record_request(0));
        assert_eq!(retries(&budget, 3 * SECOND_NS), 200 / 8 + 3);
        assert_eq!(retries(&budget, 60 * SECOND_NS), 3);
    }

    proptest! {
        #[test]
        fn retries_never_exceed_the_share_and_the_least(
            steps in prop::collection::vec((0_u64..SECOND_NS / 4, 0_u32..50, 0_u32..50), 1..100),
        ) {
            let budget = RetryBudget::new(RetryBudgetSettings::default(), 0).unwrap();
            let (mut now, mut requests, mut retried) = (0, 0_u64, 0_u64);
            for (gap, sent, failed) in steps {
                now += gap;
                (0..sent).for_each(|_| budget.record_request(now));
                requests += u64::from(sent);
                retried += (0..failed).filter(|_| budget.try_retry(now)).count() as u64;
                let least = 3 + 3 * now / SECOND_NS;
                prop_assert!(retried <= requests / 5 + least);
            }
        }
    }
}
