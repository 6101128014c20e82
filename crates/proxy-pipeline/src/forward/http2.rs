//! An attempt over HTTP/2.

use super::attempts::{Answered, AttemptOutcome, Attempts};
use super::interim_fields;
use crate::forward::upgrade::RequestedUpgrade;
use crate::response::interim;
use crate::upload::request_body::RequestBody;
use http::Request;
use proxy_errors::{Detail, Problem, Reason};
use proxy_model::RetryCause;
use proxy_pool::{
    ExtendedConnectResponse, Http2Request, Http2RequestError, RejectedRequest, SendError,
    StreamSlot, extended_connect,
};
use std::future::poll_fn;
use std::task::Poll;

impl Attempts<'_, '_> {
    /// Sends the request on `stream_slot` and waits for the head of its response.
    pub(super) async fn send_http2(
        &mut self,
        stream_slot: StreamSlot,
        requested: Option<&RequestedUpgrade>,
    ) -> AttemptOutcome {
        self.start_timer();
        let request = self.request_for_call();
        if requested.is_some() {
            return Box::pin(self.open_tunnel(stream_slot, request)).await;
        }
        let reused = stream_slot.reused;
        let mut call = match Http2Request::begin(stream_slot, request) {
            Ok(call) => Box::new(call),
            // The connection ended after it was chosen.
            Err(rejected) if reused => {
                self.record_stale();
                self.request = rejected.request;
                return AttemptOutcome::RetrySame;
            }
            // A new connection ended before it accepted a request.
            Err(rejected) => {
                let RejectedRequest { error, request } = *rejected;
                if !self.take_retry(RetryCause::Reset) {
                    return self.failed(error);
                }
                self.request = request;
                self.record_retry();
                self.record_failure(&self.problem(&SendError::Http2Request(error)));
                return AttemptOutcome::RetryNext;
            }
        };
        let understands = self.client_takes_interim();
        let (exchange, route) = (&*self.exchange, self.to.route);
        let answer = poll_fn(|cx| {
            let polled = call.poll_response(cx, |interim| {
                if understands {
                    let is_kept = |name: &_| interim_fields::is_kept(exchange, route, name);
                    let kept = interim::as_head(interim, is_kept);
                    exchange.client().queue_interim(&kept);
                }
            });
            match polled {
                Poll::Ready(answer) => Poll::Ready(answer.map_err(SendError::Http2Request)),
                Poll::Pending => match self.timers.deadline().take_expired() {
                    Some((timer, after)) => Poll::Ready(Err(SendError::TimedOut { timer, after })),
                    None => Poll::Pending,
                },
            }
        });
        match answer.await {
            Ok(response) => AttemptOutcome::Answered(Answered::Http2(Box::new(response), call)),
            Err(fault) => self.after_failure(*call, &fault),
        }
    }

    /// The request; a copy is kept if another target may be tried.
    fn request_for_call(&mut self) -> Request<RequestBody> {
        let request = std::mem::take(&mut self.request);
        // The error record needs the URI.
        *self.request.uri_mut() = request.uri().clone();
        if self.keeps_request() {
            *self.request.method_mut() = request.method().clone();
            *self.request.headers_mut() = request.headers().clone();
            *self.request.version_mut() = request.version();
        }
        request
    }

    fn failed(&self, fault: Http2RequestError) -> AttemptOutcome {
        AttemptOutcome::Failed(self.problem(&SendError::Http2Request(fault)))
    }

    /// The next step after a request without a response.
    fn after_failure(
        &mut self,
        call: Http2Request<RequestBody>,
        fault: &SendError,
    ) -> AttemptOutcome {
        let problem = self.problem(fault);
        let unprocessed = matches!(
            fault,
            SendError::Http2Request(Http2RequestError::Unprocessed(_))
        );
        let broken = if let SendError::Http2Request(Http2RequestError::Broken(error)) = fault {
            Some(error)
        } else {
            None
        };
        // As with HTTP/1.1, the connection, or the stream, ended without a response.
        let is_lost = broken.is_some_and(h2::Error::is_io);
        let is_reset = broken.is_some_and(|error| error.is_reset() && error.is_remote());
        let silent = (is_lost || is_reset) && call.is_unanswered() && self.replayable;
        self.was_closing = call.was_reused() && is_graceful_close(fault);
        let is_stale = self.was_closing || is_lost && silent && call.was_reused();
        let cause = if unprocessed || silent {
            Some(RetryCause::Reset)
        } else {
            self.cause_of(fault).filter(|_| call.is_unanswered())
        };
        let kept_request = || call.into_request(RequestBody::default());
        match cause {
            None => AttemptOutcome::Failed(problem),
            Some(_) if is_stale => self.retry_stale(kept_request, problem),
            Some(cause) => {
                if !self.take_retry(cause) {
                    return AttemptOutcome::Failed(problem);
                }
                let Some(request) = kept_request() else {
                    return AttemptOutcome::Failed(problem);
                };
                self.request = request;
                self.record_retry();
                self.record_failure(&problem);
                AttemptOutcome::RetryNext
            }
        }
    }

    /// Sends the request to the same target again: its connection may have been closing already when
    /// the request was sent. Without a retry left, or without the request, the attempt has failed
    /// with `problem`.
    fn retry_stale(
        &mut self,
        request: impl FnOnce() -> Option<Request<RequestBody>>,
        problem: Problem,
    ) -> AttemptOutcome {
        if !self.take_stale_retry() {
            return AttemptOutcome::Failed(problem);
        }
        let Some(request) = request() else {
            return AttemptOutcome::Failed(problem);
        };
        self.request = request;
        self.record_retry();
        self.record_stale();
        AttemptOutcome::RetrySame
    }

    /// Sends an extended CONNECT. [RFC 8441]
    async fn open_tunnel(
        &mut self,
        stream_slot: StreamSlot,
        request: Request<RequestBody>,
    ) -> AttemptOutcome {
        let name = &*self.to.upstream.name;
        let declined = || Problem::new(Reason::UpgradeDeclined, Detail::name(name));
        let reused = stream_slot.reused;
        let (head, body) = request.into_parts();
        let copy = head.clone();
        let connecting = extended_connect(stream_slot, head, self.timers.deadline());
        match connecting.await {
            Ok(None) => AttemptOutcome::Failed(declined()),
            Ok(Some(ExtendedConnectResponse { head, tunnel })) => {
                AttemptOutcome::Answered(match tunnel {
                    Some(tunnel) => Answered::Tunnel(Box::new(head), tunnel),
                    None => Answered::Refusal(Box::new(head)),
                })
            }
            Err(fault) => {
                self.was_closing = reused && is_graceful_close(&fault);
                let problem = self.problem(&fault);
                if !self.was_closing {
                    return AttemptOutcome::Failed(problem);
                }
                self.retry_stale(|| Some(Request::from_parts(copy, body)), problem)
            }
        }
    }
}

fn is_graceful_close(fault: &SendError) -> bool {
    matches!(fault, SendError::Http2Request(error) if error.is_graceful_close())
}
