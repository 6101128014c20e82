//! Settings of HTTP/3 connections, including the limits on their memory.

use crate::connection::http2::settings::header_list;
use proxy_http3::{SectionLimits, Settings};
use proxy_model::Limits;
use proxy_plan::ListenerPlan;
use quinn_proto::{IdleTimeout, TransportConfig, VarInt};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of one request body that may wait for a slow upstream.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Total size of a connection's unread request bodies, in bytes.
pub(crate) const RECEIVE_WINDOW: u32 = 1024 * 1024;

/// Bytes of a connection's responses that the client has not acknowledged.
pub(crate) const SEND_WINDOW: u32 = 1024 * 1024;

/// Maximum number of unidirectional streams of a client: control, two of QPACK, and some of unknown
/// types, which are ignored.
const UNI_STREAMS: u32 = 8;

/// Maximum bytes of incomplete header sections of one connection, unless a single one may be
/// larger.
const HELD_SECTION_BYTES: usize = 256 * 1024;

/// HPACK's and QPACK's overhead for a field, in bytes.
const FIELD_OVERHEAD: usize = 32;

/// Silence of a client after which its connection is lost, in addition to `keep-alive-secs`.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// Settings of the connections of one listener.
#[derive(Debug)]
pub(crate) struct Http3Settings {
    pub(super) transport: Arc<TransportConfig>,
    pub(super) sections: SectionLimits,
    /// Maximum size of an encoded header section, in bytes.
    pub(super) max_section_bytes: usize,
    /// Maximum bytes of incomplete header sections of one connection.
    pub(super) max_held_section_bytes: usize,
    pub(super) offered: Settings,
}

impl Http3Settings {
    pub(crate) fn new(listener: &ListenerPlan, limits: &Limits) -> Self {
        // Above our own limits, which have a response.
        let list = header_list(limits);
        let bytes = usize::try_from(list).unwrap_or(usize::MAX);
        Self {
            transport: Arc::new(transport(listener)),
            sections: SectionLimits {
                max_bytes: bytes,
                max_fields: bytes / FIELD_OVERHEAD,
            },
            max_section_bytes: bytes,
            max_held_section_bytes: held_section_bytes(limits),
            offered: Settings {
                max_field_section_bytes: u64::from(list),
            },
        }
    }
}

/// Maximum bytes of incomplete header sections of one connection.
pub(crate) fn held_section_bytes(limits: &Limits) -> usize {
    let one = usize::try_from(header_list(limits)).unwrap_or(usize::MAX);
    one.max(HELD_SECTION_BYTES)
}

fn transport(listener: &ListenerPlan) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let silence = listener.keep_alive_timeout.saturating_add(MAX_SILENCE);
    transport
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .send_window(u64::from(SEND_WINDOW))
        .max_concurrent_bidi_streams(VarInt::from_u32(listener.max_concurrent_streams))
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS))
        .max_idle_timeout(IdleTimeout::try_from(silence).ok())
        // Datagrams of RFC 9221 have no use here.
        .datagram_receive_buffer_size(None);
    transport
}
