//! What can go wrong between the proxy and a target.

use crate::http2::Http2RequestError;
use proxy_clock::Timer;
use proxy_framing::FramingError;
use std::io;
use std::time::Duration;

/// Why no connection to a target could be made. Nothing of the request was sent.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The target's name has no address.
    #[error("no address is known for the target")]
    NoAddress,
    /// As many connections as the upstream allows are in use.
    #[error("all {max} connections are in use")]
    LimitReached {
        /// The upstream's `max-connections`.
        max: u32,
    },
    /// The connection was not there in time.
    #[error("no connection within {after:?}")]
    TimedOut {
        /// The timer: connecting, or the whole exchange.
        timer: Timer,
        /// The time that was allowed.
        after: Duration,
    },
    /// The operating system or the target refused.
    #[error("connect")]
    Io(#[source] io::Error),
    /// TLS could not be agreed on, or the certificate did not pass.
    #[error("tls handshake")]
    Tls(#[source] io::Error),
}

/// Why a request that was given to a connection has no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection had ended before anything was sent.
    #[error("the connection had ended before the request was sent")]
    UnsentRequest,
    /// The connection ended after something was sent and before a response came.
    #[error("the connection ended before a response came")]
    Closed(#[source] Option<io::Error>),
    /// The response was not HTTP, or not to be trusted.
    #[error("bad response: {}", .0.as_str())]
    BadResponse(FramingError),
    /// The request's body failed, so the request was given up.
    #[error("the request's body failed")]
    RequestBody,
    /// A deadline passed.
    #[error("{} after {after:?}", timer.operation())]
    TimedOut {
        /// Which one.
        timer: Timer,
        /// How long it was.
        after: Duration,
    },
    /// A request by HTTP/2 has no response.
    #[error("http/2")]
    Http2Request(#[source] Http2RequestError),
}
