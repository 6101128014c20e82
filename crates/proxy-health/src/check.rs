//! Verdicts from the results of health checks, and the timing of checks.

use std::time::Duration;

/// Numbers of consecutive results for a verdict. Destructured by naming every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Consecutive successes after which a target is healthy: `healthy-threshold`, at least 1.
    pub healthy: u32,
    /// Consecutive failures after which it is unhealthy: `unhealthy-threshold`, at least 1.
    pub unhealthy: u32,
}

/// The verdict on a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// No threshold has been reached yet: the target serves.
    #[default]
    Unknown,
    /// The target gets requests.
    Healthy,
    /// The target does not serve.
    Unhealthy,
}

/// Counts the results of one target's checks: strictly consecutive, an opposite result starts over.
///
/// Owned by the task that runs the checks, and kept across reloads with the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckState {
    verdict: Verdict,
    last_passed: bool,
    in_a_row: u32,
}

/// Interval, timeout and thresholds of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckTiming {
    /// Time from the start of one check to the start of the next.
    pub interval: Duration,
    /// Maximum time of one check, connecting included.
    pub timeout: Duration,
    /// Numbers of consecutive results for a verdict.
    pub thresholds: Thresholds,
}

/// Longest time between two checks of a target when an outage begins: all targets of its upstream are down.
pub const OUTAGE_INTERVAL: Duration = Duration::from_millis(250);

/// The time between two checks is at most this part of the outage so far, so that its end is noticed soon after a short
/// one and a long one costs no more checks than usual.
const OUTAGE_PART: u32 = 8;

/// The check profiles of the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckProfile {
    /// 5 s / 2 s / 2 / 2.
    FastFailover,
    /// 10 s / 5 s / 2 / 3.
    #[default]
    Default,
    /// 30 s / 10 s / 3 / 5.
    Stable,
    /// 30 s / 15 s / 2 / 3.
    SlowBackends,
}

impl Verdict {
    /// Returns true if a target with this verdict serves.
    pub const fn serves(self) -> bool {
        !matches!(self, Self::Unhealthy)
    }
}

impl CheckState {
    /// Records the result of a check. Returns the new verdict if it changed.
    pub fn observe(&mut self, passed: bool, thresholds: Thresholds) -> Option<Verdict> {
        let Thresholds { healthy, unhealthy } = thresholds;
        let same = self.in_a_row > 0 && self.last_passed == passed;
        self.in_a_row = if same {
            self.in_a_row.saturating_add(1)
        } else {
            1
        };
        self.last_passed = passed;
        let (threshold, verdict) = if passed {
            (healthy, Verdict::Healthy)
        } else {
            (unhealthy, Verdict::Unhealthy)
        };
        if self.in_a_row < threshold.max(1) || self.verdict == verdict {
            return None;
        }
        self.verdict = verdict;
        Some(verdict)
    }

    /// Verdict of the checks so far.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }
}

impl CheckProfile {
    /// The profile's word in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FastFailover => "fast-failover",
            Self::Default => "default",
            Self::Stable => "stable",
            Self::SlowBackends => "slow-backends",
        }
    }

    /// The profile's figures.
    pub const fn timing(self) -> CheckTiming {
        let (interval, timeout, healthy, unhealthy) = match self {
            Self::FastFailover => (5, 2, 2, 2),
            Self::Default => (10, 5, 2, 3),
            Self::Stable => (30, 10, 3, 5),
            Self::SlowBackends => (30, 15, 2, 3),
        };
        CheckTiming {
            interval: Duration::from_secs(interval),
            timeout: Duration::from_secs(timeout),
            thresholds: Thresholds { healthy, unhealthy },
        }
    }
}

impl CheckTiming {
    /// Time to the next check: the interval with a jitter of a tenth, so that checks of many
    /// proxies and targets are spread. `random` is any number. `outage` is the time for which all targets of
    /// the upstream have been down, if they are: the interval is then at most an eighth of it, or
    /// [`OUTAGE_INTERVAL`] if that is longer.
    pub fn next_interval(&self, random: u32, outage: Option<Duration>) -> Duration {
        let interval = outage.map_or(self.interval, |lasted| {
            self.interval.min(OUTAGE_INTERVAL.max(lasted / OUTAGE_PART))
        });
        let tenth = interval / 10;
        let span = tenth.saturating_mul(2).as_nanos();
        let part = span * u128::from(random) / u128::from(u32::MAX);
        let part = Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX));
        interval.saturating_sub(tenth).saturating_add(part)
    }

    /// Time to the first check of a target: anywhere in one interval. `random` is any number.
    pub fn first_interval(&self, random: u32) -> Duration {
        self.interval
            .mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    const DEFAULT: Thresholds = CheckProfile::Default.timing().thresholds;

    fn verdicts(results: &str) -> Vec<(usize, Verdict)> {
        let mut state = CheckState::default();
        let results = results.chars().enumerate();
        let changes = results.filter_map(|(at, result)| {
            let change = state.observe(result == '+', DEFAULT)?;
            Some((at, change))
        });
        changes.collect()
    }

    #[test]
    fn an_opposite_result_resets_the_count() {
        use Verdict::{Healthy, Unhealthy};

        assert_eq!(verdicts("---"), [(2, Unhealthy)]);
        assert_eq!(verdicts("--+--"), []);
        assert_eq!(verdicts("---+-+-+"), [(2, Unhealthy)]);
        assert_eq!(verdicts("---+-++"), [(2, Unhealthy), (6, Healthy)]);
        assert_eq!(verdicts("++++--+---"), [(1, Healthy), (9, Unhealthy)]);
    }

    #[test]
    fn a_target_serves_until_the_first_verdict() {
        let mut state = CheckState::default();
        assert!(state.verdict().serves());
        state.observe(false, DEFAULT);
        state.observe(false, DEFAULT);
        assert_eq!(state.verdict(), Verdict::Unknown);
        assert!(state.verdict().serves());
        state.observe(false, DEFAULT);
        assert!(!state.verdict().serves());
    }

    #[test]
    fn the_profiles_are_those_of_the_interface() {
        let figures = |profile: CheckProfile| {
            let CheckTiming {
                interval,
                timeout,
                thresholds: Thresholds { healthy, unhealthy },
            } = profile.timing();
            (interval.as_secs(), timeout.as_secs(), healthy, unhealthy)
        };

        assert_eq!(figures(CheckProfile::FastFailover), (5, 2, 2, 2));
        assert_eq!(figures(CheckProfile::Default), (10, 5, 2, 3));
        assert_eq!(figures(CheckProfile::Stable), (30, 10, 3, 5));
        assert_eq!(figures(CheckProfile::SlowBackends), (30, 15, 2, 3));
    }

    #[test]
    fn intervals_of_checks_vary_by_a_tenth() {
        let timing = CheckProfile::Default.timing();

        assert_eq!(timing.next_interval(0, None), Duration::from_secs(9));
        assert_eq!(
            timing.next_interval(u32::MAX, None),
            Duration::from_secs(11)
        );
        assert_eq!(timing.first_interval(0), Duration::ZERO);
        assert_eq!(timing.first_interval(u32::MAX), timing.interval);
    }

    #[test]
    fn checks_follow_one_another_sooner_while_an_outage_is_short() {
        let timing = CheckProfile::Default.timing();
        let often = CheckTiming {
            interval: Duration::from_millis(100),
            ..timing
        };

        for (timing, lasted_ms, next_ms) in [
            (timing, 0, 225),
            (timing, 2_000, 225),
            (timing, 8_000, 900),
            (timing, 80_000, 9_000),
            (timing, 3_600_000, 9_000),
            (often, 0, 90),
        ] {
            let outage = Some(Duration::from_millis(lasted_ms));
            let next = Duration::from_millis(next_ms);
            assert_eq!(timing.next_interval(0, outage), next, "{lasted_ms}");
        }
    }

    proptest! {
        /// The verdict changes exactly when the last results are equal and as many as the
        /// threshold.
        #[test]
        fn a_verdict_needs_its_threshold_in_a_row(
            results in prop::collection::vec(any::<bool>(), 0..200),
            healthy in 1_u32..5,
            unhealthy in 1_u32..5,
        ) {
            let thresholds = Thresholds { healthy, unhealthy };
            let mut state = CheckState::default();
            let mut last = Verdict::Unknown;
            for end in 1..=results.len() {
                let passed = results[end - 1];
                let changed = state.observe(passed, thresholds);
                let needed = if passed { healthy } else { unhealthy } as usize;
                let enough = end >= needed && results[end - needed..end].iter().all(|it| *it == passed);
                let verdict = if passed { Verdict::Healthy } else { Verdict::Unhealthy };
                if enough {
                    prop_assert_eq!(changed, (last != verdict).then_some(verdict));
                    last = verdict;
                } else {
                    prop_assert!(changed.is_none());
                }
                prop_assert_eq!(state.verdict(), last);
            }
        }
    }
}
