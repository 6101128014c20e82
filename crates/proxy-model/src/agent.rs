//! External agents that decide about requests.

use crate::place::{Place, Setting};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One external agent, reached over a Unix socket.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name, unique among agents.
    pub name: String,
    /// Its block.
    pub place: Place,
    /// Its socket.
    pub unix_socket: Setting<PathBuf>,
    /// What happens to requests while it cannot be asked.
    pub failure_mode: Setting<FailureMode>,
    /// How long one decision may take.
    pub timeout: Setting<Duration>,
    /// The encoding it is offered.
    pub encoding: Setting<AgentEncoding>,
    /// When it is not asked any more.
    pub circuit_breaker: Option<AgentBreaker>,
}

/// What happens to requests while an agent cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureMode {
    /// They go on without it.
    Open,
    /// They are refused.
    Closed,
}

/// How an agent is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentTransport {
    /// Over a Unix socket.
    UnixSocket,
}

/// How frames' payloads are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentEncoding {
    /// JSON.
    Json,
    /// `MessagePack`, where the agent agrees.
    MessagePack,
}

/// When an agent is not asked any more.
#[derive(Clone, Debug)]
pub struct AgentBreaker {
    /// Its block.
    pub place: Place,
    /// Consecutive failures that open it.
    pub failure_threshold: Setting<u32>,
    /// How long it stays open.
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
