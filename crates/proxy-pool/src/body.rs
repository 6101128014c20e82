//! The body of a response, which drives its connection while it is read.

use crate::connection::Connection;
use crate::error::{Http2RequestError, SendError};
use crate::http2::Http2Request;
use crate::pool::Pool;
use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use proxy_http1::{Pipe, SpliceFrom};
use std::rc::Rc;
use std::task::{Context, Poll};

/// A response body. Read to its end, its connection returns to the pool; dropped before the end,
/// the connection is closed, or the stream is reset with HTTP/2.
#[derive(Debug)]
pub struct ResponseBody<B: Body + 'static>(ProtocolBody<B>);

#[derive(Debug)]
enum ProtocolBody<B: Body + 'static> {
    Http1(Http1Body<B>),
    Http2(RecvStream, Option<Box<Http2Request<B>>>),
}

/// A body with exclusive use of a connection, which returns to the pool if it is reusable.
#[derive(Debug)]
struct Http1Body<B> {
    /// `None` after an error.
    connection: Option<Connection<B>>,
    pool: Rc<Pool<B>>,
}

impl<B: Body<Data = Bytes> + Default + SpliceFrom + Unpin + 'static> ResponseBody<B> {
    /// A body received on `connection`.
    pub fn new(connection: Connection<B>, pool: Rc<Pool<B>>) -> Self {
        Self(ProtocolBody::Http1(Http1Body {
            connection: Some(connection),
            pool,
        }))
    }

    /// A body received on `stream`.
    pub fn streamed(stream: RecvStream, call: Box<Http2Request<B>>) -> Self {
        Self(ProtocolBody::Http2(stream, Some(call)))
    }

    /// Takes the body, if all of it arrived with its head and the request was sent completely.
    pub fn take_whole(&mut self) -> Option<Bytes> {
        match &mut self.0 {
            ProtocolBody::Http1(alone) => alone.connection.as_mut()?.take_whole(),
            ProtocolBody::Http2(stream, _) => stream.is_end_stream().then(Bytes::new),
        }
    }

    /// Returns true if the body was read completely.
    #[inline]
    pub fn is_end_stream(&self) -> bool {
        match &self.0 {
            ProtocolBody::Http1(alone) => {
                alone.connection.as_ref().is_some_and(Connection::is_over)
            }
            ProtocolBody::Http2(stream, _) => stream.is_end_stream(),
        }
    }

    /// Bounds on the remaining length, in bytes.
    #[inline]
    pub fn size_hint(&self) -> SizeHint {
        match &self.0 {
            ProtocolBody::Http1(alone) => {
                let connection = alone.connection.as_ref();
                connection.map_or_else(SizeHint::default, Connection::size_hint)
            }
            ProtocolBody::Http2(..) => SizeHint::default(),
        }
    }

    /// The next frame.
    #[inline]
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        match &mut self.0 {
            ProtocolBody::Http1(alone) => match &mut alone.connection {
                Some(connection) => connection.poll_frame(cx),
                None => Poll::Ready(None),
            },
            ProtocolBody::Http2(stream, call) => {
                let Some(running) = call else {
                    return Poll::Ready(None);
                };
                let polled = running.poll_frame(cx, stream);
                if matches!(polled, Poll::Ready(None)) {
                    *call = None;
                }
                polled.map_err(|error| SendError::Http2Request(Http2RequestError::Broken(error)))
            }
        }
    }

    /// Returns true if the next bytes can be moved into a pipe.
    pub fn can_splice(&self) -> bool {
        match &self.0 {
            ProtocolBody::Http1(alone) => alone
                .connection
                .as_ref()
                .is_some_and(Connection::can_splice),
            ProtocolBody::Http2(..) => false,
        }
    }

    /// Moves at most `most` bytes into `pipe`. `None`: the caller must use [`Self::poll_frame`].
    ///
    /// # Errors
    /// [`SendError`]; the connection is unusable afterwards.
    pub fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Result<Option<usize>, SendError>> {
        match &mut self.0 {
            ProtocolBody::Http1(alone) => match &mut alone.connection {
                Some(connection) => connection.poll_splice(cx, pipe, most),
                None => Poll::Ready(Ok(None)),
            },
            ProtocolBody::Http2(..) => Poll::Ready(Ok(None)),
        }
    }

    /// Continues sending the request while the response is not being read.
    #[inline]
    pub fn poll_upload(&mut self, cx: &mut Context<'_>) {
        if let ProtocolBody::Http2(_, Some(call)) = &mut self.0 {
            call.poll_upload(cx);
        }
    }
}

impl<B> Drop for Http1Body<B> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.checkin(connection);
        }
    }
}
