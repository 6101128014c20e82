//! One attempt by HTTP/2.

use super::{Answered, AttemptOutcome, Attempts};
use crate::interim;
use crate::request_body::RequestBody;
use crate::upgrade::RequestedUpgrade;
use http::Request;
use proxy_errors::{Detail, Problem, Reason};
use proxy_pool::{Http2Request, Http2RequestError, SendError, StreamSlot, call_tunnel};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

impl Attempts<'_, '_> {
    /// Sends the request by `lane` and waits for the head of its response.
    pub(super) async fn call(
        &mut self,
        lane: StreamSlot,
        asked: Option<&RequestedUpgrade>,
    ) -> AttemptOutcome {
        self.start_timer();
        let request = std::mem::take(&mut self.request);
        if asked.is_some() {
            return Box::pin(self.dig(lane, request)).await;
        }
        let kept = lane.kept;
        let mut call = match Http2Request::begin(lane, request) {
            Ok(call) => Box::new(call),
            // It ended since it was chosen.
            Err(unsent) if kept => {
                self.note_stale();
                (_, self.request) = *unsent;
                return AttemptOutcome::Again;
            }
            // A fresh connection ended before it took anything.
            Err(unsent) => {
                let (fault, request) = *unsent;
                if !self.may_retry() {
                    return self.failed(fault);
                }
                self.request = request;
                self.note_retry();
                self.note_failure(&self.problem(&SendError::Http2Request(fault)));
                return AttemptOutcome::Elsewhere;
            }
        };
        let client = Rc::clone(self.exchange.client());
        let understands = self.client_takes_interim();
        let answer = poll_fn(|cx| {
            let polled = call.poll_response(cx, |interim| {
                if understands {
                    client.announce(&interim::as_head(interim));
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
            Ok(response) => AttemptOutcome::Answered(Answered::Http2(response, call)),
            Err(fault) => self.gave_up(*call, &fault),
        }
    }

    fn failed(&self, fault: Http2RequestError) -> AttemptOutcome {
        AttemptOutcome::Failed(self.problem(&SendError::Http2Request(fault)))
    }

    /// What is to be done after a call without an answer.
    fn gave_up(&mut self, call: Http2Request<RequestBody>, fault: &SendError) -> AttemptOutcome {
        let problem = self.problem(fault);
        let unseen = matches!(
            fault,
            SendError::Http2Request(Http2RequestError::Unprocessed(_))
        );
        let lost = matches!(fault, SendError::Http2Request(Http2RequestError::Broken(error)) if error.is_io());
        let kept = call.was_kept();
        // As over HTTP/1.1: the connection ended without a word.
        let silent = lost && call.is_unanswered() && self.replayable;
        if !(unseen || silent) || !self.may_retry() {
            return AttemptOutcome::Failed(problem);
        }
        let Some(request) = call.into_request(RequestBody::default()) else {
            return AttemptOutcome::Failed(problem);
        };
        self.request = request;
        self.note_retry();
        if kept && !unseen {
            // It may have been ending already when the request was sent.
            self.note_stale();
            return AttemptOutcome::Again;
        }
        self.note_failure(&problem);
        AttemptOutcome::Elsewhere
    }

    /// Asks for a tunnel. [RFC 8441]
    async fn dig(&mut self, lane: StreamSlot, request: Request<RequestBody>) -> AttemptOutcome {
        let name = &*self.to.upstream.name;
        let declined = || Problem::new(Reason::UpgradeDeclined, Detail::name(name));
        let (head, _) = request.into_parts();
        let digging = call_tunnel(lane, head, self.timers.deadline());
        match digging.await {
            Ok(None) => AttemptOutcome::Failed(declined()),
            Ok(Some((response, Some(tunnel)))) => {
                AttemptOutcome::Answered(Answered::Tunnel(response, tunnel))
            }
            Ok(Some((refusal, None))) => AttemptOutcome::Answered(Answered::Refusal(refusal)),
            Err(fault) => AttemptOutcome::Failed(self.problem(&fault)),
        }
    }
}
