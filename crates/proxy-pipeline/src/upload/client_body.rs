//! A request's body as received, for every protocol.

use crate::upload::body_buffer::BodyBuffer;
use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use http::header::HOST;
use http_body::{Body, Frame, SizeHint};
use proxy_errors::Reason;
use std::cell::Cell;
use std::fmt::Debug;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

/// A request's body as received.
#[derive(Debug)]
pub enum ClientBody {
    /// No body.
    Empty,
    /// Over HTTP/1.x.
    Http1(Rc<dyn Source>),
    /// Over HTTP/3.
    Http3(Rc<dyn Source>),
    /// Over HTTP/2.
    Http2(Streamed),
    /// Read whole before.
    Held(HeldBody),
    /// Read in part by agents before.
    Inspected(Box<Inspected>),
    /// A body that is copied while it is read.
    Copied(Box<CopiedBody>),
}

/// A body that is copied while it is read. The receiver gets the copy at the end of the body; a
/// copy above the limit is dropped.
#[derive(Debug)]
pub struct CopiedBody {
    body: ClientBody,
    copy: HeldBody,
    max_bytes: u64,
    receiver: Option<oneshot::Sender<HeldBody>>,
}

/// A body with a beginning that was read before.
#[derive(Debug)]
pub struct Inspected {
    pub(crate) read: BodyBuffer,
    pub(crate) rest: ClientBody,
}

/// A body that was read whole.
#[derive(Debug, Default)]
pub struct HeldBody {
    pub(crate) bytes: BodyBuffer,
    pub(crate) trailers: Option<HeaderMap>,
}

/// An HTTP/1.x connection, which delivers the body of its current request, or a stream of HTTP/3.
pub trait Source: Debug {
    /// The next piece, or the trailers. `None` at the end.
    ///
    /// # Errors
    /// [`BodyAborted`] if the client leaves or sends an invalid body.
    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>>;

    /// Returns true if the body is complete.
    fn is_over(&self) -> bool;

    /// Bounds on the remaining length, in bytes.
    fn size_hint(&self) -> SizeHint;
}

/// A body on an HTTP/2 stream.
#[derive(Debug)]
pub struct Streamed {
    stream: RecvStream,
    /// Set when the body is polled, so that `100 Continue` is sent.
    continue_wanted: Option<Rc<Cell<bool>>>,
}

/// The reason why a body ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyAborted {
    /// The connection ended, or the body violates HTTP/1.1; the connection has the details.
    #[error("cut off by the client")]
    Gone,
    /// The body violates the client's protocol, by this reason: its length or its trailers are
    /// wrong.
    #[error("malformed")]
    Malformed(Reason),
}

impl From<&h2::Error> for BodyAborted {
    fn from(error: &h2::Error) -> Self {
        let is_malformed = error.is_library() && error.reason() == Some(h2::Reason::PROTOCOL_ERROR);
        if is_malformed {
            Self::Malformed(Reason::Http2ProtocolError)
        } else {
            Self::Gone
        }
    }
}

impl ClientBody {
    /// The body with a copy of at most `max_bytes` in `copy` for `receiver`.
    pub(crate) fn copied(
        self,
        copy: BodyBuffer,
        max_bytes: u64,
        receiver: oneshot::Sender<HeldBody>,
    ) -> Self {
        Self::Copied(Box::new(CopiedBody {
            body: self,
            copy: HeldBody {
                bytes: copy,
                trailers: None,
            },
            max_bytes,
            receiver: Some(receiver),
        }))
    }

    /// The body on `stream`. `continue_wanted` is set when it is polled.
    #[must_use]
    pub fn streamed(stream: RecvStream, continue_wanted: Option<Rc<Cell<bool>>>) -> Self {
        Self::Http2(Streamed {
            stream,
            continue_wanted,
        })
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyAborted;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Http1(source) | Self::Http3(source) => source.poll_frame(cx),
            Self::Http2(streamed) => streamed.poll_frame(cx),
            Self::Held(held) => Poll::Ready(held.next_frame().map(Ok)),
            Self::Copied(copied) => copied.poll_frame(cx),
            Self::Inspected(inspected) => match inspected.read.pop() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None => Pin::new(&mut inspected.rest).poll_frame(cx),
            },
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Http1(source) | Self::Http3(source) => source.is_over(),
            Self::Http2(streamed) => streamed.stream.is_end_stream(),
            Self::Held(held) => held.bytes.is_empty() && held.trailers.is_none(),
            Self::Copied(copied) => copied.body.is_end_stream(),
            Self::Inspected(inspected) => {
                inspected.read.is_empty() && inspected.rest.is_end_stream()
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Http1(source) | Self::Http3(source) => source.size_hint(),
            Self::Http2(_) => SizeHint::default(),
            Self::Held(held) => SizeHint::with_exact(held.bytes.len()),
            Self::Copied(copied) => copied.body.size_hint(),
            Self::Inspected(inspected) => {
                let read = inspected.read.len();
                let rest = inspected.rest.size_hint().exact();
                rest.map_or_else(SizeHint::default, |rest| SizeHint::with_exact(read + rest))
            }
        }
    }
}

impl CopiedBody {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        if self.copy.bytes.is_evicted() {
            self.drop_copy();
        }
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &polled {
            Some(Ok(frame)) => self.keep(cx, frame),
            Some(Err(_)) => self.receiver = None,
            None => {}
        }
        if polled.is_none() || self.body.is_end_stream() {
            self.send_copy();
        }
        Poll::Ready(polled)
    }

    fn keep(&mut self, cx: &Context<'_>, frame: &Frame<Bytes>) {
        if self.receiver.is_none() {
            return;
        }
        if let Some(trailers) = frame.trailers_ref() {
            self.copy.trailers = Some(trailers.clone());
        }
        let data = frame.data_ref().map_or(&[][..], |data| data);
        let is_too_large = self.copy.bytes.len() + data.len() as u64 > self.max_bytes;
        if is_too_large || self.copy.bytes.push(data, cx.waker()).is_err() {
            self.drop_copy();
        }
    }

    fn drop_copy(&mut self) {
        self.receiver = None;
        self.copy = HeldBody::default();
    }

    fn send_copy(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            let copy = std::mem::take(&mut self.copy);
            copy.bytes.settle();
            // The copy may have been cancelled.
            drop(receiver.send(copy));
        }
    }
}

impl HeldBody {
    fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        if let Some(block) = self.bytes.pop() {
            return Some(Frame::data(block));
        }
        self.trailers.take().map(Frame::trailers)
    }
}

impl Streamed {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        if let Some(continue_wanted) = self.continue_wanted.take() {
            continue_wanted.set(true);
        }
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let released = data.and_then(|data| {
                self.stream.flow_control().release_capacity(data.len())?;
                Ok(Frame::data(data))
            });
            return Poll::Ready(Some(released.map_err(|error| BodyAborted::from(&error))));
        }
        let trailers =
            ready!(self.stream.poll_trailers(cx)).map_err(|error| BodyAborted::from(&error))?;
        let trailers = trailers.map(|mut trailers| {
            // The frame meter writes this field before all trailers.
            trailers.remove(HOST);
            Ok(Frame::trailers(trailers))
        });
        Poll::Ready(trailers)
    }
}
