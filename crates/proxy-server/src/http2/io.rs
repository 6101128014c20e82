//! The stream that `h2` reads frames from and writes frames to.

use super::session::{GOAWAY_FLUSH_TIMEOUT, Session};
use crate::client_stream::ClientStream;
use bytes::{Buf, Bytes};
use proxy_clock::Timer;
use proxy_framing::h2::WrittenFrames;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts what the client sends before `h2` sees it, knows when the client does not read, and ends
/// the connection so that the client hears the last words.
#[derive(Debug)]
pub(super) struct SessionIo {
    transport: ClientStream,
    session: Rc<Session>,
    /// What was read before the connection was known to speak HTTP/2.
    early: Bytes,
    /// What `h2` is to be given before anything else is read.
    passed: Bytes,
    /// What was written, as far as it tells of streams that `h2` refused.
    written: WrittenFrames,
    /// What is left of a notice to be written before anything else.
    notice: Bytes,
    /// Whether our side has been ended.
    ended: bool,
}

/// GOAWAY without an error, with the last stream that there can be. [RFC 9113 §6.8]
const GOAWAY_NOTICE: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\0";

impl SessionIo {
    pub(super) fn new(transport: ClientStream, session: Rc<Session>, early: Bytes) -> Self {
        Self {
            transport,
            session,
            early,
            passed: Bytes::new(),
            written: WrittenFrames::default(),
            notice: Bytes::new(),
            ended: false,
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.transport).poll_read(cx, buf);
        }
        let count = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early.split_to(count));
        Poll::Ready(Ok(()))
    }

    /// Ready when no notice is left to be written.
    fn poll_notice(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.notice.is_empty() {
            let written = ready!(Pin::new(&mut self.transport).poll_write(cx, &self.notice))?;
            self.notice.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when the socket has taken everything, and the notice that is to be given.
    fn poll_all_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.transport).poll_flush(cx))?;
        // `h2` has written all that it had: here one frame has ended and none begun.
        if self.session.notice.take() {
            self.notice = Bytes::from_static(GOAWAY_NOTICE);
        }
        if self.notice.is_empty() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_notice(cx))?;
        Pin::new(&mut self.transport).poll_flush(cx)
    }

    fn note(
        &mut self,
        polled: Poll<io::Result<usize>>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &polled {
            Poll::Pending => self.session.blocked(),
            Poll::Ready(Ok(bytes)) => {
                self.session.wrote(*bytes);
                self.look_at(*bytes, pieces);
            }
            Poll::Ready(Err(_)) => {}
        }
        polled
    }

    /// Looks at the first `bytes` of `pieces`, which were written.
    fn look_at(&mut self, bytes: usize, pieces: &[IoSlice<'_>]) {
        let mut left = bytes;
        for piece in pieces {
            let piece = piece.get(..left.min(piece.len())).unwrap_or_default();
            left -= piece.len();
            self.written
                .scan(piece, |frame| self.session.refused_streams.heard(frame));
        }
    }

    /// Gives `h2` what is to come before anything else.
    fn give_passed(&mut self, buf: &mut ReadBuf<'_>) {
        let count = self.passed.len().min(buf.remaining());
        buf.put_slice(&self.passed.split_to(count));
    }
}

impl AsyncRead for SessionIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        loop {
            if me.session.flood.get().is_some() {
                return Poll::Pending;
            }
            if !me.passed.is_empty() {
                me.give_passed(buf);
                return Poll::Ready(Ok(()));
            }
            let before = buf.filled().len();
            ready!(me.poll_fill(cx, buf))?;
            let fresh = buf.filled().get(before..).unwrap_or_default();
            if fresh.is_empty() {
                me.passed = me.session.meter.borrow_mut().take_held().into();
                if me.passed.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            match me.session.passes(fresh) {
                Ok(None) => return Poll::Ready(Ok(())),
                Ok(Some(instead)) => me.passed = instead.into(),
                // The connection's owner looks at it as soon as there is nothing more to read.
                Err(flood) => me.session.flood.set(Some(flood)),
            }
            buf.set_filled(before);
        }
    }
}

impl AsyncWrite for SessionIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        ready!(me.poll_notice(cx))?;
        let polled = Pin::new(&mut me.transport).poll_write(cx, bytes);
        me.note(polled, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        ready!(me.poll_notice(cx))?;
        let polled = Pin::new(&mut me.transport).poll_write_vectored(cx, pieces);
        me.note(polled, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let polled = me.poll_all_out(cx);
        match &polled {
            Poll::Pending => me.session.blocked(),
            Poll::Ready(Ok(())) => me.session.flushed(),
            Poll::Ready(Err(_)) => {}
        }
        polled
    }

    /// Ends our side, then reads on until the client has ended its own: closing a socket that holds
    /// unread bytes would reset it, and the reset may overtake what was said last. The session's
    /// deadline bounds it.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if !me.ended {
            ready!(Pin::new(&mut me.transport).poll_shutdown(cx))?;
            me.ended = true;
            me.session.ending.set(true);
            let Session {
                deadline, clock, ..
            } = &*me.session;
            deadline.start(clock, Timer::Linger, GOAWAY_FLUSH_TIMEOUT);
        }
        let mut scratch = [0; 2048];
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut me.transport).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
