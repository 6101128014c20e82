//! Error of a call without a decision.

use agent_protocol::Block;

/// Error of a call without a decision. The text is logged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No connection: the socket refuses, or a recent attempt failed.
    #[error("{0}")]
    Unreachable(String),
    /// The agent closed the connection before it answered.
    #[error("the agent closed the connection")]
    Closed,
    /// The agent reports overload.
    #[error("{0}")]
    Overloaded(String),
    /// The agent violated the protocol, or answered without an event.
    #[error("{0}")]
    BadReply(String),
    /// The answer is larger than `max-agent-response-bytes`.
    #[error("{0}")]
    TooLarge(String),
    /// A 5xx response of an agent with an HTTP protocol, to be forwarded to the client.
    #[error("the server answers {}", .0.status.unwrap_or_default())]
    ServerError(Box<Block>),
}
