//! One request on one connection to an agent.

use crate::call_context::CallContext;
use crate::connection::{Agreement, Connection, EventNumber, bad};
use crate::error::CallError;
use agent_protocol::{
    BodyChunk, BodyData, BodyMode, Completion, Decision, EventKind, MAX_PART_BYTES, ProxyMessage,
    RequestId, Wants,
};
use std::borrow::Cow;
use std::rc::Rc;
use tokio::sync::oneshot;

/// One request on one connection to an agent. If dropped before [`Session::complete`], it notifies
/// the agent that the request has ended.
#[derive(Debug)]
pub struct Session {
    connection: Rc<Connection>,
    id: RequestId,
    next_seq: u32,
    wants: Wants,
    has_body_parts: bool,
    /// An event was sent, and is not answered yet.
    awaits_answer: bool,
    is_over: bool,
}

/// The decision on a request's head, and the session for the following events.
#[derive(Debug)]
pub struct HeadAnswer {
    /// Decision on the head; body events may follow.
    pub decision: Decision,
    /// The session; `None` for protocols limited to heads of requests.
    pub session: Option<Session>,
}

impl From<Decision> for HeadAnswer {
    /// Makes an answer without a session: no event follows.
    fn from(decision: Decision) -> Self {
        Self {
            decision,
            session: None,
        }
    }
}

/// A call without an answer. If dropped, it is abandoned, and a partial denial stays valid.
struct PendingCall<'s> {
    session: &'s Session,
    context: &'s CallContext,
}

/// Receiver of the decision on an event.
type Answer = oneshot::Receiver<Result<Decision, CallError>>;

impl Session {
    pub(crate) fn new(connection: Rc<Connection>, agreement: Agreement) -> Result<Self, CallError> {
        let id = connection.begin_session()?;
        Ok(Self {
            connection,
            id,
            next_seq: 0,
            wants: agreement.wants,
            has_body_parts: agreement.has_body_parts,
            awaits_answer: false,
            is_over: false,
        })
    }

    /// Delivery of the request body to the agent.
    pub fn request_body(&self) -> BodyMode {
        self.wants.request_body
    }

    /// Returns true if the agent gets the head of the response.
    pub fn wants_response_headers(&self) -> bool {
        self.wants.response_headers
    }

    /// Delivery of the response body to the agent.
    pub fn response_body(&self) -> BodyMode {
        self.wants.response_body
    }

    /// The id of the request and the number of its next event.
    pub fn next_event(&self) -> EventNumber {
        EventNumber {
            id: self.id,
            seq: self.next_seq,
        }
    }

    /// Sends `event`, of this kind and with the number of [`Self::next_event`], and waits for the
    /// decision. `is_chunk` is true for one of several pieces of a body. A denial read before the
    /// call is dropped is kept in `context`.
    ///
    /// # Errors
    /// The agent sends no valid decision on the event.
    pub async fn call(
        &mut self,
        event: &ProxyMessage<'_>,
        kind: EventKind,
        is_chunk: bool,
        context: &CallContext,
    ) -> Result<Decision, CallError> {
        let answer = if self.has_body_parts {
            self.send_parts(event).await?
        } else {
            self.connection.call(self.next_event(), event).await?
        };
        self.next_seq += 1;
        self.awaits_answer = true;
        let pending = PendingCall {
            session: self,
            context,
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

    /// Sends `event`, a large body in parts, so that events of other requests may be sent between
    /// these.
    async fn send_parts(&mut self, event: &ProxyMessage<'_>) -> Result<Answer, CallError> {
        let (chunk, message): (_, fn(_) -> _) = match event {
            ProxyMessage::RequestBody(chunk) => (chunk, ProxyMessage::RequestBody),
            ProxyMessage::ResponseBody(chunk) => (chunk, ProxyMessage::ResponseBody),
            ProxyMessage::Hello(_)
            | ProxyMessage::RequestHeaders(_)
            | ProxyMessage::ResponseHeaders(_)
            | ProxyMessage::Completion(_)
            | ProxyMessage::Cancel(_)
            | ProxyMessage::Error(_) => {
                return self.connection.call(self.next_event(), event).await;
            }
        };
        let mut rest = chunk.data.as_bytes();
        while let Some((part, after)) = rest.split_at_checked(MAX_PART_BYTES)
            && !after.is_empty()
        {
            let part = message(body_part(chunk, part, false));
            self.connection.send_in_turn(&part).await?;
            // From now on, a drop has to cancel the call.
            self.awaits_answer = true;
            rest = after;
        }
        let last = message(body_part(chunk, rest, true));
        self.connection.call(self.next_event(), &last).await
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

    /// Returns true if the agent expects a further event.
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

    /// Reports the end of the request to the agent.
    pub fn complete(mut self, completion: Completion<'_>) {
        if !self.wants.completion {
            return;
        }
        self.is_over = true;
        let completion = Completion {
            id: self.id,
            ..completion
        };
        // A closed connection needs no notification.
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

/// A part of the body in `chunk`. Only the last part has the marks of the chunk.
fn body_part<'p>(chunk: &BodyChunk<'_>, data: &'p [u8], is_last_part: bool) -> BodyChunk<'p> {
    BodyChunk {
        id: chunk.id,
        seq: chunk.seq,
        timeout_ms: chunk.timeout_ms,
        data: BodyData(Cow::Borrowed(data)),
        last: chunk.last && is_last_part,
        truncated: chunk.truncated && is_last_part,
        decoded: chunk.decoded,
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_over && (self.awaits_answer || self.expects_more()) {
            self.connection.cancel(self.id);
        }
        self.connection.end_session();
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let Self { session, context } = self;
        let has_expired = context.has_expired.get();
        if session.connection.give_up(session.id, has_expired) {
            context.denial.set_plain();
        }
    }
}
