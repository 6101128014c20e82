//! Metrics of calls to agents.

use crate::names::metric::Metric;
use crate::samples::agents;

/// Calls answered by an agent.
pub const AGENT_REQUESTS_TOTAL: Metric = Metric::counter(
    "proxy_agent_requests_total",
    &["agent", "event", "decision"],
    "Calls the agent answered, by event and decision.",
    agents::requests,
);
/// Duration of agent calls.
pub const AGENT_DURATION_SECONDS: Metric = Metric::histogram(
    "proxy_agent_duration_seconds",
    &["agent", "event"],
    "From a call's first byte to the agent's answer.",
    agents::durations,
);
/// Agent calls that timed out.
pub const AGENT_TIMEOUTS_TOTAL: Metric = Metric::counter(
    "proxy_agent_timeouts_total",
    &["agent", "event"],
    "Calls the agent did not answer in time.",
    agents::timeouts,
);
/// Failed agent calls.
pub const AGENT_FAILURES_TOTAL: Metric = Metric::counter(
    "proxy_agent_failures_total",
    &["agent", "reason"],
    "Calls to the agent that failed, by reason.",
    agents::failures,
);
/// Calls waiting for an agent.
pub const AGENT_QUEUE_DEPTH: Metric = Metric::gauge(
    "proxy_agent_queue_depth",
    &["agent"],
    "Calls that wait for the agent.",
    agents::queue_depth,
);
