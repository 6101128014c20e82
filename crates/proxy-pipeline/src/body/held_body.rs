//! What was read of a body before it was wanted, and what comes behind that.

use super::upstream_body::UpstreamBody;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use proxy_pool::SendError;
use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

/// What was read of a body before it was wanted.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) pieces: VecDeque<Frame<Bytes>>,
    pub(super) bytes: u64,
    /// What has not been read yet.
    pub(super) rest: Option<Box<UpstreamBody>>,
}

impl Held {
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        max_bytes: u64,
    ) -> Poll<Result<(), SendError>> {
        while self.bytes < max_bytes
            && let Some(rest) = &mut self.rest
        {
            match ready!(rest.poll(cx)) {
                Some(Ok(frame)) => {
                    self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
                    self.pieces.push_back(frame);
                }
                Some(Err(fault)) => return Poll::Ready(Err(fault)),
                None => self.rest = None,
            }
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        match &mut self.rest {
            Some(rest) => rest.poll(cx),
            None => Poll::Ready(None),
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let rest = self.rest.as_ref().map(|rest| rest.body.size_hint());
        size_of(&self.pieces, rest)
    }
}

/// The length of pieces that were read and of the rest, if both are known.
pub(super) fn size_of(pieces: &VecDeque<Frame<Bytes>>, rest: Option<SizeHint>) -> SizeHint {
    let read = pieces.iter().filter_map(Frame::data_ref).map(Bytes::len);
    let read = read.sum::<usize>() as u64;
    match rest.map_or(Some(0), |rest| rest.exact()) {
        Some(rest) if !pieces.iter().any(Frame::is_trailers) => SizeHint::with_exact(read + rest),
        Some(_) | None => SizeHint::default(),
    }
}
