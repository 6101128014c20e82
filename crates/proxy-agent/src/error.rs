//! Why a call has no decision.

/// Why a call has no decision. The text is for logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No connection: the socket refuses, or too little time has passed since it did.
    #[error("{0}")]
    Unreachable(String),
    /// The agent closed the connection before it answered.
    #[error("the agent closed the connection")]
    Closed,
    /// The agent says that it has too much to do, or does not read its events.
    #[error("{0}")]
    Overloaded(String),
    /// The agent broke the protocol, or answered what was not asked.
    #[error("{0}")]
    BadReply(String),
}
