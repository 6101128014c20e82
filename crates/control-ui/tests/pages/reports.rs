//! Heartbeats as nodes send them.

use crate::world::World;
use control_app::Call;
use control_domain::{Actor, NodeCredential, Tenant};
use control_wire::{
    BundleId, Health, HeartbeatRequest, NodeId, NodeStatus, RouteTraffic, Traffic, Verdict,
};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Heartbeats with counters that restart from zero with another bundle.
pub(crate) struct Reports {
    pub(crate) now: Timestamp,
    /// Route of all requests.
    route: &'static str,
    counters: BTreeMap<NodeId, Outcome>,
}

/// Requests since the last heartbeat.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
}

impl Reports {
    pub(crate) fn new(now: Timestamp, route: &'static str) -> Self {
        Self {
            now,
            route,
            counters: BTreeMap::new(),
        }
    }

    /// Sends a heartbeat under the newest order, or under the node's own bundle; without either,
    /// the node runs no bundle. `outcome` returns the requests under a bundle.
    pub(crate) async fn send(
        &mut self,
        world: &World,
        id: NodeId,
        own: Option<BundleId>,
        outcome: impl Fn(BundleId) -> Outcome,
    ) {
        let call = world.call_at(self.now).await;
        let node = world.app.node(&call, world.project, id).await;
        let node = node.unwrap().value;
        let ordered = node.order.as_ref().map(|order| order.bundle);
        let active = own.or(ordered);
        let before = node.report.and_then(|report| report.status.active);
        let counters = self.counters.entry(id).or_default();
        if before != active {
            *counters = Outcome::default();
        }
        if let Some(active) = active {
            let Outcome { requests, errors } = outcome(active);
            counters.requests += requests;
            counters.errors += errors;
        }
        let order = node.order.map(|order| order.counter);
        let heartbeat_request = HeartbeatRequest {
            health: Health { cpu_percent: 37.0 },
            version: Some("0.1.0".to_owned()),
            status: Some(NodeStatus {
                desired: ordered,
                staged: None,
                active,
                last_good: active,
                order: order.and_then(|order| u64::try_from(order).ok()),
                verdict: order.map(|_| Verdict::Accepted),
                diagnostics: Vec::new(),
                altered: false,
            }),
            traffic: active.map(|_| traffic(self.route, *counters)),
            instance: None,
        };
        let tenant = Tenant::project(world.org, world.project);
        let call = Call {
            actor: Actor::Node {
                id,
                tenant,
                by: NodeCredential::Token,
            },
            ..Call::system(self.now)
        };
        world
            .app
            .heartbeat(&call, id, heartbeat_request)
            .await
            .unwrap();
    }
}

fn traffic(route: &str, counted: Outcome) -> Traffic {
    let Outcome { requests, errors } = counted;
    let half = requests / 2;
    let counters = RouteTraffic {
        requests,
        errors,
        reasons: BTreeMap::new(),
        latency: [0, 0, 0, half, requests - half, 0, 0, 0, 0, 0, 0, 0],
        ..RouteTraffic::default()
    };
    Traffic {
        routes: [(route.to_owned(), counters)].into(),
        connections: None,
    }
}
