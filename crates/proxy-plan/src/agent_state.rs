//! State of agents that outlives plans.

use proxy_health::{BreakerSettings, CircuitBreaker};
use proxy_limits::FairLimit;
use std::path::PathBuf;
use std::sync::Arc;

/// The address of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AgentEndpointAddress {
    /// Path of a Unix socket.
    Socket(PathBuf),
    /// Name of an upstream.
    Upstream(Arc<str>),
}

/// State of an agent shared by all workers, kept across plans while its settings are unchanged.
#[derive(Debug)]
pub struct AgentState {
    /// Stops calling the agent while it fails.
    pub breaker: Option<CircuitBreaker>,
    /// Calls without an answer, shared fairly among clients.
    pub queue: FairLimit,
}

/// Identity of an agent's state across plans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AgentIdentity {
    pub(crate) name: String,
    pub(crate) address: AgentEndpointAddress,
    pub(crate) breaker: Option<BreakerSettings>,
    pub(crate) max_queue_depth: u32,
}

impl AgentState {
    pub(crate) fn new(identity: &AgentIdentity) -> Self {
        Self {
            breaker: identity.breaker.map(CircuitBreaker::new),
            queue: FairLimit::new(identity.max_queue_depth),
        }
    }
}
