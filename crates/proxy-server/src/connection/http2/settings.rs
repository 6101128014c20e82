//! Settings of HTTP/2 connections, including the limits on their memory.

use h2::server::Builder;
use proxy_model::Limits;
use proxy_plan::ListenerPlan;

/// Bytes of one request body that may wait for a slow upstream.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Total size of a connection's unread request bodies, in bytes.
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Bytes of one response that may wait for the socket.
const SEND_BUFFER: usize = 64 * 1024;

/// Minimum size of the header list announced as the maximum, in bytes.
const MIN_HEADER_LIST_BYTES: u64 = 64 * 1024;

/// HPACK's overhead for a field, in bytes. [RFC 9113 §10.5.1]
const FIELD_OVERHEAD: u64 = 32;

/// Number of malformed streams of one connection before it is closed. [CVE-2025-8671]
const BROKEN_STREAMS: usize = 256;

pub(crate) fn builder(listener: &ListenerPlan, limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(listener.max_concurrent_streams)
        .max_header_list_size(header_list(limits))
        .max_send_buffer_size(SEND_BUFFER)
        // Streams reset before they were accepted. [CVE-2023-44487]
        .max_pending_accept_reset_streams(listener.max_stream_resets as usize)
        .max_local_error_reset_streams(Some(BROKEN_STREAMS))
        .enable_connect_protocol();
    builder
}

/// Maximum size of a header section of several frames, or of trailers, before decompression.
/// Huffman coding makes no text four times as long. [RFC 7541 §B]
pub(crate) fn max_section_bytes(limits: &Limits) -> usize {
    header_list(limits) as usize * 4
}

/// Announced maximum size of a header list, in bytes. It is above our own limits, because `h2`
/// itself would answer without a correlation ID.
pub(crate) fn header_list(limits: &Limits) -> u32 {
    let fields = u64::from(*limits.max_header_count).saturating_mul(FIELD_OVERHEAD);
    let most = limits.max_header_size_bytes.saturating_add(fields);
    let room = most.saturating_mul(2).max(MIN_HEADER_LIST_BYTES);
    u32::try_from(room).unwrap_or(u32::MAX)
}
