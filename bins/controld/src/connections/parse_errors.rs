//! Error responses to malformed requests, with the common error body and a correlation ID.
//!
//! hyper answers malformed requests itself, with an empty body and without a hook. Such a response
//! is recognized by its missing `X-Correlation-Id`, and replaced before it is written to the
//! client.

use control_wire::{ErrorBody, ErrorCode, ErrorResponse};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use uuid::Uuid;

const CORRELATION_ID: &[u8] = b"x-correlation-id:";

/// Stream that replaces hyper's own responses.
#[derive(Debug)]
pub(crate) struct ParseErrors<S> {
    stream: S,
    replaced: Option<Replaced>,
}

/// Unwritten part of the replacement, and the length of hyper's response that it replaces.
#[derive(Debug)]
struct Replaced {
    rest: Vec<u8>,
    length: usize,
}

impl<S> ParseErrors<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            replaced: None,
        }
    }
}

impl<S: AsyncWrite + Unpin> ParseErrors<S> {
    /// Writes a replacement for `head`. Returns `None` if `head` must be written unchanged.
    fn poll_replaced(
        &mut self,
        cx: &mut Context<'_>,
        head: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.replaced.is_none() {
            let rest = answer(status_of_own_answer(head)?);
            let length = head.len();
            self.replaced = Some(Replaced { rest, length });
        }
        Some(self.poll_rest(cx))
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while let Some(Replaced { rest, length }) = &mut self.replaced {
            if rest.is_empty() {
                let length = *length;
                self.replaced = None;
                return Poll::Ready(Ok(length));
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            rest.drain(..written);
        }
        Poll::Ready(Ok(0))
    }
}

/// Returns the status if hyper generated the response: 4xx, without a correlation ID.
fn status_of_own_answer(head: &[u8]) -> Option<u16> {
    let line = head.strip_prefix(b"HTTP/1.1 ")?;
    let status = std::str::from_utf8(line.get(..3)?).ok()?.parse().ok()?;
    let is_of_program = head
        .windows(CORRELATION_ID.len())
        .any(|part| part.eq_ignore_ascii_case(CORRELATION_ID));
    ((400..500).contains(&status) && !is_of_program).then_some(status)
}

fn answer(status: u16) -> Vec<u8> {
    let (reason, code, message) = match status {
        414 => (
            "URI Too Long",
            ErrorCode::LimitExceeded,
            "the URI is too long",
        ),
        431 => (
            "Request Header Fields Too Large",
            ErrorCode::LimitExceeded,
            "the header fields are too large",
        ),
        _ => (
            "Bad Request",
            ErrorCode::Parse,
            "the request is not HTTP/1.1",
        ),
    };
    let correlation_id = Uuid::now_v7().to_string();
    tracing::info!(
        correlation_id,
        status,
        reason = message,
        "unreadable request"
    );
    let error = ErrorBody {
        code,
        message: message.to_owned(),
        correlation_id: correlation_id.clone(),
        retry_after: None,
        details: Vec::new(),
    };
    let body = serde_json::to_string(&ErrorResponse { error }).unwrap_or_default();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         x-correlation-id: {correlation_id}\r\ncache-control: no-cache, private\r\n\
         x-content-type-options: nosniff\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

impl<S: AsyncRead + Unpin> AsyncRead for ParseErrors<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, bytes)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ParseErrors<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.poll_replaced(cx, bytes) {
            Some(written) => written,
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.first().map_or(&[][..], |part| part);
        match self.poll_replaced(cx, first) {
            Some(written) => written,
            None => Pin::new(&mut self.stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
