//! A request's body as its client sends it, whatever the protocol.

use bytes::Bytes;
use h2::RecvStream;
use http::header::HOST;
use http_body::{Body, Frame, SizeHint};
use std::cell::Cell;
use std::fmt::Debug;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A request's body as its client sends it.
#[derive(Debug)]
pub enum ClientBody {
    /// There is none.
    Empty,
    /// Over HTTP/1.x.
    Http1(Rc<dyn Source>),
    /// Over HTTP/2.
    Http2(Streamed),
}

/// A connection of HTTP/1.x that brings the body of the request it is at.
pub trait Source: Debug {
    /// The next piece, or the trailers. None at the end.
    ///
    /// # Errors
    /// [`BodyAborted`].
    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>>;

    /// Whether nothing is left.
    fn is_over(&self) -> bool;

    /// What is known of the length of what is left.
    fn size_hint(&self) -> SizeHint;
}

/// A body that comes by an HTTP/2 stream.
#[derive(Debug)]
pub struct Streamed {
    stream: RecvStream,
    /// Told when somebody wants the body.
    continue_wanted: Option<Rc<Cell<bool>>>,
}

/// Why there is no more of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyAborted {
    /// It broke off, or its client broke the rules of HTTP/1.1; the connection knows more.
    #[error("cut off by the client")]
    Gone,
    /// Its client broke the rules of HTTP/2: of its length, or with what came behind it.
    #[error("malformed by HTTP/2")]
    Malformed,
}

impl BodyAborted {
    fn of(error: &h2::Error) -> Self {
        let is_malformed = error.is_library() && error.reason() == Some(h2::Reason::PROTOCOL_ERROR);
        if is_malformed {
            Self::Malformed
        } else {
            Self::Gone
        }
    }
}

impl ClientBody {
    /// The body that `stream` carries. `continue_wanted` is set when somebody wants it.
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
            Self::Http1(source) => source.poll_frame(cx),
            Self::Http2(streamed) => streamed.poll_frame(cx),
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Http1(source) => source.is_over(),
            Self::Http2(streamed) => streamed.stream.is_end_stream(),
        }
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Http1(source) => source.size_hint(),
            Self::Http2(_) => SizeHint::default(),
        }
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
            return Poll::Ready(Some(released.map_err(|error| BodyAborted::of(&error))));
        }
        let trailers =
            ready!(self.stream.poll_trailers(cx)).map_err(|error| BodyAborted::of(&error))?;
        let trailers = trailers.map(|mut trailers| {
            // The connection puts it in front of all trailers.
            trailers.remove(HOST);
            Ok(Frame::trailers(trailers))
        });
        Poll::Ready(trailers)
    }
}
