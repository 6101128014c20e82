//! The requests of a connection, and their running handlers.

use crate::agent::{Agent, AgentFailure, Answer};
use agent_protocol::{
    AgentMessage, BodyChunk, BodyData, BodyMode, Decision, DecisionMessage, ErrorCode,
    ErrorMessage, EventKind, ProxyMessage, RequestId, Wants,
};
use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use tokio::task::{AbortHandle, Id, JoinSet};

/// Maximum of requests on a connection; more are answered with an error.
const MAX_REQUESTS: usize = 4096;

/// The end of a handler.
struct Done<S> {
    id: RequestId,
    state: S,
    /// The answer, with the number of its event; `None` after a completion.
    answer: Option<(u32, Result<Answer, AgentFailure>)>,
}

enum Slot<S> {
    /// Between two events.
    Idle(S),
    /// Between two parts of a buffered body, with the earlier parts.
    Receiving(S, Vec<u8>),
    /// A handler runs; further events of the request wait.
    Busy(AbortHandle),
}

/// The requests of one connection.
pub(crate) struct Requests<A: Agent> {
    agent: Arc<A>,
    wants: Wants,
    slots: HashMap<RequestId, Slot<A::State>>,
    /// The request of each running handler.
    running: HashMap<Id, RequestId>,
    handlers: JoinSet<Done<A::State>>,
}

impl<A: Agent> Requests<A> {
    pub(crate) fn new(agent: Arc<A>, wants: Wants) -> Self {
        Self {
            agent,
            wants,
            slots: HashMap::new(),
            running: HashMap::new(),
            handlers: JoinSet::new(),
        }
    }

    /// Starts the handler of an event. Returns an answer that needs no handler.
    ///
    /// # Errors
    /// The message does not belong here.
    pub(crate) fn take(
        &mut self,
        mut message: ProxyMessage<'static>,
    ) -> Result<Option<AgentMessage<'static>>, &'static str> {
        let (id, is_first) = match &message {
            ProxyMessage::Hello(_) => return Err("a second hello"),
            ProxyMessage::Error(_) => return Err("the proxy reported an error"),
            ProxyMessage::Cancel(cancel) => {
                self.cancel(cancel.id);
                return Ok(None);
            }
            ProxyMessage::RequestHeaders(event) => (event.id, true),
            ProxyMessage::RequestBody(event) | ProxyMessage::ResponseBody(event) => {
                (event.id, false)
            }
            ProxyMessage::ResponseHeaders(event) => (event.id, false),
            ProxyMessage::Completion(event) => (event.id, false),
        };
        let (state, parts) = match (self.slots.remove(&id), is_first) {
            (None, true) if self.slots.len() < MAX_REQUESTS => (A::State::default(), Vec::new()),
            (None, true) => {
                return Ok(Some(failure(
                    id,
                    ErrorCode::Overloaded,
                    "too many requests",
                )));
            }
            (Some(Slot::Idle(state)), false) => (state, Vec::new()),
            (Some(Slot::Receiving(state, parts)), false) => (state, parts),
            (None, false) => return Err("an event of an unknown request"),
            (Some(_), true) => return Err("an id that is in use"),
            (Some(Slot::Busy(_)), false) => return Err("an event before the last was answered"),
        };
        if let Some(parts) = self.join(&mut message, parts) {
            self.slots.insert(id, Slot::Receiving(state, parts));
            return Ok(None);
        }
        let agent = Arc::clone(&self.agent);
        let handle = self.handlers.spawn(handle(agent, message, id, state));
        self.running.insert(handle.id(), id);
        self.slots.insert(id, Slot::Busy(handle));
        Ok(None)
    }

    /// Joins a part of a buffered body with the `parts` before it. Returns them if there are more to
    /// follow; otherwise `message` has the whole body.
    fn join(&self, message: &mut ProxyMessage<'static>, mut parts: Vec<u8>) -> Option<Vec<u8>> {
        let (chunk, mode): (&mut BodyChunk<'static>, _) = match message {
            ProxyMessage::RequestBody(chunk) => (chunk, self.wants.request_body),
            ProxyMessage::ResponseBody(chunk) => (chunk, self.wants.response_body),
            ProxyMessage::Hello(_)
            | ProxyMessage::RequestHeaders(_)
            | ProxyMessage::ResponseHeaders(_)
            | ProxyMessage::Completion(_)
            | ProxyMessage::Cancel(_)
            | ProxyMessage::Error(_) => return None,
        };
        if mode != BodyMode::Buffered || (chunk.last && parts.is_empty()) {
            return None;
        }
        parts.extend_from_slice(chunk.data.as_bytes());
        if !chunk.last {
            return Some(parts);
        }
        chunk.data = BodyData::from(parts);
        None
    }

    fn cancel(&mut self, id: RequestId) {
        if let Some(Slot::Busy(handler)) = self.slots.remove(&id) {
            handler.abort();
        }
    }

    /// The end of the next handler, with its optional answer. Never ready while none runs. Cancel
    /// safe.
    pub(crate) async fn answer(&mut self) -> Option<AgentMessage<'static>> {
        let Some(ended) = self.handlers.join_next_with_id().await else {
            return pending().await;
        };
        match ended {
            Ok((task, done)) => {
                self.running.remove(&task);
                self.settle(done)
            }
            Err(error) => {
                let id = self.running.remove(&error.id())?;
                if error.is_cancelled() {
                    return None;
                }
                self.slots.remove(&id);
                Some(failure(id, ErrorCode::Internal, "the handler panicked"))
            }
        }
    }

    fn settle(&mut self, done: Done<A::State>) -> Option<AgentMessage<'static>> {
        let Done { id, state, answer } = done;
        // A cancelled request may have ended just before it was aborted.
        self.slots.remove(&id)?;
        let (seq, answer) = answer?;
        match answer {
            Ok(mut decision) => {
                keep_completion(&mut decision);
                if self.wants.completion {
                    self.slots.insert(id, Slot::Idle(state));
                }
                let message = DecisionMessage { id, seq, decision };
                Some(AgentMessage::Decision(message))
            }
            Err(AgentFailure(cause)) => {
                if self.wants.completion {
                    self.slots.insert(id, Slot::Idle(state));
                }
                Some(failure(id, ErrorCode::Internal, &cause))
            }
        }
    }
}

/// The state of a request lasts until its completion, so that no decision skips it.
fn keep_completion(decision: &mut Decision) {
    if let Decision::Allow(allow) = decision {
        allow.skip.retain(|kind| *kind != EventKind::Completion);
    }
}

async fn handle<A: Agent>(
    agent: Arc<A>,
    message: ProxyMessage<'static>,
    id: RequestId,
    mut state: A::State,
) -> Done<A::State> {
    let answer = match &message {
        ProxyMessage::RequestHeaders(event) => {
            Some((event.seq, agent.request_headers(event, &mut state).await))
        }
        ProxyMessage::RequestBody(event) => {
            Some((event.seq, agent.request_body(event, &mut state).await))
        }
        ProxyMessage::ResponseHeaders(event) => {
            Some((event.seq, agent.response_headers(event, &mut state).await))
        }
        ProxyMessage::ResponseBody(event) => {
            Some((event.seq, agent.response_body(event, &mut state).await))
        }
        ProxyMessage::Completion(event) => {
            agent.completion(event, &mut state).await;
            None
        }
        ProxyMessage::Hello(_) | ProxyMessage::Cancel(_) | ProxyMessage::Error(_) => None,
    };
    Done { id, state, answer }
}

fn failure(id: RequestId, code: ErrorCode, message: &str) -> AgentMessage<'static> {
    AgentMessage::Error(ErrorMessage {
        id,
        code,
        message: message.to_owned().into(),
    })
}
