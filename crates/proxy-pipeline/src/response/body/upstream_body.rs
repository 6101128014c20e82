//! A body that still arrives from the upstream.

use crate::upload::request_body::RequestBody;
use bytes::Bytes;
use http_body::Frame;
use proxy_clock::{RequestTimers, Timer};
use proxy_http1::Pipe;
use proxy_pool::{ResponseBody, SendError};
use std::task::{Context, Poll};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct UpstreamBody {
    pub(super) body: ResponseBody<RequestBody>,
    pub(super) timers: RequestTimers,
    pub(super) read_timeout: Duration,
}

impl UpstreamBody {
    /// Returns true if the client does not read. Its timer runs then, not the upstream's.
    #[inline]
    pub(super) fn is_client_stalled(&self) -> bool {
        self.timers.deadline().running() == Some(Timer::ResponseWrite)
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        match self.body.poll_frame(cx) {
            Poll::Pending => self.poll_timeout().map(|fault| Some(Err(fault))),
            frame @ Poll::Ready(_) => {
                self.received();
                frame
            }
        }
    }

    pub(super) fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Result<Option<usize>, SendError>> {
        match self.body.poll_splice(cx, pipe, most) {
            Poll::Pending => self.poll_timeout().map(Err),
            moved @ Poll::Ready(_) => {
                self.received();
                moved
            }
        }
    }

    #[inline]
    pub(super) fn received(&self) {
        if !self.is_client_stalled() {
            self.timers.stop();
        }
    }

    /// Ready with an error if a timer expired while no data arrived.
    pub(super) fn poll_timeout(&self) -> Poll<SendError> {
        if self.is_client_stalled() {
            return Poll::Pending;
        }
        self.timers.ensure(Timer::ResponseBody, self.read_timeout);
        match self.timers.deadline().take_expired() {
            Some((timer, after)) => Poll::Ready(SendError::TimedOut { timer, after }),
            None => Poll::Pending,
        }
    }
}
