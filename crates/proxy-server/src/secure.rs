//! TLS over a client's socket, which ends as TLS is to end.

use crate::carrier::Carrier;
use proxy_tls::say_goodbye;
use std::io::{self, Write};
use tokio_rustls::server::TlsStream;

/// A connection by TLS. Its client is told of its end when it is dropped.
#[derive(Debug)]
pub(crate) struct Secure {
    pub(crate) stream: TlsStream<Carrier>,
    /// Whether it is to look cut off.
    torn: bool,
}

impl Secure {
    pub(crate) fn new(stream: TlsStream<Carrier>) -> Self {
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

impl Drop for Secure {
    fn drop(&mut self) {
        if !self.torn {
            let (carrier, session) = self.stream.get_mut();
            say_goodbye(session, &mut AtOnce(carrier));
        }
    }
}

/// A socket that is not waited for.
struct AtOnce<'c>(&'c Carrier);

impl Write for AtOnce<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
