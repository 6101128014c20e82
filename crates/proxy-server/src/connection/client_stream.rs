//! A client's byte stream: its socket, or TLS over it.

use crate::connection::client_socket::ClientSocket;
use crate::connection::tls_stream::ClientTlsStream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) enum ClientStream {
    Plain(ClientSocket),
    /// TLS over the socket.
    Tls(Box<ClientTlsStream>),
}

impl ClientStream {
    /// Ready when a read may return data; takes no buffer.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => stream.poll_readable(cx),
            Self::Tls(stream) => {
                let (socket, session) = stream.stream.get_ref();
                // Decrypted data makes no socket readable. An incomplete record does not count,
                // because its rest has to arrive.
                if !session.wants_read() {
                    return Poll::Ready(Ok(()));
                }
                socket.poll_readable(cx)
            }
        }
    }

    /// The socket for splicing, if the stream is plaintext over TCP.
    pub(crate) fn splices(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(stream) => stream.splices(),
            Self::Tls(_) => None,
        }
    }

    /// Makes drop reset the connection instead of closing it, with TLS without `close_notify`.
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
