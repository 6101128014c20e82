//! TLS over a client's socket, with a proper close.

use crate::connection::client_socket::ClientSocket;
use proxy_tls::send_close_notify;
use std::io::{self, Write};
use tokio_rustls::server::TlsStream;

/// A TLS connection. Drop sends `close_notify`.
#[derive(Debug)]
pub(crate) struct ClientTlsStream {
    pub(crate) stream: TlsStream<ClientSocket>,
    /// Drop resets the connection, without `close_notify`.
    aborted: bool,
}

impl ClientTlsStream {
    pub(crate) fn new(stream: TlsStream<ClientSocket>) -> Self {
        Self {
            stream,
            aborted: false,
        }
    }

    /// Makes drop reset the connection, without `close_notify`.
    pub(crate) fn abort(&mut self) -> io::Result<()> {
        self.aborted = true;
        self.stream.get_ref().0.abort()
    }
}

impl Drop for ClientTlsStream {
    fn drop(&mut self) {
        if !self.aborted {
            let (socket, session) = self.stream.get_mut();
            send_close_notify(session, &mut NonBlocking(socket));
        }
    }
}

/// A socket used without waiting.
struct NonBlocking<'c>(&'c ClientSocket);

impl Write for NonBlocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
