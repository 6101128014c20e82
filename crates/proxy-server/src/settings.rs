//! What a listener's connections need to know, made once for each plan.

use crate::http2::{self, Crew};
use proxy_framing::HeadLimits;
use proxy_model::Limits;
use proxy_plan::ListenerPlan;
use proxy_tls::ServerTls;
use std::sync::Arc;
use std::time::Duration;

/// Longest request target, in bytes. [RFC 9112 §3] asks for 8000 at least.
const MAX_TARGET_BYTES: u32 = 16 * 1024;

/// How connections of one listener are treated.
#[derive(Debug)]
pub(crate) struct ConnectionSettings {
    pub(crate) crew: Crew,
    pub(crate) limits: HeadLimits,
    pub(crate) http2: h2::server::Builder,
    /// Streams that a client may reset at once that came to nothing.
    pub(crate) max_stream_resets: u32,
    /// Bytes of an HTTP/2 header section that is collected from its frames.
    pub(crate) max_section_bytes: usize,
    /// Whether a client may begin with HTTP/2, without TLS.
    pub(crate) h2c: bool,
    /// Whether a connection begins with a PROXY protocol header.
    pub(crate) proxy_protocol: bool,
    pub(crate) tls: Option<Arc<ServerTls>>,
    pub(crate) handshake_time: Duration,
    pub(crate) header_time: Duration,
    pub(crate) keep_alive_time: Duration,
    pub(crate) write_time: Duration,
}

impl ConnectionSettings {
    /// Whether a new connection may speak something else than plain HTTP/1.x, or begin with something
    /// else.
    pub(crate) fn has_to_find_out(&self) -> bool {
        self.tls.is_some() || self.h2c || self.proxy_protocol
    }

    pub(crate) fn new(
        listener: &ListenerPlan,
        limits: &Limits,
        tls: Option<Arc<ServerTls>>,
    ) -> Self {
        Self {
            crew: Crew::default(),
            limits: head_limits(limits),
            http2: http2::builder(listener, limits),
            max_stream_resets: listener.max_stream_resets,
            max_section_bytes: http2::max_section_bytes(limits),
            h2c: listener.h2c,
            proxy_protocol: listener.proxy_protocol,
            tls,
            handshake_time: listener.handshake_time,
            header_time: listener.header_time,
            keep_alive_time: listener.keep_alive_time,
            write_time: listener.write_idle_time,
        }
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
