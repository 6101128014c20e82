//! The connection of an attempt: an exclusive one, or a stream of a shared one.

use crate::upload::request_body::RequestBody;
use proxy_pool::{Connection, StreamSlot};

pub(super) enum UpstreamConnection {
    Http1(PooledConnection),
    Http2(StreamSlot),
}

/// An exclusive connection.
pub(super) struct PooledConnection {
    pub(super) connection: Connection<RequestBody>,
    /// Has served a request before: the target may be closing it.
    pub(super) reused: bool,
    /// Was available without waiting.
    pub(super) at_hand: bool,
}

pub(super) struct Acquired {
    pub(super) connection: UpstreamConnection,
    /// The target; another address of the same DNS name if the first one did not connect.
    pub(super) target: u16,
}
