//! Byte streams to targets: sockets, TLS, and streams of HTTP/2 connections.

mod stream_pair;
mod tls_stream;
mod upstream_stream;

pub use stream_pair::StreamPair;
pub use tls_stream::UpstreamTlsStream;
pub use upstream_stream::UpstreamStream;
