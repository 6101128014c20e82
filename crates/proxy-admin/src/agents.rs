//! The JSON document of `/admin/agents`: state and counts of external agents.

use proxy_health::BreakerState;
use proxy_plan::{AgentEndpointAddress, AgentPlan, Plan};
use proxy_telemetry::{AgentTotal, Snapshot};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

pub(crate) fn document(plan: &Plan, snapshot: &Snapshot) -> Value {
    let totals = snapshot.agents.iter();
    let totals: HashMap<&str, &AgentTotal> = totals.map(|(name, total)| (&**name, total)).collect();
    let none = AgentTotal::default();
    let agents: Map<String, Value> = plan
        .agents()
        .iter()
        .map(|one| {
            let total = totals.get(&*one.name).copied().unwrap_or(&none);
            (one.name.to_string(), agent(one, total, snapshot))
        })
        .collect();
    json!({ "agents": agents })
}

fn agent(agent: &AgentPlan, total: &AgentTotal, snapshot: &Snapshot) -> Value {
    let breaker = agent.state.breaker.as_ref();
    let breaker = breaker.map(|breaker| BreakerState::name(breaker.state()));
    let mode = if agent.fails_open { "open" } else { "closed" };
    let (address_kind, address) = match &agent.endpoint.address {
        AgentEndpointAddress::Socket(path) => ("unix_socket", path.to_string_lossy()),
        AgentEndpointAddress::Upstream(name) => ("upstream", Cow::from(&**name)),
    };
    json!({
        "protocol": agent.endpoint.protocol.to_string(),
        address_kind: address,
        "failure_mode": mode,
        "circuit_breaker": breaker,
        "queue_depth": agent.state.queue.held(),
        "max_queue_depth": agent.state.queue.max(),
        "decisions": total.decisions(),
        "timeouts": total.timeouts(),
        "failures": snapshot.agent_failures(total),
    })
}
