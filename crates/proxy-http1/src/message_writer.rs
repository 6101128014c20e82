//! Sending of messages: a head, followed by the body as it arrives.

use crate::splice::{Pipe, SpliceFrom, SpliceTo};
use crate::{buffer_pool, fields};
use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING};
use http_body::Body;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Maximum size of data that is copied behind the head instead of written with a vectored write.
const COPY_MAX_BYTES: usize = 2048;

/// Minimum number of buffered bytes that are written before the body is polled again.
const WRITE_AT_BYTES: usize = 16 * 1024;
/// Maximum number of pieces of a body in one poll, before other tasks have their turn: pieces may have
/// a single byte each. Twice what an HTTP/2 client's connection reads in a turn, so that the upload keeps up.
pub const MAX_TURN_PIECES: u32 = 128;

/// Minimum remainder of a body for splicing; for less, a pipe costs more than it saves.
const SPLICE_MIN_BYTES: u64 = 96 * 1024;

/// Framing in which a body is sent. [RFC 9112 §6]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Unchanged, with exactly this number of bytes.
    Length(u64),
    /// In chunks.
    Chunked {
        /// Whether trailers follow the last chunk.
        trailers: bool,
    },
    /// Unchanged, until the connection closes.
    UntilClose,
}

/// Bytes to be written, and the body that provides more.
#[derive(Debug)]
pub struct MessageWriter<B> {
    /// Heads, chunk lines and small pieces of data; written up to `start`.
    text: Vec<u8>,
    start: usize,
    /// Data to be written after `text`, without copying it.
    piece: Bytes,
    /// Spliced data, written first: the pipe is filled only when nothing else is waiting.
    pipe: Option<Pipe>,
    /// Set if the line break after the chunk in `piece` is still to be written.
    owes_line_end: bool,
    body: Option<Upload<B>>,
    unflushed: bool,
    state: WriteState,
    sent: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WriteState {
    #[default]
    Open,
    /// The body has failed; earlier bytes are still written.
    Cut,
    /// The peer has closed its reading side.
    Deaf,
}

#[derive(Debug)]
struct Upload<B> {
    body: B,
    /// Framing, with the remaining length if known.
    framing: Framing,
    manner: CopyMode,
}

/// How a body's bytes are transferred between two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyMode {
    /// By reading and writing, until splicing is worthwhile.
    Undecided,
    Spliced,
    /// By reading and writing to the end.
    Copied,
}

/// Reason why the remainder of a message cannot be sent.
#[derive(Debug)]
pub enum WriteError {
    /// The body failed, or its length differs from the announced one.
    Body,
    /// Writing to the connection failed.
    Io(io::Error),
}

/// The body failed, or its length differs from the announced one.
struct Cut;

impl<B> Default for MessageWriter<B> {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            start: 0,
            piece: Bytes::new(),
            pipe: None,
            owes_line_end: false,
            body: None,
            unflushed: false,
            state: WriteState::Open,
            sent: 0,
        }
    }
}

impl<B> MessageWriter<B> {
    /// Buffer for heads, which are written after all waiting data.
    #[inline]
    pub fn text(&mut self) -> &mut Vec<u8> {
        if self.text.capacity() == 0 {
            self.text = buffer_pool::text();
        }
        &mut self.text
    }

    /// Starts a message: resets the byte count, and sends `body` after the head in [`Self::text`].
    pub fn begin(&mut self, body: Option<(B, Framing)>) {
        self.sent = 0;
        self.body = body.map(|(body, framing)| Upload {
            body,
            framing,
            manner: CopyMode::Undecided,
        });
    }

    /// The body that is being sent.
    pub fn body_mut(&mut self) -> Option<&mut B> {
        self.body.as_mut().map(|upload| &mut upload.body)
    }

    /// Returns true if all bytes are written.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.body.is_none() && !self.is_blocked() && self.state == WriteState::Open
    }

    /// Returns true if bytes wait until the peer accepts them.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.has_bytes() || self.unflushed
    }

    /// Returns true if the peer has closed its reading side; it may still send data.
    pub fn is_write_closed(&self) -> bool {
        self.state == WriteState::Deaf
    }

    /// Number of bytes written since [`Self::begin`].
    pub fn sent(&self) -> u64 {
        self.sent
    }

    fn has_bytes(&self) -> bool {
        self.start < self.text.len() || !self.piece.is_empty() || self.pipe.is_some()
    }

    /// Drops unwritten bytes after a write error. The peer may have sent data before it closed, so
    /// reading decides how the exchange ends.
    fn forget(&mut self) {
        self.state = WriteState::Deaf;
        self.text.clear();
        self.start = 0;
        self.piece = Bytes::new();
        self.pipe = None;
        self.body = None;
        self.unflushed = false;
    }

    fn wrote(&mut self, count: usize) {
        self.sent += count as u64;
        if let Some(pipe) = &self.pipe {
            if pipe.is_empty() {
                self.pipe = None;
            }
            return;
        }
        let text_length = count.min(self.text.len() - self.start);
        self.start += text_length;
        self.piece.advance(count - text_length);
        if self.piece.is_empty() {
            // Dropped at once, so that the reader can reuse the buffer if this was the last
            // reference.
            self.piece = Bytes::new();
        }
        if self.start == self.text.len() {
            buffer_pool::recycle_text(std::mem::take(&mut self.text));
            self.start = 0;
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut (impl AsyncWrite + SpliceTo + Unpin),
    ) -> Poll<io::Result<usize>> {
        if let Some(pipe) = &mut self.pipe {
            return to.poll_splice(cx, pipe);
        }
        let text = self.text.get(self.start..).unwrap_or_default();
        let to = Pin::new(to);
        match (text.is_empty(), self.piece.is_empty()) {
            (_, true) => to.poll_write(cx, text),
            (true, false) => to.poll_write(cx, &self.piece),
            (false, false) => {
                let pieces = [IoSlice::new(text), IoSlice::new(&self.piece)];
                to.poll_write_vectored(cx, &pieces)
            }
        }
    }
}

impl<B: Body<Data = Bytes> + SpliceFrom + Unpin> MessageWriter<B> {
    /// Writes as much as possible. Ready when everything is written, or when the peer has closed
    /// its reading side.
    ///
    /// # Errors
    /// [`WriteError`], after which the connection is unusable.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut (impl AsyncWrite + SpliceTo + Unpin),
    ) -> Poll<Result<(), WriteError>> {
        let mut left_pieces = MAX_TURN_PIECES;
        loop {
            if self.body.is_some() {
                let gathered = if self.may_splice(to) {
                    self.splice(cx, &mut left_pieces)
                } else {
                    self.gather(cx, &mut left_pieces)
                };
                if gathered.is_err() {
                    self.state = WriteState::Cut;
                    self.body = None;
                }
            }
            if !self.has_bytes() {
                if self.unflushed {
                    ready!(Pin::new(&mut *to).poll_flush(cx)).map_err(WriteError::Io)?;
                    self.unflushed = false;
                }
                if left_pieces == 0 && self.body.is_some() {
                    cx.waker().wake_by_ref();
                }
                return match (self.state, &self.body) {
                    (WriteState::Cut, _) => Poll::Ready(Err(WriteError::Body)),
                    (WriteState::Open | WriteState::Deaf, Some(_)) => Poll::Pending,
                    (WriteState::Open | WriteState::Deaf, None) => Poll::Ready(Ok(())),
                };
            }
            match ready!(self.poll_write(cx, to)) {
                Ok(0) => return Poll::Ready(Err(WriteError::Io(io::ErrorKind::WriteZero.into()))),
                Ok(count) => self.wrote(count),
                Err(error) if is_hang_up(&error) => {
                    self.forget();
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(WriteError::Io(error))),
            }
            self.unflushed = true;
        }
    }

    /// Returns true if the next bytes of the body need no processing, and are worth a pipe.
    fn may_splice(&self, to: &impl SpliceTo) -> bool {
        let Some(upload) = &self.body else {
            return false;
        };
        let is_worth_it = match (upload.manner, upload.framing) {
            (CopyMode::Undecided, Framing::Length(left)) => SPLICE_MIN_BYTES <= left,
            (CopyMode::Spliced, Framing::Length(_)) => true,
            (CopyMode::Copied, _) | (_, Framing::Chunked { .. } | Framing::UntilClose) => false,
        };
        is_worth_it && !self.has_bytes() && to.can_splice() && upload.body.can_splice()
    }

    /// Moves available bytes of the body into a pipe. Nothing else may be waiting to be written.
    fn splice(&mut self, cx: &mut Context<'_>, left_pieces: &mut u32) -> Result<(), Cut> {
        let (Some(upload), Some(mut pipe)) = (&mut self.body, Pipe::take()) else {
            return self.gather(cx, left_pieces);
        };
        let Framing::Length(left) = &mut upload.framing else {
            return self.gather(cx, left_pieces);
        };
        match upload.body.poll_splice(cx, &mut pipe, *left) {
            Poll::Pending => upload.manner = CopyMode::Spliced,
            Poll::Ready(None) => {
                upload.manner = CopyMode::Copied;
                return self.gather(cx, left_pieces);
            }
            Poll::Ready(Some(count)) => {
                upload.manner = CopyMode::Spliced;
                *left = left.checked_sub(count as u64).ok_or(Cut)?;
                let is_last = *left == 0;
                self.pipe = Some(pipe);
                if is_last {
                    return self.end(None);
                }
            }
        }
        Ok(())
    }

    /// Buffers available bytes of the body, up to [`WRITE_AT_BYTES`].
    fn gather(&mut self, cx: &mut Context<'_>, left_pieces: &mut u32) -> Result<(), Cut> {
        if self.owes_line_end && self.piece.is_empty() {
            self.text().extend_from_slice(b"\r\n");
            self.owes_line_end = false;
        }
        while self.piece.is_empty()
            && self.pipe.is_none()
            && self.text.len() < WRITE_AT_BYTES
            && 0 < *left_pieces
            && let Some(upload) = &mut self.body
            && let Poll::Ready(frame) = Pin::new(&mut upload.body).poll_frame(cx)
        {
            *left_pieces -= 1;
            let Some(frame) = frame else {
                self.end(None)?;
                break;
            };
            match frame.map_err(|_| Cut)?.into_data() {
                Ok(data) => self.take(data)?,
                Err(frame) => self.end(frame.into_trailers().ok())?,
            }
        }
        Ok(())
    }

    fn take(&mut self, data: Bytes) -> Result<(), Cut> {
        let Some(Upload { body, framing, .. }) = &mut self.body else {
            return Ok(());
        };
        let is_last = body.is_end_stream();
        match framing {
            Framing::Length(left) => {
                let rest = left.checked_sub(data.len() as u64);
                *left = rest.ok_or(Cut)?;
            }
            Framing::Chunked { .. } if !data.is_empty() => {
                // Writing to a Vec never fails.
                write!(self.text(), "{:x}\r\n", data.len()).unwrap_or_default();
                self.owes_line_end = true;
            }
            Framing::Chunked { .. } | Framing::UntilClose => {}
        }
        if data.len() <= COPY_MAX_BYTES {
            self.text().extend_from_slice(&data);
            if std::mem::take(&mut self.owes_line_end) {
                self.text().extend_from_slice(b"\r\n");
            }
        } else {
            self.piece = data;
        }
        if is_last && !self.owes_line_end {
            return self.end(None);
        }
        Ok(())
    }

    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<(), Cut> {
        match self.body.take().map(|upload| upload.framing) {
            Some(Framing::Length(0) | Framing::UntilClose) | None => Ok(()),
            Some(Framing::Length(_)) => Err(Cut),
            Some(Framing::Chunked { trailers: wanted }) => {
                let text = self.text();
                text.extend_from_slice(b"0\r\n");
                if let Some(trailers) = trailers.filter(|_| wanted) {
                    write_trailers(trailers, text);
                }
                text.extend_from_slice(b"\r\n");
                Ok(())
            }
        }
    }
}

/// Writes trailers, leaving out fields that are not permitted in them. [RFC 9110 §6.5.1]
fn write_trailers(mut trailers: HeaderMap, out: &mut Vec<u8>) {
    for name in [CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING] {
        trailers.remove(name);
    }
    fields::write(&trailers, out);
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use http_body::Frame;
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Wake, Waker};

    const LENGTH: usize = 64 * 1024;

    /// A body of these pieces, the last one first.
    struct Pieces(Vec<Bytes>);

    /// Whether the waker was called.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.get_mut().0.pop().map(|piece| Ok(Frame::data(piece))))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_empty()
        }
    }

    impl SpliceFrom for Pieces {
        fn can_splice(&self) -> bool {
            false
        }

        fn poll_splice(
            &mut self,
            _: &mut Context<'_>,
            _: &mut Pipe,
            _: u64,
        ) -> Poll<Option<usize>> {
            Poll::Ready(None)
        }
    }

    impl SpliceTo for tokio::io::Sink {
        fn can_splice(&self) -> bool {
            false
        }

        fn poll_splice(&mut self, _: &mut Context<'_>, _: &mut Pipe) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
        }
    }

    #[test]
    fn written_bytes_are_released() {
        let mut buffer = BytesMut::zeroed(LENGTH);
        let place = buffer.as_ptr();
        let body = Pieces(vec![buffer.split().freeze()]);
        let mut outgoing = MessageWriter::default();
        outgoing.begin(Some((body, Framing::Length(LENGTH as u64))));
        let cx = &mut Context::from_waker(Waker::noop());

        let written = outgoing.poll(cx, &mut tokio::io::sink());

        assert!(matches!(written, Poll::Ready(Ok(()))));
        assert_eq!(outgoing.sent(), LENGTH as u64);
        buffer.reserve(LENGTH);
        assert_eq!(buffer.as_ptr(), place);
    }

    #[test]
    fn a_body_in_many_pieces_lets_other_tasks_run() {
        let body = Pieces(vec![Bytes::from_static(b"x"); 3 * MAX_TURN_PIECES as usize]);
        let mut outgoing = MessageWriter::default();
        outgoing.begin(Some((body, Framing::UntilClose)));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = &mut Context::from_waker(&waker);

        let written = outgoing.poll(cx, &mut tokio::io::sink());

        assert!(written.is_pending());
        assert_eq!(outgoing.sent(), u64::from(MAX_TURN_PIECES));
        assert!(woken.0.load(Ordering::Relaxed));
        let mut polls = 1..10;
        assert!(polls.any(|_| outgoing.poll(cx, &mut tokio::io::sink()).is_ready()));
        assert_eq!(outgoing.sent(), 3 * u64::from(MAX_TURN_PIECES));
    }
}
