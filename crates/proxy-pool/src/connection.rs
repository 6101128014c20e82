//! One connection to a target: a request goes out, its response comes in, and again.

use crate::error::SendError;
use crate::http2::StreamSlot;
use crate::limit::{ConnectionPermit, IdleMark};
use crate::response_reader::ResponseReader;
use crate::upstream_stream::UpstreamStream;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use proxy_clock::{Deadline, Tick};
use proxy_framing::{HeadLimits, RequestKind};
use proxy_http1::{
    Framing, MessageWriter, Pipe, SpliceFrom, WriteError, keep_map, poll_hang_up, write_request,
};
use proxy_upstream::{TargetId, TargetState};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// A connection that carries one request at a time and is driven by whoever waits for it.
#[derive(Debug)]
pub struct Connection<B> {
    // Boxed: a pool moves connections about.
    talk: Box<Talk<B>>,
    permit: Option<ConnectionPermit>,
    /// The target that it leads to, and no other.
    pub(crate) target: TargetId,
    pub(crate) generation: u32,
    pub(crate) idle_since: Tick,
    /// While it is idle, where connections are limited.
    pub(crate) idle_mark: Option<IdleMark>,
}

#[derive(Debug)]
struct Talk<B> {
    transport: UpstreamStream,
    incoming: ResponseReader,
    outgoing: MessageWriter<B>,
    /// Whether the body was taken out of the present request.
    took_body: bool,
    /// Whether it failed.
    broken: bool,
}

/// What is left of a connection after `101 Switching Protocols`.
#[derive(Debug)]
pub struct Tunnel {
    /// The stream, now without HTTP.
    pub transport: UpstreamStream,
    /// What the target sent right behind its answer.
    pub early: Bytes,
    /// The place on a shared connection, when the stream is one of many.
    pub stream_slot: Option<StreamSlot>,
}

impl<B> Connection<B> {
    /// Speaks HTTP/1.1 over `transport`, which leads to `target` by addresses of this `generation`.
    /// `permit` is given back when the connection ends.
    #[must_use]
    pub fn new(
        transport: UpstreamStream,
        limits: HeadLimits,
        (target, generation): (TargetId, u32),
        permit: Option<ConnectionPermit>,
    ) -> Self {
        Self {
            talk: Box::new(Talk {
                transport,
                incoming: ResponseReader::new(limits),
                outgoing: MessageWriter::default(),
                took_body: false,
                broken: false,
            }),
            permit,
            target,
            generation,
            idle_since: Tick::default(),
            idle_mark: None,
        }
    }

    /// Whether the next request may be sent now.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let Talk {
            incoming,
            outgoing,
            broken,
            ..
        } = &*self.talk;
        !broken && incoming.is_reusable() && outgoing.is_done()
    }

    /// Whether the last request was sent to its end.
    pub fn has_sent_all(&self) -> bool {
        self.talk.outgoing.is_done()
    }

    /// Whether it leads to an address that its target, as `state` is now, still has. One that does is
    /// not asked again until they change once more.
    #[inline]
    pub(crate) fn is_current(&mut self, state: &TargetState) -> bool {
        let generation = state.generation();
        if self.generation == generation {
            return true;
        }
        let peer = self.talk.transport.peer();
        let stays = peer.is_some_and(|peer| state.addresses().contains(&peer));
        if stays {
            self.generation = generation;
        }
        stays
    }

    /// Bytes that came since the last request was begun.
    pub fn received(&self) -> u64 {
        self.talk.incoming.received()
    }

    /// Whether the response has been read to its end.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.talk.incoming.is_over()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.talk.incoming.size_hint()
    }

    /// Whether the target still keeps this idle connection. Its buffer is given back.
    pub(crate) fn is_kept(&mut self, cx: &mut Context<'_>) -> bool {
        self.talk.incoming.rest();
        poll_hang_up(cx, &mut self.talk.transport).is_pending()
    }

    /// The stream under a connection whose last answer was `101`.
    pub fn into_tunnel(self) -> (Tunnel, Option<ConnectionPermit>) {
        let Talk {
            transport,
            incoming,
            ..
        } = *self.talk;
        let tunnel = Tunnel {
            transport,
            early: incoming.into_unread(),
            stream_slot: None,
        };
        (tunnel, self.permit)
    }
}

impl<B: Body<Data = Bytes> + Default + SpliceFrom + Unpin> Connection<B> {
    /// Sends `request`, whose body is taken out of it, with the field lines that `more` appends, and
    /// waits for the head of its response. `notice` gets the heads of 1xx responses that come before,
    /// as they came.
    ///
    /// # Errors
    /// [`SendError`]; the connection is of no more use then. The request is whole still after
    /// [`SendError::UnsentRequest`], and after any fault if it has no body.
    pub async fn send(
        &mut self,
        kind: RequestKind,
        (request, more): (&mut Request<B>, impl Fn(&mut Vec<u8>)),
        deadline: &Deadline,
        mut notice: impl FnMut(&[u8]),
    ) -> Result<Response<()>, SendError> {
        let mut begun = false;
        let talk = &mut *self.talk;
        let answer = poll_fn(|cx| {
            if !begun {
                begun = true;
                if poll_hang_up(cx, &mut talk.transport).is_ready() {
                    return Poll::Ready(Err(SendError::UnsentRequest));
                }
                talk.incoming.expect(kind);
                talk.begin(request, &more);
                talk.poll_upload(cx)?;
                if !talk.is_unheard() {
                    // Nothing came yet: that was just looked at.
                    return Poll::Pending;
                }
            }
            match talk.poll_answer(cx, &mut notice) {
                Poll::Ready(answer) => Poll::Ready(answer),
                Poll::Pending => match deadline.take_expired() {
                    Some((timer, after)) => Poll::Ready(Err(SendError::TimedOut { timer, after })),
                    None => Poll::Pending,
                },
            }
        })
        .await;
        match &answer {
            Ok(_) => keep_map(std::mem::take(request.headers_mut())),
            Err(_) => talk.broken = true,
        }
        answer
    }

    /// What is left of the response's body, if all of it has come and the request was sent whole.
    #[inline]
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        let talk = &mut *self.talk;
        let is_sent = talk.outgoing.is_done();
        is_sent.then(|| talk.incoming.take_whole()).flatten()
    }

    /// The next piece of the response's body, or its trailers.
    #[inline]
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let talk = &mut *self.talk;
        let polled = talk.poll_frame(cx);
        if let Poll::Ready(Some(Err(_))) = &polled {
            talk.broken = true;
        }
        polled
    }

    /// Whether what comes next of the response can be moved into a pipe.
    pub(crate) fn can_splice(&self) -> bool {
        let talk = &*self.talk;
        matches!(talk.transport, UpstreamStream::Tcp(_)) && talk.incoming.can_splice()
    }

    /// Moves up to `most` bytes of the response's body into `pipe`. None: they have to be read.
    pub(crate) fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Result<Option<usize>, SendError>> {
        let talk = &mut *self.talk;
        let polled = talk.poll_splice(cx, pipe, most);
        if let Poll::Ready(Err(_)) = &polled {
            talk.broken = true;
        }
        polled
    }
}

impl<B: Body<Data = Bytes> + Default + SpliceFrom + Unpin> Talk<B> {
    fn begin(&mut self, request: &mut Request<B>, more: impl Fn(&mut Vec<u8>)) {
        write_request(request, self.outgoing.text(), more);
        self.took_body = !request.body().is_end_stream();
        let body = self.took_body.then(|| {
            let framing = framing(request.headers());
            (std::mem::take(request.body_mut()), framing)
        });
        self.outgoing.begin(body);
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        notice: &mut impl FnMut(&[u8]),
    ) -> Poll<Result<Response<()>, SendError>> {
        if !self.outgoing.is_done() {
            self.poll_upload(cx)?;
            if self.is_unheard() && !self.took_body {
                return Poll::Ready(Err(SendError::UnsentRequest));
            }
        }
        self.incoming.poll_head(cx, &mut self.transport, notice)
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        if !self.outgoing.is_done()
            && let Err(fault) = self.poll_upload(cx)
        {
            return Poll::Ready(Some(Err(fault)));
        }
        self.incoming.poll_frame(cx, &mut self.transport)
    }

    fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Result<Option<usize>, SendError>> {
        if !self.outgoing.is_done() {
            self.poll_upload(cx)?;
        }
        self.incoming.poll_splice(cx, &self.transport, (pipe, most))
    }

    /// Whether the target will take nothing of the request.
    fn is_unheard(&self) -> bool {
        self.outgoing.is_write_closed() && self.outgoing.sent() == 0
    }

    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), SendError> {
        match self.outgoing.poll(cx, &mut self.transport) {
            Poll::Ready(Err(WriteError::Body)) => Err(SendError::RequestBody),
            Poll::Ready(Err(WriteError::Io(error))) => Err(SendError::Closed(Some(error))),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }
}

/// How a head tells the length of the body behind it.
fn framing(headers: &HeaderMap) -> Framing {
    if headers.contains_key(TRANSFER_ENCODING) {
        return Framing::Chunked { trailers: true };
    }
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    Framing::Length(length.unwrap_or(0))
}
