//! Reading of the PROXY protocol header at the beginning of a connection.

use crate::connection::client_socket::ClientSocket;
use crate::connection::handshake::HandshakeError;
use proxy_framing::{ProxyHeader, proxy_header};
use std::net::SocketAddr;
use tokio::io::AsyncReadExt;

/// More than the longest header, in bytes.
const MAX_PROXY_HEADER_BYTES: usize = 4352;

/// Reads exactly the header. Returns the client's address and port in it, if there is one.
pub(crate) async fn read(stream: &mut ClientSocket) -> Result<Option<SocketAddr>, HandshakeError> {
    let mut seen = vec![0; MAX_PROXY_HEADER_BYTES];
    let mut taken = 0;
    loop {
        let room = seen.get_mut(taken..).unwrap_or_default();
        let count = stream.peek(room).await.map_err(HandshakeError::Io)?;
        if count == 0 {
            return Err(match taken {
                0 => HandshakeError::NothingSent,
                _ => HandshakeError::BadProxyHeader("half a header"),
            });
        }
        let parsed = proxy_header(seen.get(..taken + count).unwrap_or_default());
        let (end, client) = match parsed {
            ProxyHeader::Incomplete => (taken + count, None),
            ProxyHeader::Whole { length, client } => (length, Some(client)),
            ProxyHeader::Malformed => return Err(HandshakeError::BadProxyHeader("no header")),
        };
        let part = seen.get_mut(taken..end).unwrap_or_default();
        stream.read_exact(part).await.map_err(HandshakeError::Io)?;
        taken = end;
        if let Some(client) = client {
            return Ok(client);
        }
    }
}
