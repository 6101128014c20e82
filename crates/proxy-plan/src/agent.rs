//! The compiled form of agents, and of a route's list of them.

use crate::agent_state::{AgentEndpointAddress, AgentIdentity, AgentState};
use crate::targets::TargetTransaction;
use http::{HeaderName, HeaderValue};
use proxy_health::BreakerSettings;
use proxy_model::{
    Agent, AgentAddress, AgentBreaker, AgentEncoding, AgentEventKind, AgentIndex, AgentProtocol,
    FailureMode, Limits, Model, OversizeMode, Setting,
};
use std::sync::Arc;
use std::time::Duration;

/// A compiled agent.
#[derive(Debug)]
pub struct AgentPlan {
    /// Index among the plan's agents.
    pub index: usize,
    /// The agent's name.
    pub name: Arc<str>,
    /// Index of the agent's upstream among the plan's upstreams; `None` for a Unix socket.
    pub upstream: Option<usize>,
    /// The settings of the agent's connections: plans with equal settings share them.
    pub endpoint: Arc<AgentEndpoint>,
    /// State shared by all workers.
    pub state: Arc<AgentState>,
    /// Maximum time for one decision.
    pub timeout: Duration,
    /// True if requests continue when it fails.
    pub fails_open: bool,
    /// The events that the agent may get.
    pub events: EventSet,
    /// True if larger bodies pass, and the agent gets their beginning.
    pub passes_oversize: bool,
    /// Maximum number of bytes of one body that the agent gets.
    pub max_body_bytes: u64,
    /// The setting that defines `max_body_bytes`.
    pub max_body_setting: &'static str,
}

/// The settings that connections to an agent depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentEndpoint {
    /// The agent's name.
    pub name: Arc<str>,
    /// Address that connections are opened to.
    pub address: AgentEndpointAddress,
    /// Protocol on these connections.
    pub protocol: AgentProtocol,
    /// Encoding offered to the agent.
    pub encoding: AgentEncoding,
    /// The events that the agent may request.
    pub events: EventSet,
    /// Maximum size of an event, in bytes.
    pub max_event_bytes: u64,
    /// Maximum size of an answer, in bytes.
    pub max_response_bytes: u64,
    /// The path of the request to a `forward-auth` agent.
    pub request_path: String,
    /// The `Host` of the request to a `forward-auth` agent; `None` sends the client's.
    pub request_host: Option<HeaderValue>,
    /// Headers of a `forward-auth` agent's answer that are copied to the request.
    pub copy_headers: Vec<HeaderName>,
    /// Headers of a `forward-auth` agent's answer that are copied to the response.
    pub copy_response_headers: Vec<HeaderName>,
}

/// The agents of a route.
#[derive(Clone, Debug)]
pub struct RouteAgents {
    /// The agents of the route, in its order.
    pub agents: Vec<Arc<AgentPlan>>,
    /// The events that at least one of them receives. A body among them is never spliced, because
    /// the agent must see it.
    pub events: EventSet,
}

/// A set of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventSet(u8);

impl EventSet {
    /// Returns true if `event` is in the set.
    #[must_use]
    #[inline]
    pub const fn has(self, event: AgentEventKind) -> bool {
        self.0 & bit(event) != 0
    }

    /// The events in order.
    pub fn iter(self) -> impl Iterator<Item = AgentEventKind> {
        ALL_EVENTS.into_iter().filter(move |event| self.has(*event))
    }
}

impl FromIterator<AgentEventKind> for EventSet {
    fn from_iter<I: IntoIterator<Item = AgentEventKind>>(events: I) -> Self {
        Self(events.into_iter().fold(0, |set, event| set | bit(event)))
    }
}

const ALL_EVENTS: [AgentEventKind; 4] = [
    AgentEventKind::RequestHeaders,
    AgentEventKind::RequestBody,
    AgentEventKind::ResponseHeaders,
    AgentEventKind::ResponseBody,
];

const fn bit(event: AgentEventKind) -> u8 {
    match event {
        AgentEventKind::RequestHeaders => 1,
        AgentEventKind::RequestBody => 1 << 1,
        AgentEventKind::ResponseHeaders => 1 << 2,
        AgentEventKind::ResponseBody => 1 << 3,
    }
}

impl AgentPlan {
    pub(crate) fn compile(
        index: usize,
        agent: &Agent,
        model: &Model,
        transaction: &mut TargetTransaction,
    ) -> Self {
        let Agent {
            name,
            place: _,
            address,
            failure_mode,
            protocol,
            events,
            on_oversize,
            request_path,
            request_host,
            copy_headers,
            copy_response_headers,
            timeout,
            encoding,
            circuit_breaker,
        } = agent;
        let limits = &model.limits;
        let name: Arc<str> = name.as_str().into();
        let events = event_set(events);
        let (max_body_bytes, max_body_setting) = max_body(limits);
        let identity = AgentIdentity {
            name: name.as_ref().to_owned(),
            address: endpoint_address(address, model),
            breaker: circuit_breaker.as_ref().map(breaker_settings),
            max_queue_depth: *limits.max_agent_queue_depth,
        };
        Self {
            index,
            upstream: match address {
                AgentAddress::Upstream(upstream) => Some(upstream.position()),
                AgentAddress::Socket(_) => None,
            },
            endpoint: Arc::new(AgentEndpoint {
                name: Arc::clone(&name),
                address: identity.address.clone(),
                protocol: **protocol,
                encoding: **encoding,
                events,
                max_event_bytes: max_event_bytes(max_body_bytes, *limits.max_header_size_bytes),
                max_response_bytes: *limits.max_agent_response_bytes,
                request_path: request_path.value.clone(),
                request_host: request_host.as_ref().and_then(|host| host.parse().ok()),
                copy_headers: values(copy_headers),
                copy_response_headers: values(copy_response_headers),
            }),
            state: transaction.agent(identity),
            name,
            timeout: **timeout,
            fails_open: **failure_mode == FailureMode::Open,
            events,
            passes_oversize: **on_oversize == OversizeMode::Pass,
            max_body_bytes,
            max_body_setting,
        }
    }
}

impl RouteAgents {
    /// The agents at `indexes`; `None` if there are none.
    pub(crate) fn compile(
        indexes: &[Setting<AgentIndex>],
        agents: &[Arc<AgentPlan>],
    ) -> Option<Box<Self>> {
        let listed = indexes
            .iter()
            .filter_map(|index| agents.get(index.position()));
        let listed: Vec<_> = listed.map(Arc::clone).collect();
        let events = listed
            .iter()
            .flat_map(|agent| agent.events.iter())
            .collect();
        (!listed.is_empty()).then(|| {
            Box::new(Self {
                agents: listed,
                events,
            })
        })
    }
}

/// All agents of `model`, in file order.
pub(crate) fn compile_all(
    model: &Model,
    transaction: &mut TargetTransaction,
) -> Vec<Arc<AgentPlan>> {
    let agents = model.agents.iter().enumerate();
    let agents = agents.map(|(index, agent)| AgentPlan::compile(index, agent, model, transaction));
    agents.map(Arc::new).collect()
}

fn endpoint_address(address: &AgentAddress, model: &Model) -> AgentEndpointAddress {
    match address {
        AgentAddress::Socket(path) => AgentEndpointAddress::Socket(path.value.clone()),
        AgentAddress::Upstream(index) => {
            let name = model.upstream(**index).map(|upstream| &*upstream.name);
            AgentEndpointAddress::Upstream(name.unwrap_or_default().into())
        }
    }
}

fn values(names: &[Setting<HeaderName>]) -> Vec<HeaderName> {
    names.iter().map(|name| name.value.clone()).collect()
}

/// The smaller of the two limits on a body, and its setting.
fn max_body(limits: &Limits) -> (u64, &'static str) {
    let inspected = *limits.max_body_inspection_bytes;
    let sent = *limits.max_agent_body_bytes;
    if sent < inspected {
        (sent, "limits.max-agent-body-bytes")
    } else {
        (inspected, "limits.max-body-inspection-bytes")
    }
}

/// Maximum size of an event, in bytes: a body in base64, or a head in which every byte is escaped.
fn max_event_bytes(max_body_bytes: u64, max_head_bytes: u64) -> u64 {
    const ENVELOPE_BYTES: u64 = 64 << 10;
    let body = max_body_bytes.saturating_mul(4) / 3;
    let head = max_head_bytes.saturating_mul(6);
    body.max(head)
        .saturating_add(ENVELOPE_BYTES)
        .min(u64::from(u32::MAX))
}

fn event_set(events: &[Setting<AgentEventKind>]) -> EventSet {
    let mut set: EventSet = events.iter().map(|event| event.value).collect();
    set.0 |= bit(AgentEventKind::RequestHeaders);
    if set.has(AgentEventKind::ResponseBody) {
        set.0 |= bit(AgentEventKind::ResponseHeaders);
    }
    set
}

fn breaker_settings(breaker: &AgentBreaker) -> BreakerSettings {
    let AgentBreaker {
        place: _,
        failure_threshold,
        timeout,
    } = breaker;
    BreakerSettings {
        failure_threshold: **failure_threshold,
        timeout: **timeout,
        half_open_max_requests: 1,
        success_threshold: 1,
    }
}
