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
    #[error("an answer of {at_least_bytes} bytes or more, {max_bytes} allowed")]
    TooLarge {
        /// Its size as far as it is known, in bytes.
        at_least_bytes: u64,
        /// Maximum, in bytes.
        max_bytes: u64,
    },
    /// A 5xx response of an agent with an HTTP protocol, to be forwarded to the client.
    #[error("the server answers {}", .0.status.unwrap_or_default())]
    ServerError(Box<Block>),
}

impl CallError {
    /// The error of an answer of which more than `max_bytes` arrived.
    pub(crate) fn longer_than(max_bytes: usize) -> Self {
        let max_bytes = u64::try_from(max_bytes).unwrap_or(u64::MAX);
        Self::TooLarge {
            at_least_bytes: max_bytes.saturating_add(1),
            max_bytes,
        }
    }
}
