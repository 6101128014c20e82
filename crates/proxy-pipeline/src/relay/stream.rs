//! The two sides of a relayed connection.

use proxy_pool::UpstreamStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// One side of a relayed connection.
pub trait RelayStream: AsyncRead + AsyncWrite + Unpin {
    /// The socket for splicing, if bytes pass through it unchanged.
    fn splices(&self) -> Option<&TcpStream>;

    /// Makes drop reset the connection.
    fn abort(&mut self);
}

impl RelayStream for UpstreamStream {
    fn splices(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(_) | Self::Stream(_) => None,
        }
    }

    fn abort(&mut self) {
        // If the socket refuses the option, drop closes it in order.
        Self::abort(self).unwrap_or_default();
    }
}
