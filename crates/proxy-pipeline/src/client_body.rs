//! A request's body as its client sends it, whatever the protocol.

use bytes::Bytes;
use h2::RecvStream;
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
    /// [`CutOff`].
    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutOff>>>;

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
    asked: Option<Rc<Cell<bool>>>,
}

/// The body broke off, or its client broke the rules; the connection knows more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cut off by the client")]
pub struct CutOff;

impl ClientBody {
    /// The body that `stream` carries. `asked` is set when somebody wants it.
    #[must_use]
    pub fn streamed(stream: RecvStream, asked: Option<Rc<Cell<bool>>>) -> Self {
        Self::Http2(Streamed { stream, asked })
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = CutOff;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
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
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if let Some(asked) = self.asked.take() {
            asked.set(true);
        }
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let released = data.and_then(|data| {
                self.stream.flow_control().release_capacity(data.len())?;
                Ok(Frame::data(data))
            });
            return Poll::Ready(Some(released.map_err(|_| CutOff)));
        }
        let trailers = ready!(self.stream.poll_trailers(cx)).map_err(|_| CutOff)?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }
}
