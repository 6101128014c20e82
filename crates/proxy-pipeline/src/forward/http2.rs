//! One attempt by HTTP/2.

use super::{Answered, Attempts, Tried};
use crate::interim;
use crate::request_body::RequestBody;
use crate::upgrade::Asked;
use http::Request;
use proxy_errors::{Detail, Problem, Reason};
use proxy_pool::{Call, CallFault, Lane, SendFault, call_tunnel};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

impl Attempts<'_, '_> {
    /// Sends the request by `lane` and waits for the head of its response.
    pub(super) async fn call(&mut self, lane: Lane, asked: Option<&Asked>) -> Tried {
        self.start_timer();
        let request = std::mem::take(&mut self.request);
        if asked.is_some() {
            return Box::pin(self.dig(lane, request)).await;
        }
        let kept = lane.kept;
        let mut call = match Call::begin(lane, request) {
            Ok(call) => Box::new(call),
            // It ended since it was chosen.
            Err(unsent) if kept => {
                self.note_stale();
                (_, self.request) = *unsent;
                return Tried::Again;
            }
            // A fresh connection ended before it took anything.
            Err(unsent) => {
                let (fault, request) = *unsent;
                if !self.may_retry() {
                    return self.failed(fault);
                }
                self.request = request;
                self.note_retry();
                self.note_failure(&self.problem(&SendFault::Call(fault)));
                return Tried::Elsewhere;
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
                Poll::Ready(answer) => Poll::Ready(answer.map_err(SendFault::Call)),
                Poll::Pending => match self.timers.deadline().take_expired() {
                    Some((timer, after)) => Poll::Ready(Err(SendFault::TimedOut { timer, after })),
                    None => Poll::Pending,
                },
            }
        });
        match answer.await {
            Ok(response) => Tried::Answered(Answered::Http2(response, call)),
            Err(fault) => self.gave_up(*call, &fault),
        }
    }

    fn failed(&self, fault: CallFault) -> Tried {
        Tried::Failed(self.problem(&SendFault::Call(fault)))
    }

    /// What is to be done after a call without an answer.
    fn gave_up(&mut self, call: Call<RequestBody>, fault: &SendFault) -> Tried {
        let problem = self.problem(fault);
        let unseen = matches!(fault, SendFault::Call(CallFault::Unprocessed(_)));
        let lost = matches!(fault, SendFault::Call(CallFault::Broken(error)) if error.is_io());
        let kept = call.was_kept();
        // As over HTTP/1.1: the connection ended without a word.
        let silent = lost && call.is_unanswered() && self.replayable;
        if !(unseen || silent) || !self.may_retry() {
            return Tried::Failed(problem);
        }
        let Some(request) = call.into_request(RequestBody::default()) else {
            return Tried::Failed(problem);
        };
        self.request = request;
        self.note_retry();
        if kept && !unseen {
            // It may have been ending already when the request was sent.
            self.note_stale();
            return Tried::Again;
        }
        self.note_failure(&problem);
        Tried::Elsewhere
    }

    /// Asks for a tunnel. [RFC 8441]
    async fn dig(&mut self, lane: Lane, request: Request<RequestBody>) -> Tried {
        let name = &*self.to.upstream.name;
        let declined = || Problem::new(Reason::UpgradeDeclined, Detail::name(name));
        let (head, _) = request.into_parts();
        let digging = call_tunnel(lane, head, self.timers.deadline());
        match digging.await {
            Ok(None) => Tried::Failed(declined()),
            Ok(Some((response, Some(tunnel)))) => {
                Tried::Answered(Answered::Tunnel(response, tunnel))
            }
            Ok(Some((refusal, None))) => Tried::Answered(Answered::Refusal(refusal)),
            Err(fault) => Tried::Failed(self.problem(&fault)),
        }
    }
}
