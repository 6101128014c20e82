//! Limits of a gate, their ranges and defaults.

use crate::access::refusal::Refusal;

/// How much worse a batch may be than the nodes that it is compared with. A limit alone stops nothing: the
/// difference must also be larger than chance explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Least number of requests on either side, and of a route for a verdict of its own.
    pub min_requests: i64,
    /// Growth of the share of 5xx, in thousandths of all requests. The share of a 4xx status may grow by three
    /// times as much, because clients bring those about too.
    pub max_error_increase_permille: i64,
    /// The batch's 99th percentile of latency, in percent of the rest's.
    pub max_p99_percent: i64,
    /// Growth of the percentile that always passes, in milliseconds.
    pub p99_slack_ms: i64,
    /// Growth of the mean latency of a route, in percent.
    pub max_latency_increase_percent: i64,
    /// By how much the mean CPU of a node may grow; 100 is one core.
    pub max_cpu_increase_percent: i64,
    /// Failures of one reason that pass in any case, however few the rest has.
    pub max_new_failures: i64,
    /// Change of a route's part of all requests, in thousandths of all requests. 1000 does not look at it: for a
    /// bundle that moves requests to other routes on purpose.
    pub max_mix_shift_permille: i64,
}

impl Gate {
    /// Defaults of absent fields.
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

    pub(crate) fn check(&self) -> Result<(), Refusal> {
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
        if min_requests < 1 {
            return Err(Refusal::invalid("gate.min_requests", "is below 1"));
        }
        for (field, value) in [
            (
                "gate.max_error_increase_permille",
                max_error_increase_permille,
            ),
            ("gate.max_mix_shift_permille", max_mix_shift_permille),
        ] {
            if !(0..=1_000).contains(&value) {
                return Err(Refusal::invalid(field, "is not 0 to 1000"));
            }
        }
        if !(100..=100_000).contains(&max_p99_percent) {
            let reason = "is not 100 to 100000";
            return Err(Refusal::invalid("gate.max_p99_percent", reason));
        }
        for (field, value) in [
            ("gate.p99_slack_ms", p99_slack_ms),
            (
                "gate.max_latency_increase_percent",
                max_latency_increase_percent,
            ),
            ("gate.max_cpu_increase_percent", max_cpu_increase_percent),
            ("gate.max_new_failures", max_new_failures),
        ] {
            if value < 0 {
                return Err(Refusal::invalid(field, "is below 0"));
            }
        }
        Ok(())
    }
}
