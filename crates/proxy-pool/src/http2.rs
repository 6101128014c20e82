//! HTTP/2 to targets: connections that carry many requests at once.
//!
//! An [`Http2Connection`](connection::Http2Connection) is driven by its own task; a [`StreamSlot`]
//! is a request's place on it; an [`Http2Request`] is the request itself, sent and read by the
//! request's own task, so that a slow client delays only its own stream.

mod connect_notify;
pub(crate) mod connection;
mod io;
mod keep_alive_ping;
mod pool;
mod request;
mod tunnel;
mod upload;

pub use connect_notify::Waiting;
pub use connection::StreamSlot;
pub use pool::{Checkout, Connecting, Http2Pool, OpenConnections};
pub use request::{ExtendedConnectResponse, Http2Request, RejectedRequest, extended_connect};
pub use tunnel::Tunnel;
