//! Steps that the inspections of request bodies and of response bodies share.

use super::edits;
use crate::exchange::Exchange;
use crate::record::agent_record::AgentSession;
use crate::response::body::Body;
use agent_protocol::{Decision, EventKind, ProxyMessage};
use http::Response;
use proxy_agent::{CallContext, CallError, Session};

/// The result of one agent's inspection of a body.
pub(super) enum BodyVerdict {
    /// The message continues.
    Allowed,
    /// The agent's response is sent instead. Boxed, because it is rare.
    Replied(Box<Response<Body>>),
    /// The agent failed, and the message continues without it.
    FailedOpen,
}

/// Maximum number of bytes that agents inspect, the same for all agents; `None` if none
/// `subscribes` to the bodies.
pub(super) fn inspection_limit(
    exchange: &Exchange,
    subscribes: fn(&AgentSession) -> bool,
) -> Option<u64> {
    let agents = exchange.completion.record.agents.as_ref()?;
    let mut sessions = agents.sessions.iter();
    let subscriber = sessions.find(|one| subscribes(one))?;
    Some(subscriber.agent.max_body_bytes)
}

/// Takes the session at `index`, to be returned by [`put_back`].
pub(super) fn take_session(exchange: &mut Exchange, index: usize) -> Option<AgentSession> {
    exchange.record().agents.as_mut()?.take(index)
}

/// Returns a session to its place. One that is dropped instead is closed, and the agent gets no
/// completion.
pub(super) fn put_back(exchange: &mut Exchange, index: usize, session: AgentSession) {
    let record = exchange.record().agents.get_or_insert_default();
    record.put_back(index, session);
}

/// Sends one piece of a body, and waits for the decision. `is_chunk` is true if further pieces may
/// follow.
///
/// # Errors
/// The call failed, or the decision edits fields that agents may not change.
pub(super) async fn send_piece(
    session: &mut Session,
    message: &ProxyMessage<'_>,
    kind: EventKind,
    is_chunk: bool,
    context: &CallContext,
) -> Result<Decision, CallError> {
    let decision = session.call(message, kind, is_chunk, context).await?;
    edits::check(&decision).map(|()| decision)
}
