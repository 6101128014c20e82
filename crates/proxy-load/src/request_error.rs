//! Why a request had no good answer.

use std::io::{self, ErrorKind};
use thiserror::Error;

/// Why a request had no good answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum RequestError {
    /// The proxy closed the connection with a request on it, or before one could be made.
    #[error("the proxy closed the connection")]
    Closed,
    /// An answer came that nobody had asked for.
    #[error("bytes came that were no answer")]
    Unasked,
    /// Any status but 200.
    #[error("status {0}")]
    Status(String),
    /// A body of another length than the upstream's, or none that could be told.
    #[error("a body that is not the upstream's")]
    Length,
    /// TLS came without the protocol that was asked for.
    #[error("the proxy does not speak HTTP/2")]
    NotHttp2,
    /// HTTP/2: the server ended the stream or the connection, with this code of RFC 9113 §7.
    #[error("HTTP/2 error code {0}")]
    Reset(u32),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(ErrorKind),
}

impl From<io::Error> for RequestError {
    fn from(cause: io::Error) -> Self {
        Self::Broken(cause.kind())
    }
}
