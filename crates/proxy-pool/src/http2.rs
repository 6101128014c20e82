//! HTTP/2 towards targets: connections that carry many requests at once.
//!
//! A [`Http2Connection`](trunk::Trunk) is one connection, driven by a task of its own; a [`StreamSlot`] is one
//! request's place on it; a [`Http2Request`] is the request itself, which its own task sends and whose answer
//! it reads, so that a slow client slows nothing but its own stream.

mod connect_notify;
mod connection;
mod io;
mod keep_alive_ping;
mod pool;
mod request;
mod upload;

pub use connect_notify::Waiting;
pub use connection::StreamSlot;
pub use pool::{Checkout, Connecting, Http2Pool};
pub use request::{ExtendedConnect, Http2Request, Http2RequestError, UnsentRequest, call_tunnel};
