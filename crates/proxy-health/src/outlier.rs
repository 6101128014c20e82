//! Outlier detection: a target with failed requests is ejected for a time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Settings of outlier detection. Destructured by naming every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierSettings {
    /// Consecutive failures after which a target is ejected; `None` for never.
    pub consecutive_failures: Option<u32>,
    /// Share of failures at which it is ejected, in percent of an interval's requests, 1 to 100;
    /// `None` for never.
    pub failure_percent: Option<u32>,
    /// Minimum number of requests of an interval for the share to count.
    pub min_requests: u32,
    /// The interval of the share; at least one millisecond.
    pub interval: Duration,
    /// Duration of the first ejection; the second lasts twice as long, the third three times.
    pub base_ejection: Duration,
    /// Maximum duration of an ejection.
    pub max_ejection: Duration,
    /// Share of an upstream's targets that may be ejected at once, in percent, 0 to 100.
    pub max_ejected_percent: u32,
}

impl Default for OutlierSettings {
    /// Five consecutive failures; 30 s, then 60 s, up to 5 min; at most half of an upstream.
    fn default() -> Self {
        Self {
            consecutive_failures: Some(5),
            failure_percent: None,
            min_requests: 20,
            interval: Duration::from_secs(10),
            base_ejection: Duration::from_secs(30),
            max_ejection: Duration::from_mins(5),
            max_ejected_percent: 50,
        }
    }
}

/// Results of one target's requests, over all threads; kept across reloads with the target.
///
/// Workers [`record`](Self::record) each request; if that returns that the target is an outlier,
/// they [`try_eject`](Self::try_eject) it among its peers. A task calls [`poll`](Self::poll)
/// periodically, which ends the ejection. The caller sets or clears
/// [`HealthCause::Ejection`](crate::HealthCause::Ejection). Times are nanoseconds since an origin
/// shared by all callers.
#[derive(Debug, Default)]
pub struct OutlierState {
    in_a_row: AtomicU32,
    // Interval, requests and failures in it.
    window: AtomicU64,
    // State of the ejection: active or not, number in a row, and end.
    ejection: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ejection {
    ejected: bool,
    times: u16,
    until_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    number: u32,
    requests: u32,
    failures: u32,
}

const NS_PER_MS: u64 = 1_000_000;

impl OutlierState {
    /// Records a request that ended at `now_ns`. Returns whether the target is now an outlier.
    #[inline]
    pub fn record(&self, failed: bool, settings: &OutlierSettings, now_ns: u64) -> bool {
        let by_row = self.count_in_a_row(failed, settings.consecutive_failures);
        let by_share = settings
            .failure_percent
            .is_some_and(|percent| self.count_share(failed, percent, settings, now_ns));
        failed && (by_row || by_share)
    }

    /// Ejects this target at `now_ns`, unless it is ejected already or too many of `upstream` are:
    /// all targets of the upstream, including this one. Returns whether it was ejected now.
    ///
    /// Two threads that eject the last two at once may both withdraw; the next failure tries again.
    pub fn try_eject<'s>(
        &self,
        upstream: impl Iterator<Item = &'s Self>,
        settings: &OutlierSettings,
        now_ns: u64,
    ) -> bool {
        let before = Ejection::unpack(self.ejection.load(Ordering::SeqCst));
        if before.ejected {
            return false;
        }
        let after = before.again(settings, now_ns);
        let put = self.ejection.compare_exchange(
            before.pack(),
            after.pack(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if put.is_err() {
            return false;
        }
        // Counted after it was set: of two threads, at least one sees both.
        let counts = upstream.fold((0_u64, 0_u64), |(all, ejected), target| {
            (all + 1, ejected + u64::from(target.is_ejected()))
        });
        let (all, ejected) = counts;
        if ejected * 100 <= all * u64::from(settings.max_ejected_percent.min(100)) {
            self.in_a_row.store(0, Ordering::Relaxed);
            return true;
        }
        self.ejection.store(before.pack(), Ordering::SeqCst);
        false
    }

    /// Ends the ejection if its time has passed at `now_ns`. Returns true if it ended now.
    pub fn poll(&self, now_ns: u64) -> bool {
        let before = Ejection::unpack(self.ejection.load(Ordering::SeqCst));
        if !before.ejected || now_ns / NS_PER_MS < before.until_ms {
            return false;
        }
        let after = Ejection {
            ejected: false,
            ..before
        };
        let put = self.ejection.compare_exchange(
            before.pack(),
            after.pack(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        put.is_ok()
    }

    /// The ejection in one word, for a process that takes over on the same machine. Counts are left out.
    pub fn to_word(&self) -> u64 {
        self.ejection.load(Ordering::SeqCst)
    }

    /// Takes over the ejection of another process.
    pub fn restore(&self, word: u64) {
        self.ejection.store(word, Ordering::SeqCst);
    }

    /// Returns true if the target is ejected.
    pub fn is_ejected(&self) -> bool {
        Ejection::unpack(self.ejection.load(Ordering::SeqCst)).ejected
    }

    /// Returns true if this failure reaches the threshold.
    #[inline]
    fn count_in_a_row(&self, failed: bool, threshold: Option<u32>) -> bool {
        let Some(threshold) = threshold else {
            return false;
        };
        if !failed {
            // Read first, so that a healthy target costs no write.
            if self.in_a_row.load(Ordering::Relaxed) != 0 {
                self.in_a_row.store(0, Ordering::Relaxed);
            }
            return false;
        }
        threshold.max(1)
            <= self
                .in_a_row
                .fetch_add(1, Ordering::Relaxed)
                .saturating_add(1)
    }

    fn count_share(
        &self,
        failed: bool,
        percent: u32,
        settings: &OutlierSettings,
        now_ns: u64,
    ) -> bool {
        let interval_ns = u64::try_from(settings.interval.as_nanos()).unwrap_or(u64::MAX);
        let number = Window::number_of(now_ns, interval_ns.max(NS_PER_MS));
        let update = |packed| Some(Window::unpack(packed).with(number, failed).pack());
        let before = self
            .window
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update)
            .unwrap_or_default();
        let now = Window::unpack(before).with(number, failed);
        now.requests >= settings.min_requests.max(1)
            && u64::from(now.failures) * 100 >= u64::from(now.requests) * u64::from(percent)
    }
}

impl Ejection {
    /// The next ejection: one step longer than the last, less one step for each base time that the
    /// target has served since.
    fn again(self, settings: &OutlierSettings, now_ns: u64) -> Self {
        let now_ms = now_ns / NS_PER_MS;
        let base_ms = millis(settings.base_ejection).max(1);
        let served = now_ms.saturating_sub(self.until_ms) / base_ms;
        let times = u64::from(self.times).saturating_sub(served) + 1;
        let lasts = base_ms.saturating_mul(times);
        let lasts = lasts.min(millis(settings.max_ejection).max(base_ms));
        Self {
            ejected: true,
            times: u16::try_from(times).unwrap_or(u16::MAX),
            until_ms: now_ms.saturating_add(lasts),
        }
    }

    /// From the lowest bit: 1 for ejected, 16 for how often, 47 for until when.
    fn pack(self) -> u64 {
        u64::from(self.ejected) | u64::from(self.times) << 1 | self.until_ms << 17
    }

    #[expect(clippy::cast_possible_truncation, reason = "the fields of a word")]
    const fn unpack(packed: u64) -> Self {
        Self {
            ejected: packed & 1 == 1,
            times: (packed >> 1) as u16,
            until_ms: packed >> 17,
        }
    }
}

impl Window {
    const COUNT_BITS: u32 = 22;
    const MAX_COUNT: u32 = (1 << Self::COUNT_BITS) - 1;
    const NUMBER_MASK: u64 = (1 << 20) - 1;

    /// The number of the interval, in 20 bits.
    const fn number_of(now_ns: u64, interval_ns: u64) -> u32 {
        ((now_ns / interval_ns) & Self::NUMBER_MASK) as u32
    }

    /// Adds a request to the interval of that number. Counts saturate at 4 million.
    const fn with(self, number: u32, failed: bool) -> Self {
        let (requests, failures) = if self.number == number {
            (self.requests, self.failures)
        } else {
            (0, 0)
        };
        let more = requests < Self::MAX_COUNT;
        Self {
            number,
            requests: requests + more as u32,
            failures: failures + (more && failed) as u32,
        }
    }

    fn pack(self) -> u64 {
        let (requests, failures) = (u64::from(self.requests), u64::from(self.failures));
        u64::from(self.number) << (2 * Self::COUNT_BITS) | requests << Self::COUNT_BITS | failures
    }

    #[expect(clippy::cast_possible_truncation, reason = "the fields of a word")]
    const fn unpack(packed: u64) -> Self {
        Self {
            number: (packed >> (2 * Self::COUNT_BITS)) as u32,
            requests: (packed >> Self::COUNT_BITS) as u32 & Self::MAX_COUNT,
            failures: packed as u32 & Self::MAX_COUNT,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn fail(target: &OutlierState, times: usize, now_ns: u64) -> bool {
        let settings = OutlierSettings::default();
        (0..times).fold(false, |_, _| target.record(true, &settings, now_ns))
    }

    fn eject(targets: &[OutlierState], which: usize, now_ns: u64) -> bool {
        targets[which].try_eject(targets.iter(), &OutlierSettings::default(), now_ns)
    }

    #[test]
    fn five_failures_in_a_row_make_an_outlier_and_a_success_begins_anew() {
        let target = OutlierState::default();

        assert!(!fail(&target, 4, 0));
        assert!(!target.record(false, &OutlierSettings::default(), 0));
        assert!(!fail(&target, 4, 0));
        assert!(fail(&target, 1, 0));
    }

    #[test]
    fn a_share_of_failures_makes_an_outlier_only_over_enough_requests_of_one_interval() {
        let settings = OutlierSettings {
            consecutive_failures: None,
            failure_percent: Some(50),
            min_requests: 10,
            ..OutlierSettings::default()
        };
        let target = OutlierState::default();
        let run = |requests: usize, now_ns: u64| {
            (0..requests).any(|number| target.record(number % 2 == 0, &settings, now_ns))
        };

        assert!(!run(9, 0));
        // A new interval, and a new count.
        assert!(!run(9, 10 * SECOND_NS));
        assert!(run(11, 20 * SECOND_NS));
        let mostly_well =
            (0..100).any(|number| target.record(number % 3 == 0, &settings, 30 * SECOND_NS));
        assert!(!mostly_well);
    }

    #[test]
    fn at_most_half_of_an_upstream_is_ejected() {
        for (all, most) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (10, 5)] {
            let targets: Vec<_> = (0..all).map(|_| OutlierState::default()).collect();
            let ejected = (0..all).filter(|which| eject(&targets, *which, 0));
            assert_eq!(ejected.count(), most, "of {all}");
        }
    }

    #[test]
    fn ejections_grow_to_a_most_and_shrink_while_the_target_serves() {
        let targets = [(); 2].map(|()| OutlierState::default());
        let mut now_secs = 0;
        for lasts in [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300] {
            assert!(eject(&targets, 0, now_secs * SECOND_NS), "{lasts}");
            assert!(!eject(&targets, 0, now_secs * SECOND_NS));
            now_secs += lasts;
            assert!(!targets[0].poll(now_secs * SECOND_NS - 1));
            assert!(targets[0].poll(now_secs * SECOND_NS));
            assert!(!targets[0].poll(now_secs * SECOND_NS));
        }
        // Eleven times, less ten for serving ten times the base, and this one.
        now_secs += 300;
        assert!(eject(&targets, 0, now_secs * SECOND_NS));
        assert!(!targets[0].poll((now_secs + 59) * SECOND_NS));
        assert!(targets[0].poll((now_secs + 60) * SECOND_NS));
    }

    #[test]
    fn threads_together_never_eject_more_than_half() {
        for _ in 0..500 {
            let targets = [(); 4].map(|()| OutlierState::default());
            std::thread::scope(|scope| {
                for which in 0..4 {
                    let targets = &targets;
                    scope.spawn(move || eject(targets, which, 0));
                }
            });
            let ejected = targets.iter().filter(|target| target.is_ejected()).count();
            assert!(ejected <= 2, "{ejected}");
        }
    }

    #[test]
    fn packed_words_unpack_to_the_same_values() {
        let window = Window {
            number: (1 << 20) - 1,
            requests: Window::MAX_COUNT,
            failures: Window::MAX_COUNT - 1,
        };
        assert_eq!(Window::unpack(window.pack()), window);
        assert_eq!(window.with(window.number, true), window);
        let ejection = Ejection {
            ejected: true,
            times: u16::MAX,
            until_ms: 1 << 46,
        };
        assert_eq!(Ejection::unpack(ejection.pack()), ejection);
    }
}
