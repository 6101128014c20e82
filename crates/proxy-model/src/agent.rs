//! External agents that decide about requests.

use crate::place::{Place, Setting};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An external agent, reached over a Unix socket.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Name, unique among agents.
    pub name: String,
    /// Place of the block.
    pub place: Place,
    /// Path of its Unix socket.
    pub unix_socket: Setting<PathBuf>,
    /// Treatment of requests while the agent is unavailable.
    pub failure_mode: Setting<FailureMode>,
    /// Maximum time for one decision.
    pub timeout: Setting<Duration>,
    /// Encoding offered to the agent.
    pub encoding: Setting<AgentEncoding>,
    /// Limits after which the agent is no longer called; `None` never stops.
    pub circuit_breaker: Option<AgentBreaker>,
}

/// Treatment of requests while an agent is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureMode {
    /// Requests continue without a decision.
    Open,
    /// Requests are refused.
    Closed,
}

/// The transport to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentTransport {
    /// A Unix socket.
    UnixSocket,
}

/// The encoding of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentEncoding {
    /// JSON.
    Json,
    /// `MessagePack`, if the agent accepts it.
    MessagePack,
}

/// The circuit breaker of an agent.
#[derive(Clone, Debug)]
pub struct AgentBreaker {
    /// Place of the block.
    pub place: Place,
    /// Consecutive failures that open the breaker.
    pub failure_threshold: Setting<u32>,
    /// Time for which the breaker stays open.
    pub timeout: Setting<Duration>,
}

impl fmt::Display for FailureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Closed => "closed",
        })
    }
}

impl fmt::Display for AgentEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::MessagePack => "message-pack",
        })
    }
}
