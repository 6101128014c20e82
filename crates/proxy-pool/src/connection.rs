//! A connection to a target that carries one request at a time.

use crate::error::SendError;
use crate::http2::Tunnel;
use crate::limit::{ConnectionPermit, IdleMark};
use crate::response_reader::{ExpectedResponse, ResponseReader};
use crate::transport::UpstreamStream;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use proxy_clock::{Deadline, Tick};
use proxy_framing::HeadLimits;
use proxy_http1::{
    Framing, MessageWriter, Pipe, SpliceFrom, VerbatimFields, WriteError, poll_hang_up,
    write_request,
};
use proxy_upstream::TargetId;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A connection that carries one request at a time, driven by the task that waits for the response.
#[derive(Debug)]
pub struct Connection<B> {
    // Boxed, because a pool moves connections.
    talk: Box<Http1Session<B>>,
    permit: Option<ConnectionPermit>,
    pub(crate) target: TargetId,
    pub(crate) since: Tick,
    pub(crate) idle_since: Tick,
    /// The only client with access; `None` if all clients share the connection.
    pub(crate) owner: Option<Rc<ConnectionOwner>>,
    /// Set while the connection is idle, if connections are limited.
    pub(crate) idle_mark: Option<IdleMark>,
}

/// The client of a connection that begins with a PROXY protocol header.
#[derive(Clone, Debug)]
pub struct ConnectionOwner {
    /// PROXY protocol header of the connection; empty without one.
    pub proxy_header: Arc<[u8]>,
    /// Alive while the client connection lasts; a later one from the same address and port has
    /// another. `None` if equal headers mean the same client: a trusted proxy named it.
    pub connection: Option<Weak<()>>,
}

#[derive(Debug)]
struct Http1Session<B> {
    transport: UpstreamStream,
    incoming: ResponseReader,
    outgoing: MessageWriter<B>,
    /// The current request is not complete any more: its body was taken.
    took_body: bool,
    broken: bool,
}

impl ConnectionOwner {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_connection = match (&self.connection, &other.connection) {
            (Some(one), Some(other)) => one.ptr_eq(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_same_connection && self.proxy_header == other.proxy_header
    }

    fn has_ended(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| connection.strong_count() == 0)
    }
}

impl<B> Connection<B> {
    /// Makes a connection over `transport` to `target`, established at `since`. `permit` is
    /// released when the connection ends.
    #[must_use]
    pub fn new(
        transport: UpstreamStream,
        limits: HeadLimits,
        target: TargetId,
        since: Tick,
        permit: Option<ConnectionPermit>,
    ) -> Self {
        Self {
            talk: Box::new(Http1Session {
                transport,
                incoming: ResponseReader::new(limits),
                outgoing: MessageWriter::default(),
                took_body: false,
                broken: false,
            }),
            permit,
            target,
            since,
            idle_since: Tick::default(),
            owner: None,
            idle_mark: None,
        }
    }

    /// Reserves the connection, which began with the PROXY protocol header of `owner`, for that
    /// client.
    #[must_use]
    pub fn for_client(self, owner: Option<Rc<ConnectionOwner>>) -> Self {
        Self { owner, ..self }
    }

    /// Returns true if no later request can use the connection, because its client has
    /// disconnected.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.has_ended())
    }

    /// Returns true if the next request may be sent now.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let Http1Session {
            incoming,
            outgoing,
            broken,
            ..
        } = &*self.talk;
        !broken && incoming.is_reusable() && outgoing.is_done()
    }

    /// Returns true if the last request was sent completely.
    pub fn has_sent_all(&self) -> bool {
        self.talk.outgoing.is_done()
    }

    /// Bytes received since the last request began.
    pub fn received(&self) -> u64 {
        self.talk.incoming.received()
    }

    /// Returns true if the response was read completely.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.talk.incoming.is_over()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.talk.incoming.size_hint()
    }

    /// Returns true if the target keeps this idle connection open. Frees the read buffer.
    pub(crate) fn is_kept(&mut self, cx: &mut Context<'_>) -> bool {
        self.talk.incoming.rest();
        poll_hang_up(cx, &mut self.talk.transport).is_pending()
    }

    /// Converts a connection with `101` as its last response into a tunnel.
    pub fn into_tunnel(self) -> (Tunnel, Option<ConnectionPermit>) {
        let Http1Session {
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
    /// Sends `request`, which loses its body, with the field lines that `more` appends. Waits for
    /// the head of the response, which [`Self::take_answer`] returns then. `notice` gets the raw
    /// heads of preceding 1xx responses.
    ///
    /// # Errors
    /// [`SendError`]; the connection is unusable afterwards. The request is still complete after
    /// [`SendError::UnsentRequest`], and after any error and any response if it has no body.
    pub async fn send(
        &mut self,
        expected: ExpectedResponse,
        request: &mut Request<B>,
        more: impl Fn(&mut Vec<u8>),
        deadline: &Deadline,
        mut notice: impl FnMut(&[u8]),
    ) -> Result<StatusCode, SendError> {
        let mut begun = false;
        let talk = &mut *self.talk;
        let answer = poll_fn(|cx| {
            if !begun {
                begun = true;
                if poll_hang_up(cx, &mut talk.transport).is_ready() {
                    return Poll::Ready(Err(SendError::UnsentRequest));
                }
                talk.incoming.expect(expected);
                talk.begin(request, &more);
                talk.poll_upload(cx)?;
                if !talk.is_closed_before_request() {
                    // `poll_hang_up` has just shown that no data has arrived.
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
        if answer.is_err() {
            talk.broken = true;
        }
        answer
    }

    /// Takes the head of the response that [`Self::send`] has waited for, with its fields if they
    /// are not in its map. Empty if it was taken before.
    pub fn take_answer(&mut self) -> Response<Option<VerbatimFields>> {
        self.talk.incoming.take_answer()
    }

    /// Takes the rest of the response's body, if all of it has arrived and the request was sent
    /// completely.
    #[inline]
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        let talk = &mut *self.talk;
        let is_sent = talk.outgoing.is_done();
        is_sent.then(|| talk.incoming.take_whole()).flatten()
    }

    /// The next part of the response's body, or its trailers.
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

    /// Returns true if the next bytes of the response can be moved into a pipe.
    pub(crate) fn can_splice(&self) -> bool {
        let talk = &*self.talk;
        matches!(talk.transport, UpstreamStream::Tcp(_)) && talk.incoming.can_splice()
    }

    /// Moves at most `most` bytes of the response's body into `pipe`. `None`: the caller must read
    /// them.
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

impl<B: Body<Data = Bytes> + Default + SpliceFrom + Unpin> Http1Session<B> {
    fn begin(&mut self, request: &mut Request<B>, more: impl Fn(&mut Vec<u8>)) {
        write_request(request, self.outgoing.text(), more);
        self.took_body = !request.body().is_end_stream();
        let body = self.took_body.then(|| {
            let framing = framing(request);
            (std::mem::take(request.body_mut()), framing)
        });
        self.outgoing.begin(body);
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        notice: &mut impl FnMut(&[u8]),
    ) -> Poll<Result<StatusCode, SendError>> {
        if !self.outgoing.is_done() {
            self.poll_upload(cx)?;
            if self.is_closed_before_request() && !self.took_body {
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
        self.incoming.poll_splice(cx, &self.transport, pipe, most)
    }

    /// Returns true if the target has closed its reading side before the first byte of the request
    /// was sent.
    fn is_closed_before_request(&self) -> bool {
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

/// The framing of the body according to the head; without a field, according to the body's length.
fn framing(request: &Request<impl Body>) -> Framing {
    let headers = request.headers();
    if headers.contains_key(TRANSFER_ENCODING) {
        return Framing::Chunked { trailers: true };
    }
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let length = length.or_else(|| request.body().size_hint().exact());
    Framing::Length(length.unwrap_or(0))
}
