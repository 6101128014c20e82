//! The byte stream to a target: TCP, TLS, or a stream of HTTP/2.

use super::stream_pair::StreamPair;
use super::tls_stream::UpstreamTlsStream;
use crate::error::ConnectError;
use proxy_http1::{Pipe, SpliceTo};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A byte stream to a target.
#[derive(Debug)]
pub enum UpstreamStream {
    /// Plain TCP.
    Tcp(TcpStream),
    /// TLS over TCP.
    Tls(Box<UpstreamTlsStream>),
    /// A tunnel through a shared connection.
    Stream(Box<StreamPair>),
}

impl UpstreamStream {
    fn speaks_http2(&self) -> bool {
        match self {
            Self::Tcp(_) => true,
            Self::Tls(stream) => stream.0.get_ref().1.alpn_protocol() == Some(b"h2"),
            Self::Stream(_) => false,
        }
    }

    /// Checks that HTTP/2 may be used: by configuration without TLS, by ALPN with TLS.
    ///
    /// # Errors
    /// [`ConnectError::Tls`] if the target did not agree to HTTP/2.
    pub fn check_http2(&self) -> Result<(), ConnectError> {
        if self.speaks_http2() {
            return Ok(());
        }
        let error = io::Error::other("the target did not agree to HTTP/2");
        Err(ConnectError::Tls(error))
    }

    /// Makes drop reset the connection instead of closing it. A stream of a shared connection is
    /// still closed.
    ///
    /// # Errors
    /// Errors of setting a socket option.
    pub fn abort(&self) -> io::Result<()> {
        let socket = match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream.0.get_ref().0,
            Self::Stream(_) => return Ok(()),
        };
        Ok(set_socket_linger(socket, Some(Duration::ZERO))?)
    }
}

impl AsyncRead for UpstreamStream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(&mut stream.0).poll_read(cx, buf),
            Self::Stream(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for UpstreamStream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(&mut stream.0).poll_write(cx, bytes),
            Self::Stream(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Self::Tls(stream) => Pin::new(&mut stream.0).poll_write_vectored(cx, pieces),
            Self::Stream(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(&mut stream.0).poll_flush(cx),
            Self::Stream(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(&mut stream.0).poll_shutdown(cx),
            Self::Stream(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl SpliceTo for UpstreamStream {
    fn can_splice(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    fn poll_splice(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => pipe.poll_drain(cx, stream),
            Self::Tls(_) | Self::Stream(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }
}
