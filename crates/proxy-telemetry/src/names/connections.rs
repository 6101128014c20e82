//! Metrics of connections from clients.

use crate::exposition::workers;
use crate::metric::{GaugeOf, Metric};

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
