//! The trait of an agent, and the usual decisions.

use agent_protocol::{
    Allow, Block, BodyChunk, Challenge, Completion, Decision, Redirect, RequestHeaders,
    ResponseHeaders, Text, Wants,
};
use std::future::{Future, ready};
use thiserror::Error;

/// The answer to an event.
pub type Answer = Decision;

/// The agent could not decide. The proxy applies the agent's `failure-mode`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct AgentFailure(pub String);

/// A program that decides about requests.
pub trait Agent: Send + Sync + 'static {
    /// The agent's state of a request between its events.
    type State: Default + Send + 'static;

    /// Name and version, for the proxy's log.
    fn name(&self) -> &str;

    /// Events that the agent requests in addition to the heads of requests. If there are later
    /// events, the kit itself requests completions too, in order to drop the state.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// The head of a request, always its first event.
    fn request_headers(
        &self,
        request: &RequestHeaders<'static>,
        state: &mut Self::State,
    ) -> impl Future<Output = Result<Answer, AgentFailure>> + Send;

    /// A body of a request, or a piece of it.
    fn request_body(
        &self,
        _chunk: &BodyChunk<'static>,
        _state: &mut Self::State,
    ) -> impl Future<Output = Result<Answer, AgentFailure>> + Send {
        ready(Ok(allow()))
    }

    /// The head of a response.
    fn response_headers(
        &self,
        _response: &ResponseHeaders<'static>,
        _state: &mut Self::State,
    ) -> impl Future<Output = Result<Answer, AgentFailure>> + Send {
        ready(Ok(allow()))
    }

    /// A body of a response, or a piece of it.
    fn response_body(
        &self,
        _chunk: &BodyChunk<'static>,
        _state: &mut Self::State,
    ) -> impl Future<Output = Result<Answer, AgentFailure>> + Send {
        ready(Ok(allow()))
    }

    /// The end of a request. A cancelled request has none.
    fn completion(
        &self,
        _completion: &Completion<'static>,
        _state: &mut Self::State,
    ) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// Continue with the request unchanged.
pub fn allow() -> Answer {
    Decision::Allow(Allow::default())
}

/// Refuses the request with 403 `WAF_BLOCKED`; the reason is only logged.
pub fn block(reason: impl Into<String>) -> Answer {
    Decision::Block(Block {
        reason: Some(reason.into()),
        ..Block::default()
    })
}

/// Redirects the client with 302.
pub fn redirect(location: impl Into<Text<'static>>) -> Answer {
    Decision::Redirect(Redirect {
        status: Redirect::DEFAULT_STATUS,
        location: location.into(),
        headers: Vec::new(),
        body: None,
    })
}

/// The client has to authenticate: 401 with a `www-authenticate`. The reason is only logged.
pub fn challenge(scheme: impl Into<Text<'static>>, reason: impl Into<String>) -> Answer {
    Decision::Challenge(Challenge {
        challenges: vec![scheme.into()],
        headers: Vec::new(),
        body: None,
        reason: Some(reason.into()),
    })
}
