//! What a plan knows of a listener.

use ipnet::IpNet;
use proxy_model::{Listener, PathPolicy};
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
    /// The route of requests that no other route takes.
    pub default_route: Option<usize>,
    /// Peers whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether paths that can be read in two ways are refused.
    pub strict_paths: bool,
    /// Whether our own errors carry `Proxy-Status`.
    pub expose_reasons: bool,
    /// Whether requests that go upstream say in `Via` that they came by here.
    pub via: bool,
    /// Time for a request's head.
    pub header_time: Duration,
    /// Time between two pieces of a request's body.
    pub body_idle_time: Duration,
    /// Time between two writes that the client takes.
    pub write_idle_time: Duration,
    /// Time between two requests.
    pub keep_alive_time: Duration,
    /// Time for a TLS handshake.
    pub handshake_time: Duration,
    /// Whether HTTP/2 is spoken without TLS to clients that begin with it.
    pub h2c: bool,
    /// Whether every connection begins with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// Most streams at once on one HTTP/2 connection.
    pub max_concurrent_streams: u32,
    /// Streams that a client may reset at once before they came to anything.
    pub max_stream_resets: u32,
    /// How old a client's connection may become.
    pub max_connection_age: Option<Duration>,
    /// Most requests on one client connection.
    pub max_requests_per_connection: Option<u32>,
}

impl ListenerPlan {
    pub(crate) fn compile(listener: &Listener) -> Self {
        let times = &listener.timeouts;
        Self {
            name: listener.name.clone(),
            default_route: listener.default_route.map(|route| route.value.position()),
            trusted_proxies: listener
                .trusted_proxies
                .iter()
                .map(|net| net.value)
                .collect(),
            strict_paths: *listener.path_policy == PathPolicy::Strict,
            expose_reasons: *listener.expose_reasons,
            via: *listener.via,
            header_time: *times.header,
            body_idle_time: *times.body_idle,
            write_idle_time: *times.write_idle,
            keep_alive_time: *times.keep_alive,
            handshake_time: *times.handshake,
            h2c: *listener.h2c,
            proxy_protocol: *listener.proxy_protocol,
            max_concurrent_streams: *listener.max_concurrent_streams,
            max_stream_resets: *listener.max_stream_resets,
            max_connection_age: listener.max_connection_age.as_deref().copied(),
            max_requests_per_connection: listener.max_requests_per_connection.as_deref().copied(),
        }
    }
}
