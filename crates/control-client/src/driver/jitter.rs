//! Jitter, which keeps nodes that started together from staying synchronized.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// Shorter intervals are not randomized, because a long poll counts in whole seconds.
const MIN_INTERVAL: Duration = Duration::from_secs(4);

/// A random time between half and all of `wait`.
pub(super) fn jittered_wait(wait: Duration) -> Duration {
    random_part(wait, 500)
}

/// A random time between three quarters and all of `interval`, if that is at least 4 seconds.
pub(super) fn jittered_interval(interval: Duration) -> Duration {
    if interval < MIN_INTERVAL {
        return interval;
    }
    random_part(interval, 750)
}

/// A random time between `min_permille` thousandths and all of `time`.
fn random_part(time: Duration, min_permille: u32) -> Duration {
    let random = u32::try_from(RandomState::new().hash_one(0) % 1_001).unwrap_or_default();
    let permille = min_permille + random * (1_000 - min_permille) / 1_000;
    time.saturating_mul(permille) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const INTERVAL: Duration = Duration::from_secs(30);

    #[test]
    fn waits_and_intervals_differ_within_their_bounds() {
        type Jitter = fn(Duration) -> Duration;
        for (jitter, min_ms) in [
            (jittered_wait as Jitter, 15_000),
            (jittered_interval as Jitter, 22_500),
        ] {
            let times: HashSet<_> = (0..200).map(|_| jitter(INTERVAL)).collect();
            let bounds = Duration::from_millis(min_ms)..=INTERVAL;
            assert!(times.iter().all(|time| bounds.contains(time)), "{times:?}");
            assert!(times.len() > 20, "{times:?}");
        }
    }

    #[test]
    fn the_longest_time_does_not_overflow() {
        assert!(random_part(Duration::MAX, 500) < Duration::MAX);
    }

    #[test]
    fn a_short_interval_is_not_randomized() {
        assert_eq!(
            jittered_interval(Duration::from_secs(1)),
            Duration::from_secs(1)
        );
    }
}
