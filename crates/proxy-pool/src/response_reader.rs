//! The response reader of an HTTP/1.1 connection: validates input on arrival, then parses it.

use crate::error::SendError;
use crate::transport::UpstreamStream;
use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};
use proxy_framing::{FramingError, HeadLimits, Lines, RequestKind, ResponseValidator, Scan, Stop};
use proxy_http1::{
    self as http1, BodyDecoder, BodyLength, Head, Pipe, ReadStrategy, VerbatimFields,
    read_response, read_verbatim,
};
use std::io;
use std::task::{Context, Poll, ready};

/// Maximum size of a read, in bytes.
const MAX_READ_BYTES: usize = 256 * 1024;

/// The response to a request that is sent.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedResponse {
    /// Kind of the request.
    pub to: RequestKind,
    /// True if its fields are neither read nor edited, so that its map may omit them.
    pub is_verbatim: bool,
}

/// A response head, with its fields if they are not in its map.
pub(crate) type AnswerHead = Response<Option<VerbatimFields>>;

#[derive(Debug)]
pub(crate) struct ResponseReader {
    guard: ResponseValidator,
    /// Validated and unconsumed input.
    unread: BytesMut,
    /// Line positions of the head at the beginning of `unread`, as recorded by the validator.
    lines: Lines,
    strategy: ReadStrategy,
    expected: ExpectedResponse,
    heads_taken: u64,
    received: u64,
    /// The head of the current response until it is taken. Not returned by value, because it is
    /// large.
    answer: AnswerHead,
    /// `None` until the head has been read.
    body: Option<BodyDecoder>,
    keeps: bool,
}

impl ResponseReader {
    pub(crate) fn new(limits: HeadLimits) -> Self {
        Self {
            guard: ResponseValidator::new(limits),
            unread: BytesMut::new(),
            lines: Lines::new(),
            strategy: ReadStrategy::up_to(MAX_READ_BYTES),
            expected: ExpectedResponse {
                to: RequestKind::Other,
                is_verbatim: false,
            },
            heads_taken: 0,
            received: 0,
            answer: AnswerHead::default(),
            body: Some(BodyDecoder::new(BodyLength::Length(0))),
            keeps: true,
        }
    }

    pub(crate) fn expect(&mut self, expected: ExpectedResponse) {
        self.guard.expect(expected.to);
        self.expected = expected;
        self.received = 0;
        self.body = None;
    }

    /// Bytes received since the last request began.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.body.as_ref().is_some_and(BodyDecoder::is_over)
    }

    #[inline]
    pub(crate) fn is_reusable(&self) -> bool {
        self.keeps && self.is_over() && self.unread.is_empty()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(SizeHint::default, BodyDecoder::size_hint)
    }

    /// The bytes after a `101`.
    pub(crate) fn into_unread(self) -> Bytes {
        self.unread.freeze()
    }

    /// Frees the buffer until the next response.
    pub(crate) fn rest(&mut self) {
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
        }
        self.strategy.forget();
    }

    /// Ready with the status when the head of the response can be taken; `notice` gets the raw
    /// heads of preceding 1xx responses.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut UpstreamStream,
        notice: &mut impl FnMut(&[u8]),
    ) -> Poll<Result<StatusCode, SendError>> {
        loop {
            while self.heads_taken < self.guard.heads_seen() {
                let head = self.take_head().ok_or(UNPARSABLE_HEAD)?;
                match head.status().ok_or(UNPARSABLE_HEAD)? {
                    // Dropped, because the proxy answers `Expect` itself.
                    StatusCode::CONTINUE => {}
                    status if is_interim(status) => notice(head.as_bytes()),
                    _ => return Poll::Ready(self.begin_body(head)),
                }
            }
            if ready!(self.poll_fill(cx, transport)).map_err(SendError::from)? == 0 {
                return Poll::Ready(Err(self.end_within_head()));
            }
        }
    }

    /// The error of a connection that ended before the response's head was complete.
    fn end_within_head(&mut self) -> SendError {
        match self.guard.eof() {
            Ok(_) => SendError::Closed(None),
            Err(FramingError::Truncated) => SendError::BrokenHead,
            Err(fault) => SendError::BadResponse(fault),
        }
    }

    fn take_head(&mut self) -> Option<Head> {
        self.heads_taken += 1;
        Head::take(&mut self.unread, std::mem::take(&mut self.lines))
    }

    /// Takes the head of the response; empty unless it has just been read.
    pub(crate) fn take_answer(&mut self) -> AnswerHead {
        std::mem::take(&mut self.answer)
    }

    fn begin_body(&mut self, head: Head) -> Result<StatusCode, SendError> {
        let ExpectedResponse { to, is_verbatim } = self.expected;
        let read = if is_verbatim {
            read_verbatim(head, to)
        } else {
            Err(head)
        };
        let (head, fields) = match read {
            Ok((head, fields)) => (head, Some(fields)),
            Err(head) => (read_response(&head, to).ok_or(UNPARSABLE_HEAD)?, None),
        };
        self.keeps = head.keeps && head.extent != BodyLength::UntilClose && self.keeps;
        self.body = Some(BodyDecoder::new(head.extent));
        self.answer = head.response.map(|()| fields);
        Ok(self.answer.status())
    }

    /// Takes the rest of a body with a known length, if it has arrived completely.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        self.body.as_mut()?.take_whole(&mut self.unread)
    }

    /// The next part of the body, or its trailers. `None` at its end.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut UpstreamStream,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        loop {
            let Some(body) = self.body.as_mut().filter(|body| !body.is_over()) else {
                return Poll::Ready(None);
            };
            if let Some(frame) = body.take(&mut self.unread) {
                return Poll::Ready(Some(Ok(frame)));
            }
            if body.is_over() {
                return Poll::Ready(None);
            }
            if body.ends_turn() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match ready!(self.poll_fill(cx, transport)) {
                Ok(0) => {
                    if let Err(fault) = self.guard.eof() {
                        return Poll::Ready(Some(Err(SendError::BadResponse(fault))));
                    }
                    self.body = Some(BodyDecoder::new(BodyLength::Length(0)));
                    return Poll::Ready(None);
                }
                Ok(_) => {}
                Err(broken) => return Poll::Ready(Some(Err(broken.into()))),
            }
        }
    }

    /// Returns true if the next bytes belong to a body with a known length.
    pub(crate) fn can_splice(&self) -> bool {
        let left = self.body.as_ref().and_then(BodyDecoder::left);
        self.unread.is_empty() && left.is_some_and(|left| left > 0)
    }

    /// Moves at most `most` bytes of the body into `pipe`. `None`: the caller must read them.
    pub(crate) fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        transport: &UpstreamStream,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Result<Option<usize>, SendError>> {
        let (UpstreamStream::Tcp(stream), Some(body)) = (transport, &mut self.body) else {
            return Poll::Ready(Ok(None));
        };
        // The read for the next head stays small, so that the body after it can be spliced.
        self.strategy.forget();
        let most = most.min(body.left().unwrap_or_default());
        let moved = match ready!(pipe.poll_fill(cx, stream, most)) {
            // A read determines whether this end is an error.
            Ok(0) => return Poll::Ready(Ok(None)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                return Poll::Ready(Ok(None));
            }
            moved => moved.map_err(ReadError::Io)?,
        };
        let count = moved as u64;
        if !self.guard.skip_body(count) {
            return Poll::Ready(Err(SendError::BadResponse(FramingError::UnexpectedData)));
        }
        body.skip(count);
        self.received += count;
        Poll::Ready(Ok(Some(moved)))
    }

    /// Reads and validates. Returns the number of bytes read: 0 at the end of the stream.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut UpstreamStream,
    ) -> Poll<Result<usize, ReadError>> {
        let before = self.unread.len();
        let polled = self.strategy.poll_read(cx, transport, &mut self.unread);
        let count = ready!(polled).map_err(ReadError::Io)?;
        self.received += count as u64;
        self.judge(before).map_err(ReadError::FramingError)?;
        Poll::Ready(Ok(count))
    }

    /// Validates the buffer from `before` on. Bytes after a complete response prevent reuse of the
    /// connection, and do not affect the response.
    fn judge(&mut self, before: usize) -> Result<(), FramingError> {
        let fresh = self.unread.get(before..).unwrap_or_default();
        let leads = before == 0 && self.guard.between_messages();
        let lines = leads.then(|| {
            self.lines = http1::lines();
            &mut self.lines
        });
        let Scan { accepted, stop } = self.guard.scan_noting(fresh, lines);
        match stop {
            None => {}
            Some(Stop::Upgrade) => self.guard.pass_through(),
            Some(Stop::FramingError(FramingError::UnexpectedData)) if accepted > 0 => {
                self.keeps = false;
                self.unread.truncate(before + accepted);
            }
            Some(Stop::FramingError(fault)) => return Err(fault),
        }
        Ok(())
    }
}

/// Returns true if a response with this status is followed by another one.
fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}

/// The reason why reading failed.
#[derive(Debug)]
enum ReadError {
    Io(io::Error),
    FramingError(FramingError),
}

impl From<ReadError> for SendError {
    fn from(broken: ReadError) -> Self {
        match broken {
            ReadError::Io(error) => Self::Closed(Some(error)),
            ReadError::FramingError(fault) => Self::BadResponse(fault),
        }
    }
}

/// Error of a head that the validator accepted although it cannot be parsed. No such head is known.
const UNPARSABLE_HEAD: SendError = SendError::BadResponse(FramingError::BadStatusLine);
