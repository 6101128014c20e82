//! The I/O of a shared connection.

use super::keep_alive_ping::KeepAlivePing;
use crate::upstream_stream::UpstreamStream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Records when data arrives.
#[derive(Debug)]
pub(super) struct Http2Io {
    transport: UpstreamStream,
    keep_alive: Rc<KeepAlivePing>,
}

impl Http2Io {
    pub(super) fn new(transport: UpstreamStream, keep_alive: Rc<KeepAlivePing>) -> Self {
        Self {
            transport,
            keep_alive,
        }
    }
}

impl AsyncRead for Http2Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let read = ready!(Pin::new(&mut me.transport).poll_read(cx, buf));
        me.keep_alive.received();
        Poll::Ready(read)
    }
}

impl AsyncWrite for Http2Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().transport).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().transport).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}
