//! The body of a response, which drives its connection while it is read.

use crate::connection::Connection;
use crate::fault::SendFault;
use crate::http2::{Call, CallFault};
use crate::pool::{Pool, TargetSlot};
use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A response body. Read to its end, its connection goes back to the pool; dropped before, the
/// connection is closed, or the one stream of it that carried the body.
#[derive(Debug)]
pub struct ResponseBody<B: Body + 'static>(Kind<B>);

#[derive(Debug)]
enum Kind<B: Body + 'static> {
    Http1(Alone<B>),
    Http2(RecvStream, Option<Box<Call<B>>>),
}

/// A body that has a connection for itself.
#[derive(Debug)]
struct Alone<B: Body + 'static> {
    incoming: Incoming,
    source: Option<Source<B>>,
}

#[derive(Debug)]
struct Source<B: Body + 'static> {
    connection: Connection<B>,
    pool: Rc<Pool<B>>,
    slot: TargetSlot,
}

impl<B> ResponseBody<B>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// The body that `connection` is delivering.
    pub fn new(
        incoming: Incoming,
        connection: Connection<B>,
        pool: Rc<Pool<B>>,
        slot: TargetSlot,
    ) -> Self {
        let source = Some(Source {
            connection,
            pool,
            slot,
        });
        Self(Kind::Http1(Alone { incoming, source }))
    }

    /// The body that answers `call`.
    pub fn streamed(stream: RecvStream, call: Box<Call<B>>) -> Self {
        Self(Kind::Http2(stream, Some(call)))
    }

    /// Whether all of it has been read.
    #[inline]
    pub fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Http1(alone) => alone.incoming.is_end_stream(),
            Kind::Http2(stream, _) => stream.is_end_stream(),
        }
    }

    /// What is known of the length.
    #[inline]
    pub fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Http1(alone) => alone.incoming.size_hint(),
            Kind::Http2(..) => SizeHint::default(),
        }
    }

    /// The next frame.
    #[inline]
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendFault<()>>>> {
        match &mut self.0 {
            Kind::Http1(alone) => alone.poll_frame(cx),
            Kind::Http2(stream, call) => {
                let Some(running) = call else {
                    return Poll::Ready(None);
                };
                let polled = running.poll_frame(cx, stream);
                if matches!(polled, Poll::Ready(None)) {
                    *call = None;
                }
                polled.map_err(|error| SendFault::Call(CallFault::Broken(error)))
            }
        }
    }

    /// Sends on what there is of the request, while nobody reads the response.
    #[inline]
    pub fn poll_upload(&mut self, cx: &mut Context<'_>) {
        if let Kind::Http2(_, Some(call)) = &mut self.0 {
            call.poll_upload(cx);
        }
    }
}

impl<B> Alone<B>
where
    B: Body + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendFault<()>>>> {
        let mut driven = false;
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => return Poll::Ready(Some(Ok(frame))),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(self.fault(error))));
                }
                Poll::Ready(None) => {
                    self.give_back(cx);
                    return Poll::Ready(None);
                }
                Poll::Pending if driven => return Poll::Pending,
                Poll::Pending => driven = true,
            }
            // Ended or not: what it read is in the body's channel now.
            if let Some(source) = &mut self.source
                && source.connection.poll_drive(cx).is_ready()
                && source.connection.wire().fault.get().is_none()
            {
                self.source = None;
            }
        }
    }

    fn fault(&mut self, error: hyper::Error) -> SendFault<()> {
        let wire_fault = self
            .source
            .take()
            .and_then(|source| source.connection.wire().fault.get());
        match wire_fault {
            Some(fault) => SendFault::BadResponse(fault),
            None if error.is_incomplete_message() => SendFault::Closed(None),
            None => SendFault::Http(error),
        }
    }

    fn give_back(&mut self, cx: &mut Context<'_>) {
        let Some(mut source) = self.source.take() else {
            return;
        };
        // hyper notices only on its next turn that a chunked response is over.
        if !source.connection.is_ready() && source.connection.poll_drive(cx).is_ready() {
            return;
        }
        source.pool.put(source.slot, source.connection);
    }
}

impl<B: Body + 'static> Drop for Alone<B> {
    fn drop(&mut self) {
        if let Some(source) = self.source.take()
            && self.incoming.is_end_stream()
        {
            source.pool.put(source.slot, source.connection);
        }
    }
}
