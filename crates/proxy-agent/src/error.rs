//! Error of a call without a decision.

use agent_protocol::Block;

/// Error of a call without a decision. The text is for logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No connection: the socket refuses, or too little time has passed since it did.
    #[error("{0}")]
    Unreachable(String),
    /// The agent closed the connection before it answered.
    #[error("the agent closed the connection")]
    Closed,
    /// The agent says that it has too much to do.
    #[error("{0}")]
    Overloaded(String),
    /// The agent broke the protocol, or answered what was not asked.
    #[error("{0}")]
    BadReply(String),
    /// The answer is larger than `max-agent-response-bytes`.
    #[error("{0}")]
    TooLarge(String),
    /// The agent speaks HTTP and has answered 5xx: what it answered, for the client.
    #[error("the server answers {}", .0.status.unwrap_or_default())]
    ServerError(Box<Block>),
}
