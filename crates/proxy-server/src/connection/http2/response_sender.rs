//! Sending of a response's body, within the client's flow-control windows.

use super::session::Session;
use bytes::Bytes;
use h2::{Reason as Code, SendStream};
use http_body::Body as _;
use proxy_clock::{Deadline, MinDataRate, Timer};
use proxy_http1::MAX_TURN_PIECES;
use proxy_pipeline::Body;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A response after its head was sent.
#[derive(Debug)]
pub(super) struct ResponseSender {
    send: SendStream<Bytes>,
    body: Body,
    /// Data that does not fit into the client's window yet.
    rest: Bytes,
    /// Measures the client's read rate against the configured minimum.
    min_rate: MinDataRate,
}

/// The timer that aborted a response, with its length.
pub(super) type TimedOut = Option<(Timer, Duration)>;

/// The reason why sending ended early.
enum BodySendError {
    /// The client reset the stream.
    Refused,
    /// The client's read rate was too low.
    Stalled(Timer, Duration),
    /// The body failed.
    Broken,
}

impl ResponseSender {
    pub(super) fn new(send: SendStream<Bytes>, body: Body) -> Self {
        Self {
            send,
            body,
            rest: Bytes::new(),
            min_rate: MinDataRate::default(),
        }
    }

    /// Ready when everything is sent, or sending ended early.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        session: &Session,
        deadline: &Deadline,
    ) -> Poll<TimedOut> {
        let mut polled = self.poll_to_end(cx, session, deadline);
        if polled.is_pending() && self.send.poll_reset(cx).is_ready() {
            polled = Poll::Ready(Err(BodySendError::Refused));
        }
        let timed_out = match ready!(polled) {
            Ok(()) | Err(BodySendError::Refused) => None,
            Err(BodySendError::Stalled(timer, after)) => {
                self.send.send_reset(Code::CANCEL);
                Some((timer, after))
            }
            Err(BodySendError::Broken) => {
                self.send.send_reset(Code::INTERNAL_ERROR);
                None
            }
        };
        Poll::Ready(timed_out)
    }

    fn poll_to_end(
        &mut self,
        cx: &mut Context<'_>,
        session: &Session,
        deadline: &Deadline,
    ) -> Poll<Result<(), BodySendError>> {
        for _ in 0..MAX_TURN_PIECES {
            while !self.rest.is_empty() {
                let room = ready!(self.poll_room(cx, session, deadline))?;
                let piece = self.rest.split_to(room.min(self.rest.len()));
                session.unsent.add(piece.len());
                self.min_rate.moved(&session.clock, piece.len());
                let last = self.rest.is_empty() && self.body.is_end_stream();
                let sent = self.send.send_data(piece, last);
                if last || sent.is_err() {
                    return Poll::Ready(sent.map_err(|_| BodySendError::Refused));
                }
            }
            ready!(self.poll_socket(cx, session, deadline))?;
            if self.body.makes_encoder() {
                // A stream without a window holds no encoder.
                ready!(self.poll_room(cx, session, deadline))?;
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return Poll::Ready(Err(BodySendError::Broken)),
                None => {
                    let ended = self.send.send_data(Bytes::new(), true);
                    return Poll::Ready(ended.map_err(|_| BodySendError::Refused));
                }
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    let ended = self.send.send_trailers(trailers);
                    return Poll::Ready(ended.map_err(|_| BodySendError::Broken));
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready when the socket is not congested: only then the body is polled.
    fn poll_socket(
        &mut self,
        cx: &mut Context<'_>,
        session: &Session,
        deadline: &Deadline,
    ) -> Poll<Result<(), BodySendError>> {
        if session.unsent.is_full(cx) {
            return self.wait_capacity(cx, session, deadline);
        }
        if deadline.running() == Some(Timer::ResponseWrite) {
            self.min_rate.pause(&session.clock);
            deadline.stop();
        }
        Poll::Ready(Ok(()))
    }

    /// Number of bytes that the window allows now.
    fn poll_room(
        &mut self,
        cx: &mut Context<'_>,
        session: &Session,
        deadline: &Deadline,
    ) -> Poll<Result<usize, BodySendError>> {
        if session.unsent.is_full(cx) {
            return self.wait_capacity(cx, session, deadline);
        }
        self.send.reserve_capacity(self.rest.len().max(1));
        let room = match self.send.capacity() {
            0 => self.send.poll_capacity(cx),
            room => Poll::Ready(Some(Ok(room))),
        };
        let waits = deadline.running() == Some(Timer::ResponseWrite);
        match room {
            Poll::Ready(Some(Ok(room))) => {
                if waits {
                    deadline.stop();
                }
                Poll::Ready(Ok(room))
            }
            Poll::Ready(Some(Err(_)) | None) => Poll::Ready(Err(BodySendError::Refused)),
            Poll::Pending => self.wait_capacity(cx, session, deadline),
        }
    }

    /// Waits, while the client's window is exhausted.
    fn wait_capacity<T>(
        &mut self,
        cx: &mut Context<'_>,
        session: &Session,
        deadline: &Deadline,
    ) -> Poll<Result<T, BodySendError>> {
        if let Some((timer, after)) = deadline.take_expired() {
            return Poll::Ready(Err(BodySendError::Stalled(timer, after)));
        }
        self.body.poll_upload(cx);
        let (clock, time) = (&session.clock, session.write_timeout);
        let left = self.min_rate.wait(clock, time);
        if deadline.running() != Some(Timer::ResponseWrite) {
            deadline.start_late(clock, Timer::ResponseWrite, left, time);
        }
        Poll::Pending
    }
}
