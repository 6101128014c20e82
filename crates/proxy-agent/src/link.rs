//! Connections to agents: over Unix sockets, or to the targets of an upstream.

use crate::error::CallError;
use proxy_plan::{AgentEndpoint, AgentEndpointAddress, TargetPlan, UpstreamPlan};
use proxy_pool::{ConnectSettings, UpstreamStream, connect_once};
use proxy_upstream::TargetId;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// The upstream of an agent, in the active plan of a worker.
#[derive(Clone, Copy, Debug)]
pub struct AgentUpstream<'p> {
    /// Upstream with the agent's targets.
    pub upstream: &'p UpstreamPlan,
    /// Connection settings by index of the target.
    pub connectors: &'p [ConnectSettings],
}

/// A new connection to an agent.
pub(crate) struct AgentLink {
    pub(crate) stream: AgentStream,
    /// The target; `None` for a Unix socket.
    pub(crate) target: Option<TargetId>,
    /// Scheme and authority of requests.
    pub(crate) origin: String,
}

/// The byte stream to an agent.
#[derive(Debug)]
pub(crate) enum AgentStream {
    Unix(UnixStream),
    Target(UpstreamStream),
}

/// Connects to the agent. `turn` is the number of the attempt: targets are tried in rotation.
pub(crate) async fn connect(
    endpoint: &AgentEndpoint,
    upstream: Option<AgentUpstream<'_>>,
    turn: usize,
) -> Result<AgentLink, CallError> {
    match (&endpoint.address, upstream) {
        (AgentEndpointAddress::Upstream(_), Some(upstream)) => upstream.connect(turn).await,
        (AgentEndpointAddress::Upstream(name), None) => Err(CallError::Unreachable(format!(
            "the upstream \"{name}\" is not in the plan"
        ))),
        (AgentEndpointAddress::Socket(_), _) => {
            let stream = connect_socket(endpoint).await;
            let stream = stream.map_err(|error| CallError::Unreachable(error.to_string()))?;
            Ok(AgentLink {
                stream: AgentStream::Unix(stream),
                target: None,
                origin: "http://localhost".to_owned(),
            })
        }
    }
}

pub(crate) async fn connect_socket(endpoint: &AgentEndpoint) -> io::Result<UnixStream> {
    match &endpoint.address {
        AgentEndpointAddress::Socket(path) => UnixStream::connect(path).await,
        AgentEndpointAddress::Upstream(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

impl AgentUpstream<'_> {
    /// Returns true if a connection to `target` may be reused after an idle time of `idle`.
    pub(crate) fn keeps(&self, target: TargetId, idle: Duration) -> bool {
        let mut targets = self.upstream.targets.iter();
        idle < self.upstream.idle_for && targets.any(|one| one.id == target)
    }

    /// Connects to the first ready target that accepts, starting at index `turn`; backup targets
    /// are last. If no target is ready, all are tried in order.
    async fn connect(&self, turn: usize) -> Result<AgentLink, CallError> {
        let mut candidates: Vec<_> = self.upstream.ready_targets().collect();
        if candidates.is_empty() {
            candidates = self.upstream.targets.iter().enumerate().collect();
        }
        candidates.sort_by_key(|(_, target)| target.is_backup);
        let others = candidates.partition_point(|(_, target)| !target.is_backup);
        let (others, backups) = candidates.split_at_mut(others);
        for part in [others, backups] {
            let first = turn.checked_rem(part.len()).unwrap_or_default();
            part.rotate_left(first);
        }
        let mut failure = CallError::Unreachable("its upstream has no target".to_owned());
        for (position, target) in candidates {
            match self.dial(position, target).await {
                Ok(link) => return Ok(link),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn dial(&self, position: usize, target: &TargetPlan) -> Result<AgentLink, CallError> {
        let failed = |error: &str| CallError::Unreachable(format!("{}: {error}", target.label));
        let settings = self.connectors.get(position);
        let address = target.state.address();
        let Some((settings, address)) = settings.zip(address) else {
            return Err(failed("no address"));
        };
        let stream = connect_once(address, settings).await;
        let stream = stream.map_err(|error| failed(&error.to_string()))?;
        let scheme = if settings.tls.is_some() {
            "https"
        } else {
            "http"
        };
        Ok(AgentLink {
            stream: AgentStream::Target(stream),
            target: Some(target.id),
            origin: format!("{scheme}://{}", target.authority),
        })
    }
}

impl AsyncRead for AgentStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Target(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for AgentStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Target(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Target(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Target(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
