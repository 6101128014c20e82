//! A rate limit shared by all threads.

use crate::gcra::{Gcra, RateDecision};
use crate::rate::{RateError, RateLimitSettings};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// A token bucket in one atomic word: it admits at most burst + rate × time, over all threads and
/// without a limit of time, and loses no token.
///
/// Time is in nanoseconds since a common origin. A time slightly before the last caller's counts as
/// the last caller's, which admits nothing too much.
#[derive(Debug)]
#[repr(align(64))]
pub struct TokenBucket {
    word: AtomicU64,
    limit: Gcra,
}

impl TokenBucket {
    /// A bucket that is full at `now_ns`.
    ///
    /// # Errors
    /// [`RateError::Zero`] for a burst of 0.
    pub fn new(settings: RateLimitSettings, now_ns: u64) -> Result<Self, RateError> {
        let limit = Gcra::new(settings)?;
        Ok(Self {
            word: AtomicU64::new(limit.full(now_ns)),
            limit,
        })
    }

    /// Takes one token at `now_ns`, if there is one.
    #[inline]
    pub fn admit(&self, now_ns: u64) -> RateDecision {
        self.limit.admit(&self.word, now_ns)
    }

    /// The result that [`Self::admit`] would have at `now_ns`; takes no token.
    pub fn peek(&self, now_ns: u64) -> RateDecision {
        self.limit.peek(&self.word, now_ns)
    }

    /// Keeps an unused bucket's word from wrapping. Must be called regularly: see
    /// [`Self::settle_within`].
    pub fn settle(&self, now_ns: u64) {
        self.limit.settle(&self.word, now_ns);
    }

    /// Longest time without [`Self::admit`] or [`Self::settle`] after which the bucket is still
    /// known to be full: 15 minutes at 9 999 999 requests a second, more than 10 days at 10 007,
    /// centuries at 10 000.
    pub fn settle_within(&self) -> Duration {
        self.limit.settle_within()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
    use std::sync::atomic::{AtomicU64, Ordering};

    const SECOND_NS: u64 = 1_000_000_000;

    fn bucket(events: u32, secs: u32, burst: u32, now_ns: u64) -> TokenBucket {
        let rate = Rate::per(events, secs).unwrap();
        TokenBucket::new(RateLimitSettings { rate, burst }, now_ns).unwrap()
    }

    #[test]
    fn a_burst_is_admitted_at_once_and_further_requests_by_the_rate() {
        let bucket = bucket(10, 1, 3, 77);

        let first = bucket.admit(77);
        assert_eq!((first.limit, first.remaining), (3, 2));
        assert_eq!(first.reset, Duration::from_millis(100));
        assert_eq!(first.retry_after, Duration::ZERO);
        assert!(bucket.admit(77).admitted && bucket.admit(77).admitted);
        let refused = bucket.admit(77);
        assert!(!refused.admitted);
        assert_eq!(refused.remaining, 0);
        assert_eq!(refused.retry_after, Duration::from_millis(100));
        assert_eq!((refused.retry_after_secs(), refused.reset_secs()), (1, 1));

        assert!(!bucket.admit(77 + 99_999_999).admitted);
        assert!(bucket.admit(77 + 100_000_000).admitted);
    }

    #[test]
    fn a_burst_too_large_for_nanoseconds_is_limited_all_the_same() {
        const DAY_SECS: u32 = 86_400;
        let cases = [
            (25_001, DAY_SECS, 25_001),
            (400_009, 3_600, 400_009),
            (1, DAY_SECS, 20_000),
            (1, DAY_SECS, 100_000_000),
            (crate::MAX_RATE_EVENTS, DAY_SECS, u32::MAX),
            (9_999_999, 1, 99_999_990),
        ];
        for (events, secs, burst) in cases {
            let bucket = bucket(events, secs, burst, 77);
            let first = bucket.admit(77);

            assert!(first.admitted, "{events}/{secs} s");
            assert_eq!((first.limit, first.remaining), (burst, burst - 1));
            let one = u64::from(secs) * SECOND_NS / u64::from(events);
            let reset = u64::try_from(first.reset.as_nanos()).unwrap();
            assert!(one <= reset && reset <= one + 1_000_000, "{reset} of {one}");
        }
    }

    #[test]
    fn a_rate_with_ticks_of_its_own_does_not_drift() {
        let bucket = bucket(25_001, 86_400, 25_001, 0);
        assert!((0..25_001).all(|_| bucket.admit(0).admitted));
        assert!(!bucket.admit(0).admitted);

        // After three quarters of a day, three quarters of the tokens, and after all of it the rest.
        let mut admitted = 0;
        for (hours, expected) in [(18, 18_750), (24, 25_001)] {
            while bucket.admit(hours * 3_600 * SECOND_NS).admitted {
                admitted += 1;
            }
            assert_eq!(admitted, expected, "{hours} hours");
        }
        let refused = bucket.peek(86_400 * SECOND_NS);
        assert_eq!(refused.retry_after_secs(), 4);
    }

    #[test]
    fn a_peek_consumes_nothing() {
        let bucket = bucket(1, 1, 1, 0);

        assert!(bucket.peek(0).admitted && bucket.peek(0).admitted);
        assert!(bucket.admit(0).admitted);
        assert!(!bucket.peek(0).admitted);
    }

    #[test]
    fn no_rate_drifts() {
        // One request whenever the bucket permits it: after ten minutes the count is exact.
        for (events, secs) in [(3, 1), (7, 1), (1, 3), (999, 1), (300, 60)] {
            let bucket = bucket(events, secs, 1, 0);
            let (mut now, mut admitted) = (0, 0_u64);
            let end = 600 * SECOND_NS;
            while now < end {
                let decision = bucket.admit(now);
                admitted += u64::from(decision.admitted);
                let wait = bucket.peek(now).retry_after.as_nanos();
                now += u64::try_from(wait).unwrap();
            }
            let exact = (u64::from(events) * 600).div_ceil(u64::from(secs));
            assert!(
                admitted == exact || admitted + 1 == exact,
                "{events}/{secs} s: {admitted}, not {exact}"
            );
        }
    }

    #[test]
    fn a_rate_of_ten_million_is_exact_to_the_token() {
        let bucket = bucket(10_000_000, 1, 1, 0);
        let admitted = (0..1_000_000_u64).filter(|step| bucket.admit(step * 10).admitted);

        // A million steps of 10 ns are 10 ms.
        assert_eq!(admitted.count(), 100_000);
    }

    #[test]
    fn a_bucket_that_is_settled_is_full_after_any_pause() {
        let bucket = bucket(9_999_999, 1, 10, 0);
        assert!((0..10).all(|_| bucket.admit(0).admitted));
        let step = u64::try_from(bucket.settle_within().as_nanos()).unwrap();
        for round in 1..=5 {
            bucket.settle(round * step);
        }

        assert_eq!(bucket.admit(5 * step).remaining, 9);
    }

    #[test]
    fn several_threads_are_granted_as_many_as_one() {
        let (threads, rounds) = (4_u64, 20_000_u64);
        let bucket = bucket(1_000_000, 1, 100, 0);
        let (clock, admitted) = (AtomicU64::new(0), AtomicU64::new(0));
        // Each request moves the clock by 50 ns: 80 000 of them are 4 ms, or 4 000 tokens.
        let request = |_| {
            let now = clock.fetch_add(50, Ordering::Relaxed);
            let one = u64::from(bucket.admit(now).admitted);
            admitted.fetch_add(one, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..rounds).for_each(request));
            }
        });

        let admitted = admitted.into_inner();
        let most = 100 + threads * rounds * 50 / 1_000;
        assert!(admitted <= most, "{admitted} of {most}");
        assert!(admitted + threads >= most, "{admitted} of {most}");
    }

    proptest! {
        /// In every window: admitted ≤ burst + rate × time, for any gaps, and with any worker's
        /// slightly older time.
        #[test]
        fn no_window_admits_more_than_burst_and_rate(
            events in 1_u32..20_000,
            secs in 1_u32..5,
            burst in 1_u32..40,
            steps in prop::collection::vec((0_u64..300_000, 0_u64..2_000), 1..300),
        ) {
            let bucket = bucket(events, secs, burst, 1 << 40);
            let mut now = 1_u64 << 40;
            let mut admitted_at = Vec::new();
            for (gap, after) in steps {
                now += gap;
                let seen = now - after;
                if bucket.admit(seen).admitted {
                    admitted_at.push(seen);
                }
            }
            let period = u128::from(secs) * u128::from(SECOND_NS);
            for (first, start) in admitted_at.iter().enumerate() {
                for (last, end) in admitted_at.iter().enumerate().skip(first) {
                    let span = u128::from(end.saturating_sub(*start));
                    // Times of workers may differ, so they may be out of order.
                    let span = span + 2_000;
                    let most = u128::from(burst) + span * u128::from(events) / period;
                    prop_assert!((last - first + 1) as u128 <= most);
                }
            }
        }

        /// Under pressure no token is lost: admitted = burst + rate × time, exactly, if the burst
        /// holds the tokens earned between two polls.
        #[test]
        fn constant_pressure_gets_every_token(
            events in 1_u32..10_000_000,
            burst in 20_u32..1_000,
            micros in 1_u64..2_000,
        ) {
            let bucket = bucket(events, 1, burst, 0);
            let mut admitted = 0_u64;
            for now in 0..=micros {
                while bucket.admit(now * 1_000).admitted {
                    admitted += 1;
                }
            }
            prop_assert_eq!(admitted, u64::from(burst) + micros * u64::from(events) / 1_000_000);
        }

        /// A request that was refused is admitted after exactly its `retry_after`, not before.
        #[test]
        fn retry_after_is_exact(events in 1_u32..10_000_000, burst in 1_u32..50, now in 0_u64..1 << 50) {
            let bucket = bucket(events, 1, burst, now);
            let refused = (0..=burst).map(|_| bucket.admit(now)).last().unwrap();
            let wait = u64::try_from(refused.retry_after.as_nanos()).unwrap();
            prop_assert!(!refused.admitted && wait > 0);
            prop_assert!(!bucket.peek(now + wait - 1).admitted);
            prop_assert!(bucket.peek(now + wait).admitted);
        }
    }
}
