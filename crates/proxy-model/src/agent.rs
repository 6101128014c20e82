//! External agents that decide about requests.

use crate::index::UpstreamIndex;
use crate::place::{Place, Setting};
use http::HeaderName;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An external agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Name, unique among agents.
    pub name: String,
    /// Place of the block.
    pub place: Place,
    /// Address that connections are opened to.
    pub address: AgentAddress,
    /// Treatment of requests while the agent is unavailable.
    pub failure_mode: Setting<FailureMode>,
    /// The agent's protocol.
    pub protocol: Setting<AgentProtocol>,
    /// Events that the agent may receive in addition to the heads of requests.
    pub events: Vec<Setting<AgentEventKind>>,
    /// Treatment of bodies above its inspection limit.
    pub on_oversize: Setting<OversizeMode>,
    /// The path of the request to a `forward-auth` agent.
    pub request_path: Setting<String>,
    /// The `Host` of the request to a `forward-auth` agent; `None` sends the client's.
    pub request_host: Option<Setting<String>>,
    /// Headers of a `forward-auth` agent's answer that are copied to the request.
    pub copy_headers: Vec<Setting<HeaderName>>,
    /// Headers of a `forward-auth` agent's answer that are copied to the response.
    pub copy_response_headers: Vec<Setting<HeaderName>>,
    /// Maximum time for one decision.
    pub timeout: Setting<Duration>,
    /// Encoding offered to the agent.
    pub encoding: Setting<AgentEncoding>,
    /// Circuit breaker of the agent; `None` if disabled.
    pub circuit_breaker: Option<AgentBreaker>,
}

/// The address of an agent.
#[derive(Clone, Debug)]
pub enum AgentAddress {
    /// Path of a Unix socket.
    Socket(Setting<PathBuf>),
    /// An upstream, over TCP or TLS; not for [`AgentProtocol::Native`].
    Upstream(Setting<UpstreamIndex>),
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
    /// Unix socket of this machine.
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

/// The protocol of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentProtocol {
    /// The proxy's own.
    Native,
    /// `envoy.service.auth.v3`.
    ExtAuthz,
    /// A request over HTTP/1.1 for each decision.
    ForwardAuth,
}

/// A point in a request at which an agent is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentEventKind {
    /// The request's head arrived.
    RequestHeaders,
    /// The request's body arrived.
    RequestBody,
    /// The response's head arrived.
    ResponseHeaders,
    /// The response's body arrived.
    ResponseBody,
}

/// Treatment of bodies above an agent's inspection limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OversizeMode {
    /// Larger bodies are refused.
    Block,
    /// Larger bodies pass after the agent has inspected their beginning.
    Pass,
}

/// The circuit breaker of an agent.
#[derive(Clone, Debug)]
pub struct AgentBreaker {
    /// Place of the block.
    pub place: Place,
    /// Consecutive failures that open the breaker.
    pub failure_threshold: Setting<u32>,
    /// Open time of the breaker.
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

impl fmt::Display for AgentProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::ExtAuthz => "ext-authz",
            Self::ForwardAuth => "forward-auth",
        })
    }
}

impl fmt::Display for AgentEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RequestHeaders => "request-headers",
            Self::RequestBody => "request-body",
            Self::ResponseHeaders => "response-headers",
            Self::ResponseBody => "response-body",
        })
    }
}

impl fmt::Display for OversizeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Block => "block",
            Self::Pass => "pass",
        })
    }
}
