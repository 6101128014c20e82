//! Sending of a response's body, within the client's flow-control windows.

use super::connection::StreamLost;
use super::session::Session;
use bytes::Bytes;
use http_body::Body as _;
use proxy_clock::{Deadline, MinDataRate, Timer};
use proxy_http1::MAX_TURN_PIECES;
use proxy_http3::{ErrorCode, write_data_header, write_trailers};
use proxy_pipeline::Body;
use quinn_proto::StreamId;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A response being sent.
pub(super) struct ResponseSender {
    id: StreamId,
    body: Body,
    /// Frames that do not fit into the client's windows yet: a frame's header, and data.
    unsent: [Bytes; 2],
    /// Nothing follows the unsent frames.
    is_last: bool,
    /// Measures the client's read rate against the configured minimum.
    min_rate: MinDataRate,
}

/// The timer that aborted a response, with its length.
pub(super) type TimedOut = Option<(Timer, Duration)>;

/// The reason why sending ended early.
enum BodySendError {
    /// The client cancelled the response, or the connection ended.
    Refused,
    /// The client's read rate was too low.
    Stalled(Timer, Duration),
    /// The body failed.
    Broken,
}

impl ResponseSender {
    /// `frames` are the encoded heads, which are sent before `body`.
    pub(super) fn new(id: StreamId, frames: Vec<u8>, body: Body) -> Self {
        Self {
            id,
            is_last: body.is_end_stream(),
            body,
            unsent: [frames.into(), Bytes::new()],
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
        session.connection.watch_stream(self.id, cx);
        let mut polled = self.poll_to_end(cx, session, deadline);
        if polled.is_pending()
            && (session.connection.is_lost() || session.connection.is_stopped(self.id))
        {
            polled = Poll::Ready(Err(BodySendError::Refused));
        }
        let timed_out = match ready!(polled) {
            Ok(()) => None,
            Err(BodySendError::Refused) => {
                session
                    .connection
                    .reset(self.id, ErrorCode::REQUEST_CANCELLED);
                None
            }
            Err(BodySendError::Stalled(timer, after)) => {
                session
                    .connection
                    .reset(self.id, ErrorCode::REQUEST_CANCELLED);
                Some((timer, after))
            }
            Err(BodySendError::Broken) => {
                session.connection.reset(self.id, ErrorCode::INTERNAL_ERROR);
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
            ready!(self.poll_send(cx, session, deadline))?;
            if self.is_last {
                let finished = session.connection.finish(self.id);
                return Poll::Ready(finished.map_err(|_| BodySendError::Refused));
            }
            if self.body.makes_encoder() {
                // A stream without a window holds no encoder.
                ready!(self.poll_room(cx, session, deadline))?;
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return Poll::Ready(Err(BodySendError::Broken)),
                None => {
                    self.is_last = true;
                    continue;
                }
            };
            let mut header = Vec::new();
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => {
                    write_data_header(data.len(), &mut header);
                    self.unsent = [header.into(), data];
                    self.is_last = self.body.is_end_stream();
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    write_trailers(&trailers, &mut header);
                    self.unsent = [header.into(), Bytes::new()];
                    self.is_last = true;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Sends the unsent frames.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        session: &Session,
        deadline: &Deadline,
    ) -> Poll<Result<(), BodySendError>> {
        while self.unsent.iter().any(|chunk| !chunk.is_empty()) {
            let mut chunks = std::mem::take(&mut self.unsent);
            let written = session.connection.poll_write(cx, self.id, &mut chunks);
            self.unsent = chunks;
            match written {
                Poll::Ready(Ok(bytes)) => {
                    self.min_rate.moved(&session.clock, bytes);
                    stop_waiting(deadline);
                }
                Poll::Ready(Err(StreamLost::Cancelled | StreamLost::Gone)) => {
                    return Poll::Ready(Err(BodySendError::Refused));
                }
                Poll::Pending => return self.wait_capacity(session, deadline, cx),
            }
        }
        if deadline.running() == Some(Timer::ResponseWrite) {
            self.min_rate.pause(&session.clock);
            deadline.stop();
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when the client's windows have room.
    fn poll_room(
        &mut self,
        cx: &mut Context<'_>,
        session: &Session,
        deadline: &Deadline,
    ) -> Poll<Result<(), BodySendError>> {
        match session.connection.poll_write(cx, self.id, &mut []) {
            Poll::Ready(Ok(_)) => {
                stop_waiting(deadline);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(StreamLost::Cancelled | StreamLost::Gone)) => {
                Poll::Ready(Err(BodySendError::Refused))
            }
            Poll::Pending => self.wait_capacity(session, deadline, cx),
        }
    }

    /// Waits, while the client's windows are exhausted.
    fn wait_capacity(
        &mut self,
        session: &Session,
        deadline: &Deadline,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), BodySendError>> {
        if let Some((timer, after)) = deadline.take_expired() {
            return Poll::Ready(Err(BodySendError::Stalled(timer, after)));
        }
        self.body.poll_upload(cx);
        let (clock, time) = (&session.clock, session.settings.write_timeout);
        let left = self.min_rate.wait(clock, time);
        if deadline.running() != Some(Timer::ResponseWrite) {
            deadline.start_late(clock, Timer::ResponseWrite, left, time);
        }
        Poll::Pending
    }
}

fn stop_waiting(deadline: &Deadline) {
    if deadline.running() == Some(Timer::ResponseWrite) {
        deadline.stop();
    }
}
