//! A client's connection over TCP or a Unix socket: the negotiation of TLS and of the HTTP version,
//! then requests over HTTP/1.x or HTTP/2, or a relay.

pub(crate) mod client_socket;
pub(crate) mod client_stream;
pub(crate) mod handshake;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod limit_problem;
pub(crate) mod linger;
pub(crate) mod negotiated;
pub(crate) mod overload;
pub(crate) mod preface;
pub(crate) mod proxy_protocol;
pub(crate) mod ready_connection;
pub(crate) mod relay;
pub(crate) mod settings;
pub(crate) mod timeout;
pub(crate) mod tls_stream;
