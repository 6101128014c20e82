//! A client's socket: TCP, or a Unix socket.

use rustix::net::sockopt::set_socket_linger;
use socket2::Socket;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A client's socket, without TLS.
#[derive(Debug)]
pub(crate) enum ClientSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ClientSocket {
    /// Registers a connected socket with the worker's runtime.
    pub(crate) fn connected(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        if socket.local_addr()?.is_unix() {
            return UnixStream::from_std(socket.into()).map(Self::Unix);
        }
        TcpStream::from_std(socket.into()).map(Self::Tcp)
    }

    /// Ready when a read may return data.
    #[inline]
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Waits until a read may return data.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(stream) => stream.readable().await,
        }
    }

    /// The address that the client connected to; `None` for a Unix socket.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    /// The socket for splicing; `None` for a Unix socket.
    pub(crate) fn splices(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Unix(_) => None,
        }
    }

    /// Makes drop reset the connection instead of closing it. Unix sockets have no reset.
    pub(crate) fn abort(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => Ok(set_socket_linger(stream, Some(Duration::ZERO))?),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Makes drop close the connection in order again, after [`Self::abort`].
    pub(crate) fn close_in_order(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => Ok(set_socket_linger(stream, None)?),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Writes as much as the socket accepts at once.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Copies available data without consuming it. Returns the number of bytes: 0 at the end.
    pub(crate) async fn peek(&self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.peek(room).await,
            Self::Unix(stream) => {
                let peek = || {
                    let flags = rustix::net::RecvFlags::PEEK;
                    let (count, _) = rustix::net::recv(stream, &mut *room, flags)?;
                    Ok(count)
                };
                stream.async_io(Interest::READABLE, peek).await
            }
        }
    }
}

impl AsyncRead for ClientSocket {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientSocket {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // TLS writes its records in this form. For a single piece, `send` costs the kernel less
        // than `writev`.
        if let [piece] = pieces {
            return self.poll_write(cx, piece);
        }
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
