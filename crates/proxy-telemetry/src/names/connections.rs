//! Metrics of connections from clients.

use crate::names::metric::{CounterOf, GaugeOf, Metric};
use crate::samples::workers;

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
/// Connections closed for their PROXY protocol header.
pub const PROXY_HEADERS_FAILED_TOTAL: Metric = Metric::counter(
    "proxy_proxy_headers_failed_total",
    &[],
    "Client connections closed because they began without a PROXY protocol header, or with a malformed one.",
    workers::proxy_headers_failed,
);
/// Expiry of a certificate.
pub const TLS_CERTIFICATE_EXPIRY_SECONDS: GaugeOf<1> = GaugeOf::new(
    "proxy_tls_certificate_expiry_seconds",
    &["certificate"],
    "Unix time at which a served certificate expires.",
);
/// Attempts to obtain a certificate.
pub const ACME_ORDERS_TOTAL: CounterOf<2> = CounterOf::new(
    "proxy_acme_orders_total",
    &["certificate", "result"],
    "Attempts to obtain a certificate by ACME, by result: success or failure.",
);
/// Failed attempts since the last certificate.
pub const ACME_CONSECUTIVE_FAILURES: GaugeOf<1> = GaugeOf::new(
    "proxy_acme_consecutive_failures",
    &["certificate"],
    "Failed attempts to obtain a certificate by ACME since the last success.",
);
/// Time of the last failed attempt.
pub const ACME_LAST_FAILURE_TIMESTAMP_SECONDS: GaugeOf<1> = GaugeOf::new(
    "proxy_acme_last_failure_timestamp_seconds",
    &["certificate"],
    "Unix time of the last failed attempt to obtain a certificate by ACME; 0 without one.",
);
/// Time of the next attempt.
pub const ACME_NEXT_ATTEMPT_TIMESTAMP_SECONDS: GaugeOf<1> = GaugeOf::new(
    "proxy_acme_next_attempt_timestamp_seconds",
    &["certificate"],
    "Unix time of the next renewal of a certificate by ACME, or of the next attempt after a failure.",
);
/// Fetches of key sets.
pub const KEY_SET_FETCHES_TOTAL: CounterOf<3> = CounterOf::new(
    "proxy_jwt_key_set_fetches_total",
    &["upstream", "url", "result"],
    "Fetches of the key set of an issuer for `jwt`, by result: success or failure.",
);
/// Keys of a key set.
pub const KEY_SET_KEYS: GaugeOf<2> = GaugeOf::new(
    "proxy_jwt_key_set_keys",
    &["upstream", "url"],
    "Keys in use of an issuer's key set; 0 while requests are refused for lack of keys.",
);
/// Time of the last fetch that succeeded.
pub const KEY_SET_LAST_SUCCESS_TIMESTAMP_SECONDS: GaugeOf<2> = GaugeOf::new(
    "proxy_jwt_key_set_last_success_timestamp_seconds",
    &["upstream", "url"],
    "Unix time of the last fetch of an issuer's key set that succeeded; 0 without one.",
);
