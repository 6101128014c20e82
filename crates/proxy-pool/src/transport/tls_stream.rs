//! TLS over a target's socket, with a proper close.

use proxy_tls::send_close_notify;
use std::io::{self, Write};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A TLS connection. Drop sends `close_notify`.
#[derive(Debug)]
pub struct UpstreamTlsStream(pub(crate) TlsStream<TcpStream>);

impl Drop for UpstreamTlsStream {
    fn drop(&mut self) {
        let (socket, session) = self.0.get_mut();
        send_close_notify(session, &mut NonBlocking(socket));
    }
}

/// Writes to a socket without waiting.
struct NonBlocking<'s>(&'s TcpStream);

impl Write for NonBlocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
