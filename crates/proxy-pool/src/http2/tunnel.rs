//! A connection to a target after a protocol switch.

use super::connection::StreamSlot;
use crate::transport::UpstreamStream;
use bytes::Bytes;

/// A connection after `101 Switching Protocols`.
#[derive(Debug)]
pub struct Tunnel {
    /// The stream, now without HTTP.
    pub transport: UpstreamStream,
    /// Bytes that the target sent after its response.
    pub early: Bytes,
    /// The slot of a stream of a shared HTTP/2 connection.
    pub stream_slot: Option<StreamSlot>,
}
