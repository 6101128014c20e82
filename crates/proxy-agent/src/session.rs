//! One request on one connection to an agent.

use crate::connection::{Connection, bad};
use crate::early_denial::EarlyDenial;
use crate::error::CallError;
use agent_protocol::{BodyMode, Completion, Decision, EventKind, ProxyMessage, RequestId, Wants};
use std::rc::Rc;

/// One request on one connection to an agent. Dropped before [`Session::complete`], it tells the agent
/// that the request does not concern it any more.
#[derive(Debug)]
pub struct Session {
    connection: Rc<Connection>,
    id: RequestId,
    next_seq: u32,
    wants: Wants,
    /// An event has been sent, and not answered.
    awaits_answer: bool,
    is_over: bool,
}

/// The decision about a request's head, and the session for the events that follow.
#[derive(Debug)]
pub struct HeadAnswer {
    /// The decision.
    pub decision: Decision,
    /// The session; `None` for protocols that know heads of requests alone.
    pub session: Option<Session>,
}

impl From<Decision> for HeadAnswer {
    /// Without a session: no event follows.
    fn from(decision: Decision) -> Self {
        Self {
            decision,
            session: None,
        }
    }
}

/// A call without an answer. Dropped, it is given up, and a denial that has begun stands.
struct PendingCall<'s> {
    session: &'s Session,
    denial: &'s EarlyDenial,
}

impl Session {
    pub(crate) fn new(connection: Rc<Connection>, wants: Wants) -> Result<Self, CallError> {
        let id = connection.next_id()?;
        Ok(Self {
            connection,
            id,
            next_seq: 0,
            wants,
            awaits_answer: false,
            is_over: false,
        })
    }

    /// How the agent gets the body of the request.
    pub fn request_body(&self) -> BodyMode {
        self.wants.request_body
    }

    /// Whether the agent gets the head of the response.
    pub fn wants_response_headers(&self) -> bool {
        self.wants.response_headers
    }

    /// How the agent gets the body of the response.
    pub fn response_body(&self) -> BodyMode {
        self.wants.response_body
    }

    /// The id of the request and the number of its next event.
    pub fn next_event(&self) -> (RequestId, u32) {
        (self.id, self.next_seq)
    }

    /// Sends `event`, which has the number of [`Self::next_event`], and waits for the decision. A call
    /// that is dropped leaves a denial that stands all the same in `denial`.
    ///
    /// # Errors
    /// There is none.
    pub async fn call(
        &mut self,
        event: &ProxyMessage<'_>,
        (kind, is_chunk): (EventKind, bool),
        denial: &EarlyDenial,
    ) -> Result<Decision, CallError> {
        let answer = self.connection.call(self.next_event(), event)?;
        self.next_seq += 1;
        self.awaits_answer = true;
        let pending = PendingCall {
            session: self,
            denial,
        };
        let answer = answer.await;
        drop(pending);
        self.awaits_answer = false;
        let decision = answer.unwrap_or(Err(CallError::Closed))?;
        let checked = decision.check(kind, is_chunk);
        checked.map_err(bad)?;
        self.apply_skips(&decision);
        Ok(decision)
    }

    /// Records that the agent gets no further event of `kind`.
    pub fn end_events(&mut self, kind: EventKind) {
        match kind {
            EventKind::RequestHeaders => {}
            EventKind::RequestBody => self.wants.request_body = BodyMode::None,
            EventKind::ResponseHeaders => self.wants.response_headers = false,
            EventKind::ResponseBody => self.wants.response_body = BodyMode::None,
            EventKind::Completion => self.wants.completion = false,
        }
    }

    /// Whether the agent waits for a further event.
    fn expects_more(&self) -> bool {
        let Wants {
            request_body,
            response_headers,
            response_body,
            completion,
        } = self.wants;
        response_headers
            || completion
            || [request_body, response_body]
                .iter()
                .any(|mode| *mode != BodyMode::None)
    }

    /// Tells the agent how the request ended.
    pub fn complete(mut self, completion: Completion<'_>) {
        if !self.wants.completion {
            return;
        }
        self.is_over = true;
        let completion = Completion {
            id: self.id,
            ..completion
        };
        // A connection that is closed or full is told nothing.
        let message = ProxyMessage::Completion(completion);
        self.connection.send(&message).unwrap_or_default();
    }

    fn apply_skips(&mut self, decision: &Decision) {
        let Decision::Allow(allow) = decision else {
            return;
        };
        for kind in &allow.skip {
            self.end_events(*kind);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_over && (self.awaits_answer || self.expects_more()) {
            self.connection.cancel(self.id);
        }
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let Self { session, denial } = self;
        if session.connection.give_up(session.id) {
            denial.set_plain();
        }
    }
}
