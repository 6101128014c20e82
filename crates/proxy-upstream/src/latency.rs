//! A target's latency, for load balancing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time after which a measurement's weight has decayed to 37 %.
pub const LATENCY_DECAY: Duration = Duration::from_secs(10);

/// A peak-sensitive moving average of a target's latency, over all threads, in one atomic word.
///
/// A latency above the average becomes the average at once; one below pulls it down by how long ago the
/// last one was. Without requests it decays to zero, so that a target that was slow is tried again.
/// Times are nanoseconds since an origin that all callers share.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct LatencyEwma(AtomicU64);

/// Time is kept in steps of 2¹⁴ ns: 32 bits of them last 19 hours.
const STEP_SHIFT: u32 = 14;

impl LatencyEwma {
    /// Takes in the latency of a response with a head that arrived at `now_ns`.
    #[inline]
    pub fn observe(&self, latency: Duration, now_ns: u64) {
        let latency_ns = latency.as_secs_f32() * 1e9;
        let update = |packed| {
            let (average, at) = unpack(packed);
            let now = steps(now_ns);
            if packed == 0 || average <= latency_ns {
                return Some(pack(latency_ns, now));
            }
            let kept = weight(now, at);
            let next = average * kept + latency_ns * (1.0 - kept);
            // Too small a change to store: the elapsed time counts with the next one.
            (next < average).then(|| pack(next, now))
        };
        let updated = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        debug_assert!(updated.is_ok() || self.0.load(Ordering::Relaxed) != 0);
    }

    /// The average at `now_ns` in nanoseconds; `None` before the first response.
    #[inline]
    pub fn nanos(&self, now_ns: u64) -> Option<f32> {
        let packed = self.0.load(Ordering::Relaxed);
        let (average, at) = unpack(packed);
        (packed != 0).then(|| average * weight(steps(now_ns), at))
    }
}

/// The remaining weight of a measurement.
#[expect(
    clippy::cast_precision_loss,
    reason = "a weight needs no more than 24 bits"
)]
fn weight(now: u32, at: u32) -> f32 {
    // A worker's time may be slightly older than the last measurement's.
    let passed = now.wrapping_sub(at).cast_signed().max(0);
    let decay_steps = (LATENCY_DECAY.as_nanos() >> STEP_SHIFT) as f32;
    (-(passed as f32) / decay_steps).exp()
}

#[expect(clippy::cast_possible_truncation, reason = "only differences count")]
const fn steps(now_ns: u64) -> u32 {
    (now_ns >> STEP_SHIFT) as u32
}

fn pack(average_ns: f32, at: u32) -> u64 {
    // Zero means no measurement.
    u64::from(average_ns.max(1.0).to_bits()) << 32 | u64::from(at)
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
const fn unpack(packed: u64) -> (f32, u32) {
    (f32::from_bits((packed >> 32) as u32), packed as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const MS: Duration = Duration::from_millis(1);

    fn millis(latency: &LatencyEwma, now_ns: u64) -> f32 {
        latency.nanos(now_ns).unwrap() / 1e6
    }

    #[test]
    fn a_peak_counts_at_once_and_fades_with_time() {
        let latency = LatencyEwma::default();
        assert_eq!(latency.nanos(0), None);
        latency.observe(10 * MS, 0);
        latency.observe(100 * MS, 0);
        assert!((millis(&latency, 0) - 100.0).abs() < 0.1);

        latency.observe(10 * MS, 10 * SECOND_NS);
        let after_decay = millis(&latency, 10 * SECOND_NS);
        assert!((after_decay - 43.1).abs() < 0.5, "{after_decay}");
        assert!(millis(&latency, 60 * SECOND_NS) < 0.5);
    }

    #[test]
    fn many_quick_responses_in_a_short_time_still_count() {
        let latency = LatencyEwma::default();
        latency.observe(100 * MS, 0);
        // A million a second for ten seconds: each alone moves less than the word can show.
        for number in 1..=1_000_000_u64 {
            latency.observe(MS, number * 10_000);
        }

        let average = millis(&latency, 10 * SECOND_NS);
        assert!((30.0..45.0).contains(&average), "{average}");
    }

    #[test]
    fn an_older_time_of_another_worker_has_little_effect() {
        let latency = LatencyEwma::default();
        latency.observe(100 * MS, 5 * SECOND_NS);
        latency.observe(10 * MS, 5 * SECOND_NS - 100_000);

        assert!(millis(&latency, 5 * SECOND_NS) > 99.0);
    }
}
