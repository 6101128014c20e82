//! Metrics of limits on requests and on connections.

use crate::names::metric::{CounterOf, GaugeOf, Metric};
use crate::samples::workers;

/// Reached limits.
pub const LIMIT_EXCEEDED_TOTAL: Metric = Metric::counter(
    "proxy_limit_exceeded_total",
    &["limit"],
    "Requests or connections that ran into a limit, by limit type.",
    workers::limits,
);
/// Refusals by setting.
pub const LIMIT_REJECTIONS_TOTAL: Metric = Metric::counter(
    "proxy_limit_rejections_total",
    &["setting"],
    "Requests or connections refused for a limit, by its setting in the limits block, a route's policies or an upstream.",
    workers::limit_rejections,
);
/// Use of limits.
pub const LIMIT_USE: Metric = Metric::gauge(
    "proxy_limit_use",
    &["setting"],
    "Use of a limit, by its setting: of the one with the most, for a limit on each client, route, worker, agent or target.",
    workers::limit_uses,
);
/// Maxima of limits.
pub const LIMIT_MAXIMUM: Metric = Metric::gauge(
    "proxy_limit_maximum",
    &["setting"],
    "Maximum of a limit, by its setting in the limits block; none for one that is not set.",
    workers::limit_maxima,
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
/// 1 if a store of shared rate limits answers.
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
