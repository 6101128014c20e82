//! The I/O of `h2`: reads and writes frames.

use super::session::{GOAWAY_FLUSH_TIMEOUT, MAX_TURN_FRAMES, Session};
use crate::connection::client_stream::ClientStream;
use bytes::{Buf, Bytes};
use proxy_clock::Timer;
use proxy_framing::h2::WrittenFrames;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts the client's frames before `h2` reads them, detects clients that do not read, and closes
/// the connection so that the client receives the last frames.
#[derive(Debug)]
pub(super) struct SessionIo {
    transport: ClientStream,
    session: Rc<Session>,
    /// Input that was read before the version of HTTP was known.
    early: Bytes,
    /// Input for `h2` that precedes further reads.
    passed: Bytes,
    /// Bytes of `passed` for each turn of the connection.
    piece: usize,
    /// Output, scanned for streams that `h2` refused.
    written: WrittenFrames,
    /// The remainder of a notice, to be written before other output.
    notice: Bytes,
    /// Our side is closed; reads still wait for the client's end.
    ended: bool,
}

/// GOAWAY without an error, with the highest possible stream id. [RFC 9113 §6.8]
const GOAWAY_NOTICE: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\0";

impl SessionIo {
    pub(super) fn new(transport: ClientStream, session: Rc<Session>, early: Bytes) -> Self {
        Self {
            transport,
            session,
            early,
            passed: Bytes::new(),
            piece: 0,
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

    /// Ready when the notice is written.
    fn poll_notice(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.notice.is_empty() {
            let written = ready!(Pin::new(&mut self.transport).poll_write(cx, &self.notice))?;
            self.notice.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when all output, and the notice if one is due, is written.
    fn poll_all_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.transport).poll_flush(cx))?;
        // `h2` has written all its output, so this is a boundary between frames.
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
                self.scan_written(*bytes, pieces);
            }
            Poll::Ready(Err(_)) => {}
        }
        polled
    }

    /// Scans the first `bytes` of `pieces`, which were written.
    fn scan_written(&mut self, bytes: usize, pieces: &[IoSlice<'_>]) {
        let mut left = bytes;
        for piece in pieces {
            let piece = piece.get(..left.min(piece.len())).unwrap_or_default();
            left -= piece.len();
            self.written
                .scan(piece, |frame| self.session.refused_streams.record(frame));
        }
    }

    /// Sets input of this number of frames, to be read in pieces of at most [`MAX_TURN_FRAMES`] on average.
    fn set_passed(&mut self, input: Bytes, frames: usize) {
        self.piece = input.len() * MAX_TURN_FRAMES / frames.max(MAX_TURN_FRAMES);
        self.passed = input;
    }

    /// Copies a piece of the passed input into `buf`.
    fn give_passed(&mut self, buf: &mut ReadBuf<'_>) {
        let piece = self.piece.clamp(1, self.passed.len());
        if piece < self.passed.len() {
            self.session.end_turn();
        }
        let count = piece.min(buf.remaining());
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
            if me.session.is_turn_over() {
                cx.waker().wake_by_ref();
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
                let held = me.session.meter.borrow_mut().take_held();
                if held.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                me.set_passed(held.into(), 0);
                continue;
            }
            let passes = me.session.passes(fresh);
            let frames = me.session.count_frames();
            match passes {
                Ok(None) if frames <= MAX_TURN_FRAMES => return Poll::Ready(Ok(())),
                Ok(None) => {
                    let input = Bytes::copy_from_slice(fresh);
                    me.set_passed(input, frames);
                }
                Ok(Some(instead)) => me.set_passed(instead.into(), frames),
                // The connection's owner checks the flag after each turn.
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

    /// Closes our side, then reads until the client has closed its own: closing a socket with
    /// unread bytes would reset it, and the reset may overtake the last frames. Bounded by the
    /// session's deadline.
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
