//! Validates an agent's responses by RFC 9112 before the HTTP library parses them.

use crate::error::CallError;
use crate::link::AgentStream;
use proxy_framing::{FramingError, HeadLimits, RequestKind, ResponseValidator, Stop};
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of field lines of an answer, as in the HTTP library.
const MAX_HEADER_COUNT: u32 = 100;
/// Maximum length of a reason phrase, in bytes.
const MAX_REASON_BYTES: u32 = 8_192;

/// Validates the responses on one connection to an agent.
#[derive(Debug)]
pub(crate) struct AnswerGuard {
    validator: RefCell<ResponseValidator>,
    refused: Cell<Option<FramingError>>,
}

impl AnswerGuard {
    /// A guard that limits heads to `max_head_bytes`.
    pub(crate) fn new(max_head_bytes: usize) -> Self {
        let max_head_bytes = u32::try_from(max_head_bytes).unwrap_or(u32::MAX);
        Self {
            validator: RefCell::new(ResponseValidator::new(HeadLimits {
                max_head_bytes,
                max_header_count: MAX_HEADER_COUNT,
                max_name_bytes: max_head_bytes,
                max_value_bytes: max_head_bytes,
                max_target_bytes: MAX_REASON_BYTES,
            })),
            refused: Cell::new(None),
        }
    }

    /// Expects the response to a GET. Without an expected response, any byte from the agent is
    /// refused.
    pub(crate) fn expect(&self) {
        self.validator.borrow_mut().expect(RequestKind::Other);
    }

    /// The failure of the call, if the guard refused its answer.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other faults do not concern the size"
    )]
    pub(crate) fn bad_reply(&self) -> Option<CallError> {
        // Data without a request is no answer: it only ends the connection.
        let refused = self.refused.get();
        let refused = refused.filter(|error| *error != FramingError::UnexpectedData)?;
        Some(match refused {
            FramingError::HeaderSize { actual, limit } => CallError::TooLarge {
                at_least_bytes: actual.into(),
                max_bytes: limit.into(),
            },
            _ => CallError::BadReply(refused.to_string()),
        })
    }

    /// The status of a possibly incomplete answer, if it denies.
    pub(crate) fn denying_status(&self) -> Option<u16> {
        let status = self.validator.borrow().status();
        status.filter(|status| matches!(status, 300..=499))
    }

    /// The number of `bytes` that the HTTP library may read.
    fn scan(&self, bytes: &[u8]) -> usize {
        let scan = self.validator.borrow_mut().scan(bytes);
        self.refused.set(scan.stop.map(|stop| match stop {
            Stop::FramingError(error) => error,
            Stop::Upgrade => FramingError::UnaskedUpgrade,
        }));
        scan.accepted
    }

    fn error(&self) -> Option<io::Error> {
        let refused = self.refused.get()?;
        Some(io::Error::new(io::ErrorKind::InvalidData, refused))
    }
}

/// A connection to an agent that passes only valid answers on.
#[derive(Debug)]
pub(crate) struct GuardedStream {
    pub(crate) stream: AgentStream,
    pub(crate) guard: Rc<AnswerGuard>,
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, guard } = self.get_mut();
        if let Some(error) = guard.error() {
            return Poll::Ready(Err(error));
        }
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        let read = buf.filled().get(before..).unwrap_or_default();
        let accepted = guard.scan(read);
        buf.set_filled(before + accepted);
        match guard.error() {
            // An empty read would mean the end of the stream.
            Some(error) if accepted == 0 => Poll::Ready(Err(error)),
            Some(_) | None => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
