//! The response on its way: judged as it is read, then taken apart.

use super::dechunk::{self, Dechunk};
use super::head::{self, Extent};
use crate::fault::SendFault;
use crate::transport::Transport;
use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};
use proxy_framing::{Fault, HeadLimits, RequestKind, ResponseGuard, Scan, Stop};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

/// A read asks for at least so many bytes.
const LEAST_READ: usize = 8 * 1024;

/// A read asks for at most so many bytes, after others of half the size were filled.
const MOST_READ: usize = 512 * 1024;

/// What a target sends.
#[derive(Debug)]
pub(crate) struct Incoming {
    guard: ResponseGuard,
    /// Judged and not taken yet.
    unread: BytesMut,
    /// Bytes the next read asks for.
    appetite: usize,
    kind: RequestKind,
    heads_taken: u64,
    received: u64,
    body: Reading,
    keeps: bool,
}

/// What is left of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Head,
    Length(u64),
    Chunked(Dechunk),
    UntilClose,
}

impl Incoming {
    pub(crate) fn new(limits: HeadLimits) -> Self {
        Self {
            guard: ResponseGuard::new(limits),
            unread: BytesMut::new(),
            appetite: LEAST_READ,
            kind: RequestKind::Other,
            heads_taken: 0,
            received: 0,
            body: Reading::Length(0),
            keeps: true,
        }
    }

    /// A request of this kind is about to be sent.
    pub(crate) fn expect(&mut self, kind: RequestKind) {
        self.guard.expect(kind);
        self.kind = kind;
        self.received = 0;
        self.body = Reading::Head;
    }

    /// Bytes that came since the last request.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Whether the response is over.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        matches!(
            self.body,
            Reading::Length(0) | Reading::Chunked(Dechunk::End)
        )
    }

    /// Whether another request may follow.
    #[inline]
    pub(crate) fn is_reusable(&self) -> bool {
        self.keeps && self.is_over() && self.unread.is_empty()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.body {
            Reading::Length(left) => SizeHint::with_exact(left),
            Reading::Head | Reading::Chunked(_) | Reading::UntilClose => SizeHint::default(),
        }
    }

    /// What came behind a `101`.
    pub(crate) fn into_unread(self) -> Bytes {
        self.unread.freeze()
    }

    /// Whether the target has hung up, or said something unasked.
    pub(crate) fn poll_hang_up(cx: &mut Context<'_>, transport: &mut Transport) -> Poll<()> {
        let mut byte = [0];
        Pin::new(transport)
            .poll_read(cx, &mut ReadBuf::new(&mut byte))
            .map(drop)
    }

    /// Gives its buffer back until the next response.
    pub(crate) fn rest(&mut self) {
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
        }
        self.appetite = LEAST_READ;
    }

    /// The head of the response; `notice` gets those of 1xx responses that come before, as they came.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
        notice: &mut impl FnMut(&[u8]),
    ) -> Poll<Result<Response<()>, SendFault>> {
        loop {
            while self.heads_taken < self.guard.heads_seen() {
                let head = self.take_head().ok_or(BROKEN)?;
                let status = head::status(&head).ok_or(BROKEN)?;
                if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
                    // 100 answers an expectation that this proxy met by itself.
                    if status != StatusCode::CONTINUE {
                        notice(&head);
                    }
                    continue;
                }
                return Poll::Ready(self.begin_body(&head));
            }
            if ready!(self.poll_fill(cx, transport)).map_err(SendFault::from)? == 0 {
                let end = self.guard.eof().map_err(SendFault::BadResponse);
                return Poll::Ready(end.and(Err(SendFault::Closed(None))));
            }
        }
    }

    fn take_head(&mut self) -> Option<Bytes> {
        self.heads_taken += 1;
        let end = memchr::memmem::find(&self.unread, b"\r\n\r\n")? + 4;
        Some(self.unread.split_to(end).freeze())
    }

    fn begin_body(&mut self, bytes: &Bytes) -> Result<Response<()>, SendFault> {
        let head = head::read_response(bytes, self.kind).ok_or(BROKEN)?;
        self.keeps = head.keeps && head.extent != Extent::UntilClose && self.keeps;
        self.body = match head.extent {
            Extent::Length(length) => Reading::Length(length),
            Extent::Chunked => Reading::Chunked(Dechunk::Size),
            Extent::UntilClose => Reading::UntilClose,
        };
        Ok(head.response)
    }

    /// The next piece of the body, or its trailers. None at its end.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
    ) -> Poll<Option<Result<Frame<Bytes>, SendFault>>> {
        loop {
            if let Some(frame) = self.take_frame() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.is_over() {
                return Poll::Ready(None);
            }
            match ready!(self.poll_fill(cx, transport)) {
                Ok(0) => {
                    if let Err(fault) = self.guard.eof() {
                        return Poll::Ready(Some(Err(SendFault::BadResponse(fault))));
                    }
                    self.body = Reading::Length(0);
                }
                Ok(_) => {}
                Err(broken) => return Poll::Ready(Some(Err(broken.into()))),
            }
        }
    }

    fn take_frame(&mut self) -> Option<Frame<Bytes>> {
        match &mut self.body {
            Reading::Head => None,
            Reading::Length(left) => dechunk::take(&mut self.unread, left).map(Frame::data),
            Reading::Chunked(chunks) => {
                let frame = chunks.next(&mut self.unread);
                chunks.look_ahead(&mut self.unread);
                frame
            }
            Reading::UntilClose if self.unread.is_empty() => None,
            Reading::UntilClose => Some(Frame::data(self.unread.split().freeze())),
        }
    }

    /// Reads and judges. Gives the number of bytes read: 0 at the end of the stream.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
    ) -> Poll<Result<usize, Broken>> {
        let before = self.unread.len();
        if self.unread.capacity() - before < self.appetite / 2 {
            self.unread.reserve(self.appetite);
        }
        let room = self.unread.capacity() - before;
        let polled = poll_read_buf(Pin::new(transport), cx, &mut self.unread);
        let count = ready!(polled).map_err(Broken::Io)?;
        self.received += count as u64;
        self.adapt(count, room);
        self.judge(before).map_err(Broken::Fault)?;
        Poll::Ready(Ok(count))
    }

    /// Reads that fill their room are followed by larger ones.
    fn adapt(&mut self, count: usize, room: usize) {
        if count == room {
            self.appetite = (self.appetite * 2).min(MOST_READ);
        } else if count < self.appetite / 4 {
            self.appetite = (self.appetite / 2).max(LEAST_READ);
        }
    }

    /// Judges what stands in the buffer from `before` on. What comes behind a whole response makes
    /// the connection useless and the response no worse.
    fn judge(&mut self, before: usize) -> Result<(), Fault> {
        let fresh = self.unread.get(before..).unwrap_or_default();
        let Scan { accepted, stop } = self.guard.scan(fresh);
        match stop {
            None => {}
            Some(Stop::Upgrade) => self.guard.pass_through(),
            Some(Stop::Fault(Fault::UnexpectedData)) if accepted > 0 => {
                self.keeps = false;
                self.unread.truncate(before + accepted);
            }
            Some(Stop::Fault(fault)) => return Err(fault),
        }
        Ok(())
    }
}

/// Why nothing more can be read.
#[derive(Debug)]
enum Broken {
    Io(io::Error),
    Fault(Fault),
}

impl From<Broken> for SendFault {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Io(error) => Self::Closed(Some(error)),
            Broken::Fault(fault) => Self::BadResponse(fault),
        }
    }
}

/// The guard accepted what is no head: never seen, and never to be believed.
const BROKEN: SendFault = SendFault::BadResponse(Fault::BadStatusLine);
