//! Reading of the PROXY protocol header at the beginning of a connection.

use crate::connection::client_socket::ClientSocket;
use crate::connection::handshake::HandshakeError;
use proxy_framing::{ProxiedConnection, ProxyHeader, proxy_header};
use tokio::io::AsyncReadExt;

/// Upper bound on the length of a header, in bytes.
const MAX_PROXY_HEADER_BYTES: usize = 4352;

/// Reads exactly the header. Returns the ends of the client's connection in it, if there are any.
pub(crate) async fn read(
    stream: &mut ClientSocket,
) -> Result<Option<ProxiedConnection>, HandshakeError> {
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
        let (end, proxied) = match parsed {
            ProxyHeader::Incomplete => (taken + count, None),
            ProxyHeader::Whole { length, proxied } => (length, Some(proxied)),
            ProxyHeader::Malformed => return Err(HandshakeError::BadProxyHeader("no header")),
        };
        let part = seen.get_mut(taken..end).unwrap_or_default();
        stream.read_exact(part).await.map_err(HandshakeError::Io)?;
        taken = end;
        if let Some(proxied) = proxied {
            return Ok(proxied);
        }
    }
}
