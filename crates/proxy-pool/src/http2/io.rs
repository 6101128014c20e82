//! The I/O of a shared connection.

use super::keep_alive_ping::KeepAlivePing;
use crate::transport::UpstreamStream;
use crate::unsent_frames::UnsentFrames;
use bytes::{Buf, Bytes};
use proxy_framing::h2::ResponseSections;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Records the arrival of data and a blocked socket, and checks the header sections of responses.
#[derive(Debug)]
pub(super) struct Http2Io {
    transport: UpstreamStream,
    keep_alive: Rc<KeepAlivePing>,
    unsent: Rc<UnsentFrames>,
    sections: ResponseSections,
    /// Received bytes that did not fit into the parser's buffer.
    unread: Bytes,
}

impl Http2Io {
    pub(super) fn new(
        transport: UpstreamStream,
        keep_alive: Rc<KeepAlivePing>,
        unsent: Rc<UnsentFrames>,
    ) -> Self {
        Self {
            transport,
            keep_alive,
            unsent,
            sections: ResponseSections::default(),
            unread: Bytes::new(),
        }
    }

    /// Copies received bytes to `buf`, as far as there is room.
    fn read_unread(&mut self, buf: &mut ReadBuf<'_>) {
        let unread = self
            .unread
            .split_to(self.unread.remaining().min(buf.remaining()));
        buf.put_slice(&unread);
    }

    /// Records whether the socket accepts bytes.
    fn note(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &polled {
            Poll::Pending => self.unsent.block(),
            Poll::Ready(_) => self.unsent.unblock(),
        };
        polled
    }
}

impl AsyncRead for Http2Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if !me.unread.is_empty() {
            me.read_unread(buf);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        loop {
            let read = ready!(Pin::new(&mut me.transport).poll_read(cx, buf));
            me.keep_alive.received();
            read?;
            let fresh = buf.filled().get(before..).unwrap_or_default();
            if fresh.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let Some(replaced) = me.sections.pass(fresh) else {
                return Poll::Ready(Ok(()));
            };
            buf.set_filled(before);
            me.unread = replaced.into();
            me.read_unread(buf);
            // An empty read would mean the end of the connection.
            if before < buf.filled().len() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Http2Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let polled = Pin::new(&mut me.transport).poll_write(cx, bytes);
        me.note(polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let polled = Pin::new(&mut me.transport).poll_write_vectored(cx, pieces);
        me.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let polled = Pin::new(&mut me.transport).poll_flush(cx);
        match &polled {
            Poll::Pending => {
                me.unsent.block();
            }
            Poll::Ready(Ok(())) => me.unsent.clear(),
            Poll::Ready(Err(_)) => {}
        }
        polled
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}
