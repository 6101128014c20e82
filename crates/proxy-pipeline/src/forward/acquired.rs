//! The connection of an attempt: an exclusive one, or a stream of a shared one.

use crate::upload::request_body::RequestBody;
use proxy_pool::{Connection, StreamSlot};

/// A connection to a target.
pub(super) enum UpstreamConnection {
    Http1(PooledConnection),
    Http2(StreamSlot),
}

/// An exclusive connection.
pub(super) struct PooledConnection {
    pub(super) connection: Connection<RequestBody>,
    /// True if the connection has served a request before.
    pub(super) reused: bool,
    /// True if it was available without waiting.
    pub(super) at_hand: bool,
}

/// A connection, and its target.
pub(super) struct Acquired {
    pub(super) connection: UpstreamConnection,
    /// The target; another address of the same DNS name if the first one did not connect.
    pub(super) target: u16,
}
