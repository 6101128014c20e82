//! One worker's access to one agent, for every protocol.

use crate::call_context::CallContext;
use crate::error::CallError;
use crate::ext_authz::ExtAuthzClient;
use crate::forward_auth::ForwardAuthClient;
use crate::link::AgentUpstream;
use crate::native::NativeClient;
use crate::session::HeadAnswer;
use agent_protocol::RequestHeaders;
use proxy_model::AgentProtocol;
use proxy_plan::AgentEndpoint;
use std::sync::Arc;
use std::time::Duration;

/// One worker's access to one agent. Connections are opened on demand, and closed when it is
/// dropped.
#[derive(Debug)]
pub struct AgentClient {
    endpoint: Arc<AgentEndpoint>,
    protocol: Protocol,
}

#[derive(Debug)]
enum Protocol {
    Native(NativeClient),
    ForwardAuth(ForwardAuthClient),
    ExtAuthz(ExtAuthzClient),
}

impl AgentClient {
    /// A client without connections.
    #[must_use]
    pub fn new(endpoint: Arc<AgentEndpoint>) -> Self {
        let own = Arc::clone(&endpoint);
        let protocol = match endpoint.protocol {
            AgentProtocol::Native => Protocol::Native(NativeClient::new(own)),
            AgentProtocol::ForwardAuth => Protocol::ForwardAuth(ForwardAuthClient::new(own)),
            AgentProtocol::ExtAuthz => Protocol::ExtAuthz(ExtAuthzClient::new(own)),
        };
        Self { endpoint, protocol }
    }

    /// The settings of the client's connections.
    pub fn endpoint(&self) -> &Arc<AgentEndpoint> {
        &self.endpoint
    }

    /// Requests a decision on the head of a request, at the time `now` since the worker's start.
    /// The id and the number of the event in `head` are replaced. `upstream` is the agent's
    /// upstream, unless it has a Unix socket. A denial read before a call fails or is dropped is
    /// kept in `context`.
    ///
    /// # Errors
    /// There is no decision.
    pub async fn begin(
        &self,
        now: Duration,
        head: RequestHeaders<'_>,
        context: &CallContext,
        upstream: Option<AgentUpstream<'_>>,
    ) -> Result<HeadAnswer, CallError> {
        let decision = match &self.protocol {
            Protocol::Native(client) => return client.begin(now, head, context).await,
            Protocol::ForwardAuth(client) => {
                client.decide(&head, now, upstream, &context.denial).await?
            }
            Protocol::ExtAuthz(client) => client.decide(&head, upstream, context).await?,
        };
        Ok(HeadAnswer::from(decision))
    }
}
