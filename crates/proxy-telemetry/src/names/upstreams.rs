//! Metrics of upstreams and their targets.

use crate::names::metric::{CounterOf, GaugeOf, Metric};
use crate::samples::upstreams;

/// Attempts to send a request to an upstream.
pub const UPSTREAM_ATTEMPTS_TOTAL: Metric = Metric::counter(
    "proxy_upstream_attempts_total",
    &["upstream"],
    "Times a request was sent to the upstream or tried to be, retries too.",
    upstreams::attempts,
);
/// Failed attempts.
pub const UPSTREAM_FAILURES_TOTAL: Metric = Metric::counter(
    "proxy_upstream_failures_total",
    &["upstream", "reason"],
    "Attempts that failed for a reason of the upstream's; a client that leaves is none.",
    upstreams::failures,
);
/// Time from an attempt to the head of its response.
pub const UPSTREAM_DURATION_SECONDS: Metric = Metric::histogram(
    "proxy_upstream_duration_seconds",
    &["upstream"],
    "From an attempt's start to the head of its response.",
    upstreams::durations,
);
/// Attempts after the first.
pub const RETRIES_TOTAL: Metric = Metric::counter(
    "proxy_retries_total",
    &["upstream"],
    "Attempts after the first of a request.",
    upstreams::retries,
);
/// Retries that the budget refused.
pub const RETRIES_REFUSED_TOTAL: Metric = Metric::counter(
    "proxy_retries_refused_total",
    &["upstream"],
    "Retries that were omitted because the upstream's retry budget was spent.",
    upstreams::retries_refused,
);
/// Connections to an upstream.
pub const CONNECTION_POOL_SIZE: Metric = Metric::gauge(
    "proxy_connection_pool_size",
    &["upstream"],
    "Connections open to the upstream, in use or idle.",
    upstreams::pool_size,
);
/// Idle connections in the pool.
pub const CONNECTION_POOL_IDLE: Metric = Metric::gauge(
    "proxy_connection_pool_idle",
    &["upstream"],
    "Connections to the upstream kept for the next request.",
    upstreams::pool_idle,
);
/// Pooled connections found closed.
pub const POOL_STALE_TOTAL: Metric = Metric::counter(
    "proxy_pool_stale_total",
    &["upstream"],
    "Pooled connections that turned out to be closed when they were to be used.",
    upstreams::pool_stale,
);
/// 1 if a target is healthy.
pub const UPSTREAM_TARGET_HEALTHY: GaugeOf<2> = GaugeOf::new(
    "proxy_upstream_target_healthy",
    &["upstream", "target"],
    "1 while the target is healthy, 0 while it is not.",
);
/// Requests sent to a target.
pub const UPSTREAM_TARGET_REQUESTS_TOTAL: Metric = Metric::counter(
    "proxy_upstream_target_requests_total",
    &["upstream", "target"],
    "Requests sent to the target or tried to be.",
    upstreams::target_requests,
);
/// Requests that failed because of a target.
pub const UPSTREAM_TARGET_FAILURES_TOTAL: Metric = Metric::counter(
    "proxy_upstream_target_failures_total",
    &["upstream", "target"],
    "Requests that failed at the target: no connection, a timeout, a broken response or a 5xx.",
    upstreams::target_failures,
);
/// Requests in flight at a target.
pub const UPSTREAM_TARGET_ACTIVE_REQUESTS: Metric = Metric::gauge(
    "proxy_upstream_target_active_requests",
    &["upstream", "target"],
    "Requests that the target is serving.",
    upstreams::target_active,
);
/// State of a circuit breaker.
pub const CIRCUIT_BREAKER_STATE: GaugeOf<2> = GaugeOf::new(
    "proxy_circuit_breaker_state",
    &["component", "route"],
    "0 closed, 1 open, 2 half-open; an open one is half-open once its timeout has passed, before the next request.",
);
/// Changes of circuit breakers.
pub const CIRCUIT_BREAKER_TRANSITIONS_TOTAL: CounterOf<3> = CounterOf::new(
    "proxy_circuit_breaker_transitions_total",
    &["component", "route", "state"],
    "Changes of a circuit breaker, by the state that it entered: closed, open or half-open.",
);
/// DNS look-ups of targets.
pub const DNS_LOOKUPS_TOTAL: CounterOf<2> = CounterOf::new(
    "proxy_dns_lookups_total",
    &["name", "result"],
    "Look-ups of a target's name, by result: success or failure.",
);
/// Addresses of targets by name.
pub const DNS_ADDRESSES: GaugeOf<1> = GaugeOf::new(
    "proxy_dns_addresses",
    &["name"],
    "Addresses of a target's name, by the last good answer.",
);
/// Next DNS look-ups of targets.
pub const DNS_NEXT_LOOKUP_TIMESTAMP_SECONDS: GaugeOf<1> = GaugeOf::new(
    "proxy_dns_next_lookup_timestamp_seconds",
    &["name"],
    "Unix time at which a target's name is looked up again.",
);
