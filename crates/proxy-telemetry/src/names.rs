//! All metrics of the proxy.

use crate::exposition::{agents, process, routes, upstreams, workers};
use crate::metric::{CounterOf, GaugeOf, Metric};

/// Finished requests.
pub const REQUESTS_TOTAL: Metric = Metric::counter(
    "proxy_requests_total",
    &["route", "status"],
    "Requests that are over; status 499: the client left before there was an answer.",
    routes::requests,
);
/// Durations of requests.
pub const REQUEST_DURATION_SECONDS: Metric = Metric::histogram(
    "proxy_request_duration_seconds",
    &["route"],
    "From the first byte of a request to the last of its response.",
    routes::durations,
);
/// Failed requests.
pub const REQUEST_FAILURES_TOTAL: Metric = Metric::counter(
    "proxy_request_failures_total",
    &["route"],
    "Requests that failed for a reason of the proxy or the upstream, or were answered with 5xx.",
    routes::failures,
);
/// Requests aborted by the client.
pub const CLIENT_ABORTS_TOTAL: Metric = Metric::counter(
    "proxy_client_aborts_total",
    &["route"],
    "Requests whose client left before the end of the response.",
    routes::aborts,
);
/// Body bytes from clients.
pub const RECEIVED_BYTES_TOTAL: Metric = Metric::counter(
    "proxy_received_bytes_total",
    &["route"],
    "Body bytes received from clients.",
    routes::bytes_in,
);
/// Body bytes to clients.
pub const SENT_BYTES_TOTAL: Metric = Metric::counter(
    "proxy_sent_bytes_total",
    &["route"],
    "Body bytes sent to clients.",
    routes::bytes_out,
);
/// Requests by protocol.
pub const REQUESTS_BY_PROTOCOL_TOTAL: Metric = Metric::counter(
    "proxy_requests_by_protocol_total",
    &["protocol"],
    "Requests begun, by the protocol of the client.",
    workers::protocols,
);
/// Requests in flight.
pub const REQUESTS_IN_FLIGHT: Metric = Metric::gauge(
    "proxy_requests_in_flight",
    &[],
    "Requests being served.",
    workers::requests_in_flight,
);
/// Requests in flight, under a second name.
pub const ACTIVE_REQUESTS: Metric = Metric::gauge(
    "proxy_active_requests",
    &[],
    "Requests being served; the same number as proxy_requests_in_flight.",
    workers::requests_in_flight,
);
/// Requests that wait for a place.
pub const REQUESTS_QUEUED: Metric = Metric::gauge(
    "proxy_requests_queued",
    &[],
    "Requests that wait for a place among those in flight.",
    workers::requests_queued,
);
/// Failures by reason.
pub const ERRORS_TOTAL: Metric = Metric::counter(
    "proxy_errors_total",
    &["reason"],
    "Requests that failed, by reason.",
    workers::errors,
);
/// Refusals by reason.
pub const BLOCKED_REQUESTS_TOTAL: Metric = Metric::counter(
    "proxy_blocked_requests_total",
    &["reason"],
    "Requests that a policy or an agent refused, by reason.",
    workers::blocked,
);
/// Reached limits.
pub const LIMIT_EXCEEDED_TOTAL: Metric = Metric::counter(
    "proxy_limit_exceeded_total",
    &["limit"],
    "Requests or connections that ran into a limit, by limit type.",
    workers::limits,
);
/// Requests with too large a header.
pub const HEADER_SIZE_EXCEEDED_TOTAL: Metric = Metric::counter(
    "proxy_header_size_exceeded_total",
    &[],
    "Requests whose header was larger than allowed.",
    workers::header_size_exceeded,
);
/// Requests with too large a body.
pub const BODY_SIZE_EXCEEDED_TOTAL: Metric = Metric::counter(
    "proxy_body_size_exceeded_total",
    &[],
    "Requests whose body was larger than allowed.",
    workers::body_size_exceeded,
);
/// Connections refused.
pub const CONNECTION_LIMIT_REACHED_TOTAL: Metric = Metric::counter(
    "proxy_connection_limit_reached_total",
    &[],
    "Connections or requests refused because too many connections were open.",
    workers::connection_limit_reached,
);
/// Requests above their rate limit.
pub const RATE_LIMIT_EXCEEDED_TOTAL: Metric = Metric::counter(
    "proxy_rate_limit_exceeded_total",
    &[],
    "Requests refused by a rate limit.",
    workers::rate_limit_exceeded,
);
/// Requests over a rate that is only observed.
pub const RATE_LIMIT_OBSERVED_TOTAL: Metric = Metric::counter(
    "proxy_rate_limit_observed_total",
    &[],
    "Requests over a rate limit with observe-only, which were served.",
    workers::rate_limits_observed,
);
/// Keys evicted from a full keyed rate limit.
pub const RATE_LIMIT_KEYS_EVICTED_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_rate_limit_keys_evicted_total",
    &["route"],
    "Keys that a full keyed rate limit forgot to make room; without a route that of all clients.",
);
/// Whether a store of shared rate limits answers.
pub const RATE_LIMIT_STORE_UP: GaugeOf<1> = GaugeOf::new(
    "proxy_rate_limit_store_up",
    &["store"],
    "1 while the store of shared rate limits answers, 0 while each proxy limits for itself.",
);
/// Requests that a store did not decide on.
pub const RATE_LIMIT_STORE_UNANSWERED_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_rate_limit_store_unanswered_total",
    &["store"],
    "Requests that the proxy's own bucket decided on, for want of an answer of the store.",
);
/// Copies of requests for another upstream.
pub const SHADOW_REQUESTS_TOTAL: CounterOf<2> = CounterOf::new(
    "proxy_shadow_requests_total",
    &["route", "result"],
    "Copies of requests for another upstream: answered, failed, or dropped because too many were under \
     way or the body was too large.",
);
/// All client connections.
pub const OPEN_CONNECTIONS: Metric = Metric::gauge(
    "proxy_open_connections",
    &[],
    "Client connections, hibernating ones too.",
    workers::connections_open,
);
/// Client connections, without hibernating ones.
pub const CONNECTIONS_ACTIVE: Metric = Metric::gauge(
    "proxy_connections_active",
    &[],
    "Client connections that do not hibernate.",
    workers::connections_active,
);
/// Hibernating client connections.
pub const CONNECTIONS_IDLE: Metric = Metric::gauge(
    "proxy_connections_idle",
    &[],
    "Client connections that hibernate: idle, with their buffers freed.",
    workers::connections_idle,
);
/// Client connections accepted.
pub const CONNECTIONS_ACCEPTED_TOTAL: Metric = Metric::counter(
    "proxy_connections_accepted_total",
    &[],
    "Client connections accepted.",
    workers::connections_accepted,
);
/// TLS handshakes with clients.
pub const TLS_HANDSHAKES_TOTAL: Metric = Metric::counter(
    "proxy_tls_handshakes_total",
    &["result"],
    "TLS handshakes with clients, by result: completed or failed.",
    workers::handshakes,
);
/// Expiry of a certificate.
pub const TLS_CERTIFICATE_EXPIRY_SECONDS: GaugeOf<1> = GaugeOf::new(
    "proxy_tls_certificate_expiry_seconds",
    &["certificate"],
    "Unix time at which a served certificate expires.",
);
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
/// Whether a target is healthy.
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
    "Requests that failed for a reason of the target's.",
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
    "0 closed, 1 open, 2 half-open.",
);
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
/// Changes of circuit breakers.
pub const CIRCUIT_BREAKER_TRANSITIONS_TOTAL: CounterOf<3> = CounterOf::new(
    "proxy_circuit_breaker_transitions_total",
    &["component", "route", "state"],
    "Changes of a circuit breaker, by the state that it entered: closed, open or half-open.",
);
/// Look-ups of targets by name.
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
/// Reloads of the configuration.
pub const CONFIG_RELOADS_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_config_reloads_total",
    &["result"],
    "Reloads of the configuration, by result: success or failure.",
);
/// Upgrades of the binary.
pub const UPGRADES_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_upgrades_total",
    &["result"],
    "Upgrades of the binary: success, counted by the process that took over, or failure, by the one \
     that serves on.",
);
/// Generation of the active configuration.
pub const CONFIG_GENERATION: GaugeOf<0> = GaugeOf::new(
    "proxy_config_generation",
    &[],
    "Number of the configuration in force, 1 at start.",
);
/// Time at which the active configuration was applied.
pub const CONFIG_LAST_RELOAD_TIMESTAMP_SECONDS: GaugeOf<0> = GaugeOf::new(
    "proxy_config_last_reload_timestamp_seconds",
    &[],
    "Unix time at which the configuration in force was loaded.",
);
/// Whether the control plane answers.
pub const CONTROL_PLANE_CONNECTED: GaugeOf<0> = GaugeOf::new(
    "proxy_control_plane_connected",
    &[],
    "1 while the control plane answers and accepts the node's credential, else 0.",
);
/// Time of the control plane's last answer.
pub const CONTROL_PLANE_LAST_CONTACT_TIMESTAMP_SECONDS: GaugeOf<0> = GaugeOf::new(
    "proxy_control_plane_last_contact_timestamp_seconds",
    &[],
    "Unix time of the control plane's last answer, by the node's clock; 0 before the first.",
);
/// The bundle in force.
pub const CONTROL_PLANE_BUNDLE_GENERATION: GaugeOf<0> = GaugeOf::new(
    "proxy_control_plane_bundle_generation",
    &[],
    "Counter of the order whose bundle is in force; 0 while the node serves its own file.",
);
/// Orders and bundles that the node refused.
pub const CONTROL_PLANE_REFUSALS_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_control_plane_refusals_total",
    &["reason"],
    "Orders and bundles that the node refused, by reason; one that comes again unchanged counts once.",
);
/// Age of a worker's last heartbeat.
pub const WORKER_HEARTBEAT_AGE_SECONDS: GaugeOf<1> = GaugeOf::new(
    "proxy_worker_heartbeat_age_seconds",
    &["worker"],
    "Whole seconds since the worker was last seen to run; 0 while all is well, 3 or more is not ready.",
);
/// Log lines written.
pub const LOG_LINES_WRITTEN_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_log_lines_written_total",
    &["log"],
    "Log lines that reached their destination.",
);
/// Log lines lost.
pub const LOG_LINES_LOST_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_log_lines_lost_total",
    &["log"],
    "Log lines given up because the destination was too slow or refused them.",
);
/// Failed writes to a log.
pub const LOG_WRITE_ERRORS_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_log_write_errors_total",
    &["log"],
    "Writes to a log, or attempts to open it again, that failed.",
);
/// Series refused for the limit on series.
pub const METRIC_SERIES_DROPPED_TOTAL: Metric = Metric::counter(
    "proxy_metric_series_dropped_total",
    &[],
    "Times a name got no series of its own because there were too many; see label overflow.",
    process::series_dropped,
);
/// Memory in use.
pub const MEMORY_USAGE_BYTES: Metric = Metric::gauge(
    "proxy_memory_usage_bytes",
    &[],
    "Resident memory; the same number as process_resident_memory_bytes.",
    process::resident_bytes,
);
/// Memory limit.
pub const MEMORY_LIMIT_BYTES: GaugeOf<0> = GaugeOf::new(
    "proxy_memory_limit_bytes",
    &[],
    "Memory that the configured limits allow.",
);
/// Whether load is shed for lack of memory.
pub const MEMORY_SHEDDING: GaugeOf<0> = GaugeOf::new(
    "proxy_memory_shedding",
    &[],
    "1 while connections are refused because memory is short, else 0.",
);
/// Time since start.
pub const UPTIME_SECONDS: Metric = Metric::gauge(
    "proxy_uptime_seconds",
    &[],
    "Time since start.",
    process::uptime,
);
/// Version of the program.
pub const BUILD_INFO: Metric = Metric::gauge(
    "proxy_build_info",
    &["version", "commit"],
    "Always 1; the labels tell the build.",
    process::build_info,
);
/// Processor time.
pub const PROCESS_CPU_SECONDS_TOTAL: Metric = Metric::counter(
    "process_cpu_seconds_total",
    &[],
    "Processor time spent, user and system.",
    process::cpu,
);
/// Resident memory.
pub const PROCESS_RESIDENT_MEMORY_BYTES: Metric = Metric::gauge(
    "process_resident_memory_bytes",
    &[],
    "Resident memory.",
    process::resident_bytes,
);
/// Open file descriptors.
pub const PROCESS_OPEN_FDS: Metric = Metric::gauge(
    "process_open_fds",
    &[],
    "Open file descriptors.",
    process::open_fds,
);
/// Time of start.
pub const PROCESS_START_TIME_SECONDS: Metric = Metric::gauge(
    "process_start_time_seconds",
    &[],
    "Unix time at which the process started.",
    process::start_time,
);

/// Every metric, in the order of the exposition and of the reference page.
pub const METRICS: &[Metric] = &[
    REQUESTS_TOTAL,
    REQUEST_DURATION_SECONDS,
    REQUEST_FAILURES_TOTAL,
    CLIENT_ABORTS_TOTAL,
    RECEIVED_BYTES_TOTAL,
    SENT_BYTES_TOTAL,
    REQUESTS_BY_PROTOCOL_TOTAL,
    REQUESTS_IN_FLIGHT,
    ACTIVE_REQUESTS,
    REQUESTS_QUEUED,
    ERRORS_TOTAL,
    BLOCKED_REQUESTS_TOTAL,
    LIMIT_EXCEEDED_TOTAL,
    HEADER_SIZE_EXCEEDED_TOTAL,
    BODY_SIZE_EXCEEDED_TOTAL,
    CONNECTION_LIMIT_REACHED_TOTAL,
    RATE_LIMIT_EXCEEDED_TOTAL,
    RATE_LIMIT_OBSERVED_TOTAL,
    RATE_LIMIT_KEYS_EVICTED_TOTAL.metric,
    SHADOW_REQUESTS_TOTAL.metric,
    RATE_LIMIT_STORE_UP.metric,
    RATE_LIMIT_STORE_UNANSWERED_TOTAL.metric,
    OPEN_CONNECTIONS,
    CONNECTIONS_ACTIVE,
    CONNECTIONS_IDLE,
    CONNECTIONS_ACCEPTED_TOTAL,
    TLS_HANDSHAKES_TOTAL,
    TLS_CERTIFICATE_EXPIRY_SECONDS.metric,
    UPSTREAM_ATTEMPTS_TOTAL,
    UPSTREAM_FAILURES_TOTAL,
    UPSTREAM_DURATION_SECONDS,
    RETRIES_TOTAL,
    CONNECTION_POOL_SIZE,
    CONNECTION_POOL_IDLE,
    POOL_STALE_TOTAL,
    UPSTREAM_TARGET_HEALTHY.metric,
    UPSTREAM_TARGET_REQUESTS_TOTAL,
    UPSTREAM_TARGET_FAILURES_TOTAL,
    UPSTREAM_TARGET_ACTIVE_REQUESTS,
    CIRCUIT_BREAKER_STATE.metric,
    CIRCUIT_BREAKER_TRANSITIONS_TOTAL.metric,
    AGENT_REQUESTS_TOTAL,
    AGENT_DURATION_SECONDS,
    AGENT_TIMEOUTS_TOTAL,
    AGENT_FAILURES_TOTAL,
    AGENT_QUEUE_DEPTH,
    DNS_LOOKUPS_TOTAL.metric,
    DNS_ADDRESSES.metric,
    CONFIG_RELOADS_TOTAL.metric,
    UPGRADES_TOTAL.metric,
    CONFIG_GENERATION.metric,
    CONFIG_LAST_RELOAD_TIMESTAMP_SECONDS.metric,
    CONTROL_PLANE_CONNECTED.metric,
    CONTROL_PLANE_LAST_CONTACT_TIMESTAMP_SECONDS.metric,
    CONTROL_PLANE_BUNDLE_GENERATION.metric,
    CONTROL_PLANE_REFUSALS_TOTAL.metric,
    WORKER_HEARTBEAT_AGE_SECONDS.metric,
    LOG_LINES_WRITTEN_TOTAL.metric,
    LOG_LINES_LOST_TOTAL.metric,
    LOG_WRITE_ERRORS_TOTAL.metric,
    METRIC_SERIES_DROPPED_TOTAL,
    MEMORY_USAGE_BYTES,
    MEMORY_LIMIT_BYTES.metric,
    MEMORY_SHEDDING.metric,
    UPTIME_SECONDS,
    BUILD_INFO,
    PROCESS_CPU_SECONDS_TOTAL,
    PROCESS_RESIDENT_MEMORY_BYTES,
    PROCESS_OPEN_FDS,
    PROCESS_START_TIME_SECONDS,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Kind;
    use std::collections::BTreeSet;

    #[test]
    fn every_constant_stands_in_the_table_once() {
        let declared = include_str!("names.rs")
            .lines()
            .filter(|line| line.starts_with("pub const ") && !line.contains("METRICS"))
            .count();
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();

        assert_eq!(names.len(), METRICS.len());
        assert_eq!(declared, METRICS.len());
    }

    #[test]
    fn names_tell_the_kind() {
        for metric in METRICS {
            let total = metric.name.ends_with("_total");
            assert_eq!(total, metric.kind == Kind::Counter, "{}", metric.name);
            let clean = |name: &str| {
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            };
            assert!(clean(metric.name) && metric.labels.iter().all(|label| clean(label)));
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
