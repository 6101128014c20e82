//! Sending of a request body within the target's flow-control windows.

use crate::unsent_frames::UnsentFrames;
use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body;
use proxy_http1::MAX_TURN_PIECES;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The sending half of a request.
#[derive(Debug)]
pub(super) struct Upload<B> {
    send: SendStream<Bytes>,
    body: B,
    /// Data that does not fit into the target's window yet.
    rest: Bytes,
    unsent: Rc<UnsentFrames>,
    /// The request cannot be retried: a part of its body was taken.
    pub(super) touched: bool,
}

/// The reason why a body was not sent completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UploadError {
    /// The body failed.
    Body,
    /// The target has stopped reading; its response has the reason.
    Target,
}

impl<B: Body<Data = Bytes> + Unpin> Upload<B> {
    pub(super) fn new(send: SendStream<Bytes>, body: B, unsent: Rc<UnsentFrames>) -> Self {
        Self {
            send,
            body,
            rest: Bytes::new(),
            unsent,
            touched: false,
        }
    }

    pub(super) fn into_body(self) -> B {
        self.body
    }

    /// Ready when the body was sent completely.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UploadError>> {
        for _ in 0..MAX_TURN_PIECES {
            while !self.rest.is_empty() {
                let room = ready!(self.poll_room(cx))?;
                let piece = self.rest.split_to(room.min(self.rest.len()));
                self.unsent.add(piece.len());
                let last = self.rest.is_empty() && self.body.is_end_stream();
                let sent = self.send.send_data(piece, last);
                if last || sent.is_err() {
                    return Poll::Ready(sent.map_err(|_| UploadError::Target));
                }
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => {
                    self.send.send_reset(Reason::CANCEL);
                    return Poll::Ready(Err(UploadError::Body));
                }
                None => {
                    let ended = self.send.send_data(Bytes::new(), true);
                    return Poll::Ready(ended.map_err(|_| UploadError::Target));
                }
            };
            self.touched = true;
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    let ended = self.send.send_trailers(trailers);
                    return Poll::Ready(ended.map_err(|_| UploadError::Target));
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, UploadError>> {
        if self.unsent.is_full(cx) {
            return Poll::Pending;
        }
        self.send.reserve_capacity(self.rest.len());
        match self.send.capacity() {
            0 => match ready!(self.send.poll_capacity(cx)) {
                Some(Ok(room)) => Poll::Ready(Ok(room)),
                Some(Err(_)) | None => Poll::Ready(Err(UploadError::Target)),
            },
            room => Poll::Ready(Ok(room)),
        }
    }
}
