//! The outcome of a negotiation: the version of HTTP, and the stream it is spoken over.

use crate::connection::client_socket::ClientSocket;
use crate::connection::client_stream::ClientStream;
use bytes::Bytes;
use proxy_pipeline::TlsSession;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    Http1,
    Http2,
}

/// A connection with a known version of HTTP.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) version: HttpVersion,
    pub(crate) session: Option<TlsSession>,
    pub(crate) transport: ClientStream,
    /// The server name of a TLS handshake that is passed through.
    pub(crate) server_name: Option<Box<str>>,
    /// Input that was read for the detection.
    pub(crate) early: Bytes,
}

impl Negotiated {
    /// HTTP/1.x, without TLS.
    pub(crate) fn plain_http1(stream: ClientSocket) -> Self {
        Self {
            version: HttpVersion::Http1,
            session: None,
            server_name: None,
            transport: ClientStream::Plain(stream),
            early: Bytes::new(),
        }
    }
}
