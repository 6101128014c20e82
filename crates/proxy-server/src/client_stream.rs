//! What carries a client's bytes: its socket, or TLS over it.

use crate::client_socket::ClientSocket;
use crate::tls_stream::ClientTlsStream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A byte stream from a client.
#[derive(Debug)]
pub(crate) enum ClientStream {
    /// The socket as it is.
    Plain(ClientSocket),
    /// TLS over it.
    Tls(Box<ClientTlsStream>),
}

impl ClientStream {
    /// Ready when there may be something to read, which needs no buffer to be read into.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => stream.poll_readable(cx),
            Self::Tls(stream) => {
                let (socket, session) = stream.stream.get_ref();
                // What is decrypted already makes no socket readable. Half a record does not count:
                // its other half has to come.
                if !session.wants_read() {
                    return Poll::Ready(Ok(()));
                }
                socket.poll_readable(cx)
            }
        }
    }

    /// The socket into which a pipe can be emptied, if the bytes go as they are.
    pub(crate) fn splices(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(stream) => stream.splices(),
            Self::Tls(_) => None,
        }
    }

    /// Has the connection cut off, not ended, once it is dropped: by a reset, and where there is TLS
    /// without its last word.
    pub(crate) fn abort(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.abort(),
            Self::Tls(stream) => stream.abort(),
        }
    }
}

impl AsyncRead for ClientStream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(&mut stream.stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientStream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(&mut stream.stream).poll_write(cx, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Self::Tls(stream) => Pin::new(&mut stream.stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(&mut stream.stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(&mut stream.stream).poll_shutdown(cx),
        }
    }
}
