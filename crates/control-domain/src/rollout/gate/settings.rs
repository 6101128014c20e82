//! Limits of the gate, with their ranges and defaults.

use crate::access::refusal::faults::Faults;

/// Tolerances of the gate: a batch against the nodes that it is compared with. Exceeding a limit
/// alone stops nothing: the difference must also be significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Minimum number of requests on each side, and of a route for a separate verdict.
    pub min_requests: i64,
    /// Tolerated growth of the share of 5xx, in thousandths of all requests. A 4xx status may grow
    /// three times as much, because clients cause those as well.
    pub max_error_increase_permille: i64,
    /// Maximum 99th percentile of the batch's latency, in percent of the rest's.
    pub max_p99_percent: i64,
    /// Growth of the 99th percentile that always passes, in milliseconds.
    pub p99_slack_ms: i64,
    /// Tolerated growth of a route's mean latency, in percent.
    pub max_latency_increase_percent: i64,
    /// Tolerated growth of the nodes' mean CPU use, in percent of one core.
    pub max_cpu_increase_percent: i64,
    /// Number of failures of one reason that always passes, however few the rest has.
    pub max_new_failures: i64,
    /// Tolerated shift of a route's share, in thousandths of all requests. 1000 disables the check,
    /// for a bundle that moves requests to other services on purpose. A renamed route is compared
    /// with the former one.
    pub max_mix_shift_permille: i64,
}

impl Gate {
    /// Default limits.
    pub const DEFAULT: Self = Self {
        min_requests: 100,
        max_error_increase_permille: 10,
        max_p99_percent: 150,
        p99_slack_ms: 10,
        max_latency_increase_percent: 20,
        max_cpu_increase_percent: 50,
        max_new_failures: 0,
        max_mix_shift_permille: 50,
    };

    /// Records limits outside their ranges.
    pub(crate) fn check(&self, faults: &mut Faults) {
        let Self {
            min_requests,
            max_error_increase_permille,
            max_p99_percent,
            p99_slack_ms,
            max_latency_increase_percent,
            max_cpu_increase_percent,
            max_new_failures,
            max_mix_shift_permille,
        } = *self;
        faults.check(1 <= min_requests, "gate.min_requests", "is below 1");
        for (field, value) in [
            (
                "gate.max_error_increase_permille",
                max_error_increase_permille,
            ),
            ("gate.max_mix_shift_permille", max_mix_shift_permille),
        ] {
            faults.check((0..=1_000).contains(&value), field, "is not 0 to 1000");
        }
        let is_percent = (100..=100_000).contains(&max_p99_percent);
        faults.check(is_percent, "gate.max_p99_percent", "is not 100 to 100000");
        for (field, value) in [
            ("gate.p99_slack_ms", p99_slack_ms),
            (
                "gate.max_latency_increase_percent",
                max_latency_increase_percent,
            ),
            ("gate.max_cpu_increase_percent", max_cpu_increase_percent),
            ("gate.max_new_failures", max_new_failures),
        ] {
            faults.check(0 <= value, field, "is below 0");
        }
    }
}
