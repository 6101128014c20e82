//! TLS over a client's socket, which ends as TLS is to end.

use crate::client_socket::ClientSocket;
use proxy_tls::say_goodbye;
use std::io::{self, Write};
use tokio_rustls::server::TlsStream;

/// A connection by TLS. Its client is told of its end when it is dropped.
#[derive(Debug)]
pub(crate) struct ClientTlsStream {
    pub(crate) stream: TlsStream<ClientSocket>,
    /// Whether it is to look cut off.
    torn: bool,
}

impl ClientTlsStream {
    pub(crate) fn new(stream: TlsStream<ClientSocket>) -> Self {
        Self {
            stream,
            torn: false,
        }
    }

    /// Has it cut off, not ended, once it is dropped.
    pub(crate) fn tear(&mut self) -> io::Result<()> {
        self.torn = true;
        self.stream.get_ref().0.tear()
    }
}

impl Drop for ClientTlsStream {
    fn drop(&mut self) {
        if !self.torn {
            let (carrier, session) = self.stream.get_mut();
            say_goodbye(session, &mut NonBlocking(carrier));
        }
    }
}

/// A socket that is not waited for.
struct NonBlocking<'c>(&'c ClientSocket);

impl Write for NonBlocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
