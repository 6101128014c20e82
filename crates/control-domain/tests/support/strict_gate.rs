//! A gate with low limits, which few requests reach.

use control_domain::Gate;

pub(crate) const GATE: Gate = Gate {
    min_requests: 100,
    max_error_increase_permille: 5,
    max_p99_percent: 150,
    p99_slack_ms: 0,
    max_cpu_increase_percent: 20,
    max_new_failures: 2,
    max_latency_increase_percent: 20,
    max_mix_shift_permille: 50,
};
