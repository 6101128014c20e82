//! The part of a request's record about its agents.

use agent_protocol::{Completion, HeaderEdit, MetadataByAgent, RequestId};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use proxy_agent::Session;
use proxy_limits::ResponseReservation;
use proxy_plan::AgentPlan;
use proxy_telemetry::{AgentFields, AgentMetadata};
use std::sync::Arc;
use std::time::Duration;

/// Decisions of agents about a request, and their sessions.
#[derive(Debug, Default)]
pub(crate) struct AgentRecord {
    /// In the order of the route; agents that failed have none.
    pub(crate) sessions: Vec<AgentSession>,
    pub(crate) metadata: MetadataByAgent,
    /// Edits of the response decided before it arrived.
    pub(crate) response_edits: Vec<HeaderEdit>,
    /// Names of the response's fields that agents have set or removed.
    pub(crate) response_fields: Vec<HeaderName>,
    /// The last agent that was called, and the outcome.
    pub(crate) last: Option<(Arc<str>, &'static str)>,
    /// Time spent on waiting for agents.
    pub(crate) took: Duration,
    /// An agent's response that replaces the proxy's own.
    pub(crate) reply: Option<AgentReply>,
}

/// An agent with a session for the request.
#[derive(Debug)]
pub(crate) struct AgentSession {
    pub(crate) agent: Arc<AgentPlan>,
    pub(crate) session: Session,
}

/// Header fields and body of the response to a request that an agent refused.
#[derive(Debug, Default)]
pub(crate) struct AgentReply {
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// `None` keeps the proxy's own.
    pub(crate) body: Option<Bytes>,
    /// Memory of a large body.
    pub(crate) memory: Option<ResponseReservation>,
}

impl AgentRecord {
    /// Takes the session at `index`, which [`Self::put_back`] returns to its place.
    pub(crate) fn take(&mut self, index: usize) -> Option<AgentSession> {
        (index < self.sessions.len()).then(|| self.sessions.remove(index))
    }

    pub(crate) fn put_back(&mut self, index: usize, session: AgentSession) {
        self.sessions
            .insert(index.min(self.sessions.len()), session);
    }

    /// Returns true if an agent sees or edits the head of the response.
    pub(crate) fn act_on_response(&self) -> bool {
        let mut sessions = self.sessions.iter();
        !self.response_edits.is_empty()
            || sessions.any(|agent| agent.session.wants_response_headers())
    }

    /// The fields of the access log.
    pub(crate) fn access_fields(&self) -> Option<AgentFields<'_>> {
        let (agent, decision) = self.last.as_ref()?;
        Some(AgentFields {
            agent,
            decision,
            took: self.took,
            metadata: self.metadata_fields(),
        })
    }

    fn metadata_fields(&self) -> Vec<AgentMetadata<'_>> {
        let fields = self.metadata.iter().flat_map(|(agent, entries)| {
            let entries = entries.iter();
            entries.map(move |(key, value)| AgentMetadata { agent, key, value })
        });
        fields.collect()
    }

    /// Sends the completion to every agent that subscribes to it.
    pub(crate) fn complete(&mut self, completion: &Completion<'_>) {
        for AgentSession { session, .. } in self.sessions.drain(..) {
            session.complete(completion.clone());
        }
    }
}

/// Placeholder for the ID in a completion, which the agent's session sets.
pub(crate) const UNNUMBERED: RequestId = RequestId::CONNECTION;
