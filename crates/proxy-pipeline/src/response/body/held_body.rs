//! A body from upstream, read in advance up to a limit.

use super::interruption::Interruption;
use super::upstream_body::UpstreamBody;
use crate::upload::body_buffer::{BodyBuffer, memory_problem};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use proxy_pool::SendError;
use std::task::{Context, Poll, ready};

/// The bytes read in advance, and the rest of the body.
#[derive(Debug)]
pub(super) struct Held {
    read: BodyBuffer,
    trailers: Option<HeaderMap>,
    /// The unread rest; `None` at the end of the body.
    rest: Option<Box<UpstreamBody>>,
}

impl Held {
    /// Initially empty, filled from `rest` into `read`.
    pub(super) fn new(read: BodyBuffer, rest: Box<UpstreamBody>) -> Self {
        Self {
            read,
            trailers: None,
            rest: Some(rest),
        }
    }

    /// Returns true if a part of the body has not been read.
    pub(super) fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.read.is_empty() && self.trailers.is_none() && self.rest.is_none()
    }

    /// Reads until the body ends, `max_bytes` are there, or no memory is left.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        max_bytes: u64,
    ) -> Poll<Result<(), Interruption>> {
        if self.read.is_evicted() {
            return Poll::Ready(Err(Interruption::Own(memory_problem())));
        }
        while self.read.len() < max_bytes
            && let Some(rest) = &mut self.rest
        {
            ready!(self.read.poll_room(cx.waker()));
            match ready!(rest.poll(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        if self.read.push(&data, cx.waker()).is_err() {
                            // The client receives the buffered bytes, and the remainder as it
                            // arrives.
                            self.read.append(&data);
                            break;
                        }
                    }
                    Err(frame) => self.trailers = frame.into_trailers().ok(),
                },
                Some(Err(fault)) => return Poll::Ready(Err(Interruption::Upstream(fault))),
                None => self.rest = None,
            }
        }
        self.read.settle();
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        if let Some(block) = self.read.pop() {
            return Poll::Ready(Some(Ok(Frame::data(block))));
        }
        match &mut self.rest {
            Some(rest) => rest.poll(cx),
            None => Poll::Ready(self.trailers.take().map(|it| Ok(Frame::trailers(it)))),
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let rest = self.rest.as_ref().map(|rest| rest.body.size_hint());
        size_of(self.read.len(), self.trailers.is_some(), rest)
    }
}

/// The length of a body after `read` bytes, if the length of `rest` is known.
pub(super) fn size_of(read: u64, has_trailers: bool, rest: Option<SizeHint>) -> SizeHint {
    match rest.map_or(Some(0), |rest| rest.exact()) {
        Some(rest) if !has_trailers => SizeHint::with_exact(read + rest),
        Some(_) | None => SizeHint::default(),
    }
}
