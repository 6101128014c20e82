//! Settings of a listener's connections, computed once for each plan.

use crate::connection::http2::settings as http2_settings;
use crate::connection::http2::task_pool::TaskPool;
use ipnet::IpNet;
use proxy_clock::Tick;
use proxy_framing::HeadLimits;
use proxy_model::{Limits, ListenerProtocol};
use proxy_pipeline::ConnectionTerms;
use proxy_plan::ListenerPlan;
use proxy_tls::{ClientAuth, ServerTls, ServerTlsSettings};
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Maximum length of a request target, in bytes; [RFC 9112 §3] recommends at least 8000.
const MAX_TARGET_BYTES: u32 = 16 * 1024;

/// Settings of the connections of one listener.
#[derive(Debug)]
pub(crate) struct ConnectionSettings {
    pub(crate) task_pool: TaskPool,
    pub(crate) limits: HeadLimits,
    pub(crate) http2: h2::server::Builder,
    /// Burst of streams that a client may reset before they were forwarded or answered.
    pub(crate) max_stream_resets: u32,
    /// Maximum size of an HTTP/2 header section that is collected from its frames, in bytes.
    pub(crate) max_section_bytes: usize,
    /// HTTP/2 with prior knowledge is accepted without TLS.
    pub(crate) h2c: bool,
    /// A connection begins with a PROXY protocol header, before TLS and HTTP.
    pub(crate) proxy_protocol: bool,
    pub(crate) protocol: ListenerProtocol,
    pub(crate) tls: Option<Arc<ServerTls>>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) header_timeout: Duration,
    pub(crate) keep_alive_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) terms: Rc<ConnectionTerms>,
    conditions: Conditions,
    /// The current settings of the same listener, if these are outdated.
    successor: OnceCell<Rc<Self>>,
}

/// The conditions that apply to a connection from accept to close. Connections with other
/// conditions than their listener's current ones are retired.
#[derive(Debug, PartialEq, Eq)]
struct Conditions {
    protocol: ListenerProtocol,
    tls: Option<TlsConditions>,
    h2c: bool,
    proxy_protocol: bool,
    trusted_proxies: Vec<IpNet>,
    head_limits: HeadLimits,
    max_concurrent_streams: u32,
    max_stream_resets: u32,
    max_age: Option<Duration>,
    max_requests: Option<u32>,
    timeouts: Timeouts,
}

/// The listener's timeouts.
#[derive(Debug, PartialEq, Eq)]
struct Timeouts {
    header: Duration,
    body_idle: Duration,
    write_idle: Duration,
    keep_alive: Duration,
    handshake: Duration,
}

/// The settings, and a digest of the roots for client certificates.
type TlsConditions = (ServerTlsSettings, Option<[u8; 32]>);

impl ConnectionSettings {
    /// Returns true if a new connection may be other than plain HTTP/1.x from its first byte.
    pub(crate) fn needs_negotiation(&self) -> bool {
        self.tls.is_some() || self.h2c || self.proxy_protocol || self.protocol.is_relayed()
    }

    /// Returns true if a connection that is rejected at its accept can get no response, or only an
    /// expensive one.
    pub(crate) fn has_no_cheap_response(&self) -> bool {
        self.tls.is_some() || self.proxy_protocol || self.protocol.is_relayed()
    }

    pub(crate) fn new(
        listener: &ListenerPlan,
        limits: &Limits,
        tls: Option<Arc<ServerTls>>,
    ) -> Self {
        let limits_of_heads = head_limits(limits);
        let conditions = conditions(listener, limits_of_heads, tls.as_deref());
        let terms = ConnectionTerms::new(
            listener.max_connection_age,
            listener.max_requests_per_connection,
        );
        Self {
            task_pool: TaskPool::default(),
            limits: limits_of_heads,
            http2: http2_settings::builder(listener, limits),
            max_stream_resets: listener.max_stream_resets,
            max_section_bytes: http2_settings::max_section_bytes(limits),
            h2c: listener.h2c,
            proxy_protocol: listener.proxy_protocol,
            protocol: listener.protocol,
            tls,
            handshake_timeout: listener.handshake_timeout,
            header_timeout: listener.header_timeout,
            keep_alive_timeout: listener.keep_alive_timeout,
            write_timeout: listener.write_idle_timeout,
            terms: Rc::new(terms),
            conditions,
            successor: OnceCell::new(),
        }
    }

    /// Returns true if connections accepted under `other` may continue under these settings.
    pub(crate) fn suit_connections_of(&self, other: &Self) -> bool {
        self.conditions == other.conditions
    }

    /// Retires the connections accepted under these settings in favour of `successor`; idle
    /// HTTP/1.x ones close at `close_idle_at`.
    pub(crate) fn retire(&self, successor: &Rc<Self>, close_idle_at: Tick) {
        let tls = successor.conditions.tls.as_ref();
        let needs_certificate =
            tls.is_some_and(|(tls, _)| matches!(tls.client_auth, ClientAuth::Required { .. }));
        self.terms.retire(close_idle_at, needs_certificate);
        // A listener bound again under the same name has already set a successor.
        drop(self.successor.set(Rc::clone(successor)));
    }

    /// The current settings of the same listener.
    pub(crate) fn in_force(self: &Rc<Self>) -> &Rc<Self> {
        let mut settings = self;
        while let Some(successor) = settings.successor.get() {
            settings = successor;
        }
        settings
    }
}

fn conditions(
    listener: &ListenerPlan,
    head_limits: HeadLimits,
    tls: Option<&ServerTls>,
) -> Conditions {
    let ListenerPlan {
        name: _,
        protocol,
        error_pages: _,
        access: _,
        default_route: _,
        trusted_proxies,
        strict_paths: _,
        expose_reasons: _,
        via: _,
        header_timeout,
        body_idle_timeout,
        write_idle_timeout,
        keep_alive_timeout,
        handshake_timeout,
        h2c,
        proxy_protocol,
        http3: _, // An endpoint without it ends its own connections.
        alt_svc: _,
        max_concurrent_streams,
        max_stream_resets,
        max_connection_age,
        max_requests_per_connection,
    } = listener;
    Conditions {
        protocol: *protocol,
        tls: tls.map(|tls| (tls.settings().clone(), tls.client_authority())),
        h2c: *h2c,
        proxy_protocol: *proxy_protocol,
        trusted_proxies: trusted_proxies.clone(),
        head_limits,
        max_concurrent_streams: *max_concurrent_streams,
        max_stream_resets: *max_stream_resets,
        max_age: *max_connection_age,
        max_requests: *max_requests_per_connection,
        timeouts: Timeouts {
            header: *header_timeout,
            body_idle: *body_idle_timeout,
            write_idle: *write_idle_timeout,
            keep_alive: *keep_alive_timeout,
            handshake: *handshake_timeout,
        },
    }
}

fn head_limits(limits: &Limits) -> HeadLimits {
    let bytes = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    HeadLimits {
        max_head_bytes: bytes(*limits.max_header_size_bytes),
        max_header_count: *limits.max_header_count,
        max_name_bytes: bytes(*limits.max_header_name_bytes),
        max_value_bytes: bytes(*limits.max_header_value_bytes),
        max_target_bytes: MAX_TARGET_BYTES,
    }
}
