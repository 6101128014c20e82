//! Metrics of requests from clients.

use crate::names::metric::{CounterOf, GaugeOf, Metric};
use crate::samples::{routes, workers};

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
    "Requests that failed for a reason of the proxy or the upstream, or were answered with 5xx; refusals that the \
     client caused are none.",
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
    "Requests being served, without tunnels.",
    workers::requests_in_flight,
);
/// Requests in flight, under a second name.
pub const ACTIVE_REQUESTS: Metric = Metric::gauge(
    "proxy_active_requests",
    &[],
    "Requests being served; the same number as proxy_requests_in_flight.",
    workers::requests_in_flight,
);
/// Tunnels after a protocol switch.
pub const TUNNELS: Metric = Metric::gauge(
    "proxy_tunnels",
    &[],
    "Open tunnels: exchanges that have switched protocols, such as WebSocket, and relayed connections.",
    workers::tunnels,
);
/// Requests that a reload has outlived.
pub const REQUESTS_OF_FORMER_CONFIGURATIONS: Metric = Metric::gauge(
    "proxy_requests_of_former_configurations",
    &[],
    "Requests being served, streams too, that began under a configuration before the one in force.",
    workers::requests_of_former_configurations,
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
    "Requests and connections refused by policy, by reason: by rules of access, credentials, agents and limits, which are the error types AuthenticationFailed, AuthorizationFailed, WafBlocked, LimitExceeded and RateLimit.",
    workers::blocked,
);
/// Requests on routes that cache.
pub const CACHE_REQUESTS_TOTAL: CounterOf<2> = CounterOf::new(
    "proxy_cache_requests_total",
    &["route", "result"],
    "Requests on routes that cache: hit, stale, revalidated, miss, or bypass.",
);
/// Bytes of the cache.
pub const CACHE_BYTES: GaugeOf<0> = GaugeOf::new(
    "proxy_cache_bytes",
    &[],
    "Memory of stored responses, with those that are being read.",
);
/// Stored responses.
pub const CACHE_OBJECTS: GaugeOf<0> = GaugeOf::new("proxy_cache_objects", &[], "Stored responses.");
/// Copies of requests for another upstream.
pub const SHADOW_REQUESTS_TOTAL: CounterOf<2> = CounterOf::new(
    "proxy_shadow_requests_total",
    &["route", "result"],
    "Copies of requests for another upstream: answered, failed, or dropped because too many were under \
     way or the body was too large.",
);
