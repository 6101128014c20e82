//! The compiled form of a listener.

use crate::access::AccessPlan;
use ipnet::IpNet;
use proxy_model::{ErrorPages, Listener, ListenerProtocol, PathPolicy};
use std::time::Duration;

/// A listener's part in decisions and in the care for its connections.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
pub struct ListenerPlan {
    /// The listener's name.
    pub name: String,
    /// Protocol of the listener's connections.
    pub protocol: ListenerProtocol,
    /// Index of the route for requests that match no route.
    pub default_route: Option<usize>,
    /// Networks of the peers with trusted forwarding headers.
    pub trusted_proxies: Vec<IpNet>,
    /// Networks of clients; `None` admits all.
    pub access: Option<Box<AccessPlan>>,
    /// HTML pages of errors.
    pub error_pages: ErrorPages,
    /// True if ambiguous paths are refused.
    pub strict_paths: bool,
    /// True if the proxy's own errors carry `Proxy-Status`.
    pub expose_reasons: bool,
    /// True if requests to upstreams get a `Via` header.
    pub via: bool,
    /// Maximum time for a request's head.
    pub header_timeout: Duration,
    /// Maximum time without progress in reading a request's body.
    pub body_idle_timeout: Duration,
    /// Maximum time without progress in writing a response.
    pub write_idle_timeout: Duration,
    /// Maximum idle time between two requests.
    pub keep_alive_timeout: Duration,
    /// Maximum time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// HTTP/2 with prior knowledge is accepted without TLS.
    pub h2c: bool,
    /// True if every connection begins with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// HTTP/3 is accepted on the UDP port of the same address.
    pub http3: bool,
    /// The advertisement of HTTP/3; `None` for none.
    pub alt_svc: Option<AltSvcPlan>,
    /// Maximum number of concurrent streams on one HTTP/2 or HTTP/3 connection.
    pub max_concurrent_streams: u32,
    /// Burst of streams that a client may reset before they were forwarded or answered.
    pub max_stream_resets: u32,
    /// Maximum age of a client connection; `None` is unlimited.
    pub max_connection_age: Option<Duration>,
    /// Maximum number of requests on one client connection; `None` is unlimited.
    pub max_requests_per_connection: Option<u32>,
}

/// The advertisement of HTTP/3 in responses over other versions. [RFC 7838]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AltSvcPlan {
    /// Time for which a client may use it.
    pub max_age: Duration,
    /// The UDP port; `None` is the port that the client connected to.
    pub port: Option<u16>,
}

impl ListenerPlan {
    pub(crate) fn compile(listener: &Listener) -> Self {
        let timeouts = &listener.timeouts;
        Self {
            name: listener.name.clone(),
            protocol: *listener.protocol,
            default_route: listener.default_route.map(|route| route.value.position()),
            trusted_proxies: listener
                .trusted_proxies
                .iter()
                .map(|net| net.value)
                .collect(),
            access: AccessPlan::compile(&listener.access),
            error_pages: listener.error_pages.clone(),
            strict_paths: *listener.path_policy == PathPolicy::Strict,
            expose_reasons: *listener.expose_reasons,
            via: *listener.via,
            header_timeout: *timeouts.header,
            body_idle_timeout: *timeouts.body_idle,
            write_idle_timeout: *timeouts.write_idle,
            keep_alive_timeout: *timeouts.keep_alive,
            handshake_timeout: *timeouts.handshake,
            h2c: *listener.h2c,
            proxy_protocol: *listener.proxy_protocol,
            http3: *listener.http3,
            alt_svc: listener.alt_svc_max_age.map(|max_age| AltSvcPlan {
                max_age: max_age.value,
                port: listener.alt_svc_port.as_deref().copied(),
            }),
            max_concurrent_streams: *listener.max_concurrent_streams,
            max_stream_resets: *listener.max_stream_resets,
            max_connection_age: listener.max_connection_age.as_deref().copied(),
            max_requests_per_connection: listener.max_requests_per_connection.as_deref().copied(),
        }
    }
}
