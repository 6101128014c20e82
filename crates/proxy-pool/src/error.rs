//! Errors of connections to a target.

use h2::Reason;
use proxy_clock::Timer;
use proxy_framing::FramingError;
use std::io;
use std::time::Duration;

/// The reason why no connection was established. No byte of the request was sent.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The target's name has no address.
    #[error("no address is known for the target")]
    NoAddress,
    /// The upstream's connection limit is reached.
    #[error("all {max} connections are in use")]
    LimitReached {
        /// The upstream's `max-connections`.
        max: u32,
    },
    /// The process or the system has no file descriptor left.
    #[error("no file descriptor is left: {0}")]
    NoDescriptor(#[source] io::Error),
    /// The connection was not established in time.
    #[error("no connection within {after:?}")]
    TimedOut {
        /// The timer: connecting, or the whole exchange.
        timer: Timer,
        /// Configured timeout.
        after: Duration,
    },
    /// An error of the operating system, or a refusal by the target.
    #[error("connect")]
    Io(#[source] io::Error),
    /// The TLS handshake failed, or the certificate was rejected.
    #[error("tls handshake")]
    Tls(#[source] io::Error),
}

/// The reason why a request on a connection has no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection had ended before anything was sent.
    #[error("the connection had ended before the request was sent")]
    UnsentRequest,
    /// The connection ended after a part was sent and before a response arrived.
    #[error("the connection ended before a response came")]
    Closed(#[source] Option<io::Error>),
    /// The connection ended within the head of the response.
    #[error("the connection ended within the response's head")]
    BrokenHead,
    /// The response was malformed.
    #[error("bad response: {}", .0.as_str())]
    BadResponse(FramingError),
    /// The request's body failed, so the request was aborted.
    #[error("the request's body failed")]
    RequestBody,
    /// A timer expired.
    #[error("{} after {after:?}", timer.operation())]
    TimedOut {
        /// Timer that expired.
        timer: Timer,
        /// Configured timeout.
        after: Duration,
    },
    /// An HTTP/2 request failed.
    #[error("http/2")]
    Http2Request(#[source] Http2RequestError),
}

/// The reason why an HTTP/2 request has no response.
#[derive(Debug, thiserror::Error)]
pub enum Http2RequestError {
    /// The connection accepts no more requests, or the target has not processed this one: any
    /// method may be retried.
    #[error("the target has not looked at the request")]
    Unprocessed(#[source] h2::Error),
    /// The connection ended, or the target reset the stream.
    #[error("{0}")]
    Broken(#[source] h2::Error),
    /// The request's body failed.
    #[error("the request's body failed")]
    RequestBody,
    /// The target sent too many interim responses.
    #[error("too many informational responses")]
    TooManyInformational,
    /// The target sent a 101, which HTTP/2 does not have. [RFC 9113 §8.6]
    #[error("a 101 over HTTP/2")]
    UnaskedUpgrade,
}

impl Http2RequestError {
    /// Returns true if the target ends the connection in good order, and has not processed the
    /// request: `GOAWAY` with `NO_ERROR`. [RFC 9113 §6.8]
    #[must_use]
    pub fn is_graceful_close(&self) -> bool {
        let Self::Unprocessed(error) = self else {
            return false;
        };
        error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
    }
}

impl From<h2::Error> for Http2RequestError {
    fn from(error: h2::Error) -> Self {
        let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
        if error.is_remote() && (refused || error.is_go_away()) {
            return Self::Unprocessed(error);
        }
        Self::Broken(error)
    }
}
