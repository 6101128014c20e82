//! Errors of requests.

use std::io::{self, ErrorKind};
use thiserror::Error;

/// The reason why a request has no valid response.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum RequestError {
    /// The proxy closed the connection with a request in flight, or before one could be sent.
    #[error("the proxy closed the connection")]
    Closed,
    /// A response arrived without a request.
    #[error("received bytes that are not a response")]
    Unasked,
    /// The status is not 200.
    #[error("status {0}")]
    Status(String),
    /// The body's length differs from the upstream's, or is unknown.
    #[error("a body that is not the upstream's")]
    Length,
    /// TLS did not negotiate HTTP/2.
    #[error("the proxy does not speak HTTP/2")]
    NotHttp2,
    /// The server reset the stream or the connection, with this code of RFC 9113 §7.
    #[error("HTTP/2 error code {0}")]
    Reset(u32),
    /// An I/O error of the connection.
    #[error("the connection broke: {0}")]
    Broken(ErrorKind),
}

impl From<io::Error> for RequestError {
    fn from(cause: io::Error) -> Self {
        Self::Broken(cause.kind())
    }
}
