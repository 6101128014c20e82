//! Five nodes that follow one control plane and serve steady traffic.

use crate::traffic::{Outcome, Traffic, ask};
use crate::world::{LOOK_INTERVAL, PROXYD, World, poll_until};
use proxy_load::clock::{Stopwatch, pause};
use proxy_testkit::{Launch, Proxyd, Upstream};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

/// Nodes of a fleet.
pub(crate) const NODES: usize = 5;
/// A rollout on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(100);
/// Further arguments of `controld`: gates receive nodes' reports every second.
pub(crate) const ARGUMENTS: [&str; 2] = ["--heartbeat-secs", "1"];

/// For a gate that ignores latencies: a busy machine is sometimes slow.
const BUSY_SLACK_MS: u32 = 60_000;

/// A gate with enough data within seconds. It permits no multiple of the other nodes' latency: if
/// the machine stalls for a second, theirs is so long that a slow bundle would pass.
pub(crate) fn gate(p99_slack_ms: u32) -> Value {
    json!({
        "min_requests": 10, "max_p99_percent": 100, "p99_slack_ms": p99_slack_ms,
        "max_cpu_increase_percent": 100_000,
    })
}

/// Five nodes which run the bundle `old`, with traffic to all of them.
pub(crate) struct Fleet {
    pub(crate) traffic: Traffic,
    pub(crate) nodes: Vec<FleetNode>,
    /// The identifier of the bundle that all nodes ran first.
    pub(crate) old: String,
    pub(crate) upstream: Upstream,
    pub(crate) world: World,
}

pub(crate) struct FleetNode {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) proxyd: Proxyd,
}

impl Fleet {
    pub(crate) fn start() -> Self {
        Self::with_five_nodes(World::start_with(&ARGUMENTS))
    }

    /// Five nodes that enrol at the world's URL.
    pub(crate) fn with_five_nodes(world: World) -> Self {
        // One after the other: batches are in the order of the enrolments.
        let nodes = (1..=NODES).map(|number| FleetNode::enrol(&world, &format!("edge-{number}")));
        let nodes = nodes.collect();
        Self::with_nodes(world, nodes)
    }

    /// These nodes, which run a bundle then.
    pub(crate) fn with_nodes(world: World, nodes: Vec<FleetNode>) -> Self {
        let upstream = Upstream::saying("well");
        let old = world.bundle(&files("old", upstream.address(), ""));
        let ids: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
        world.post(&format!("bundles/{old}/assign"), &json!({"nodes": ids}));
        let addresses: Vec<_> = nodes.iter().map(FleetNode::address).collect();
        let fleet = Self {
            traffic: Traffic::to(&addresses),
            nodes,
            old,
            upstream,
            world,
        };
        let old = fleet.old.clone();
        fleet.until_all_run(&old);
        fleet
    }

    /// A signed bundle that is named by its answers, with this upstream and a further listener.
    pub(crate) fn bundle(&self, name: &str, upstream: SocketAddr, listener: &str) -> String {
        self.world.bundle(&files(name, upstream, listener))
    }

    /// A rollout in batches of `size`, over a gate that a busy machine passes.
    pub(crate) fn plan_rollout(&self, bundle: &str, settings: &Value) -> Value {
        let mut body = json!({
            "bundle": bundle, "batch_count": 1, "soak_secs": 1, "deadline_secs": 60,
            "gate": gate(BUSY_SLACK_MS),
        });
        for (name, value) in settings.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        self.world.post("rollouts", &body).json()
    }

    pub(crate) fn start_rollout(&self, bundle: &str, settings: &Value) -> String {
        let planned = self.plan_rollout(bundle, settings);
        let id = planned["id"].as_str().unwrap().to_owned();
        self.world
            .post(&format!("rollouts/{id}/start"), &Value::Null);
        id
    }

    /// Waits until the rollout is as expected; returns it.
    pub(crate) fn until_rollout(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let since = Stopwatch::start();
        loop {
            let found = self.world.get(&format!("rollouts/{id}"));
            if is_so(&found) {
                return found;
            }
            let waited = since.elapsed();
            assert!(waited < TIMEOUT, "{found}\n{}", self.logs());
            pause(LOOK_INTERVAL);
        }
    }

    pub(crate) fn until_state(&self, id: &str, state: &str) -> Value {
        self.until_rollout(id, |found| found["state"] == state)
    }

    /// Waits until every node reports the bundle, and serves it.
    pub(crate) fn until_all_run(&self, bundle: &str) {
        for node in &self.nodes {
            self.until_runs(node, bundle);
        }
    }

    pub(crate) fn until_runs(&self, node: &FleetNode, bundle: &str) {
        self.until_view(node, |view| view["status"]["active"] == bundle);
    }

    /// Waits until the control plane's view of a node is as expected.
    pub(crate) fn until_view(&self, node: &FleetNode, is_so: impl Fn(&Value) -> bool) {
        let since = Stopwatch::start();
        loop {
            let view = self.world.view(&node.id);
            if is_so(&view) {
                return;
            }
            let waited = since.elapsed();
            assert!(waited < TIMEOUT, "{view}\n{}", self.logs());
            pause(LOOK_INTERVAL);
        }
    }

    /// Restarts the node after its end, with its former folder.
    pub(crate) fn restart(&mut self, node: usize) {
        let name = self.nodes[node].name.clone();
        self.nodes[node] = FleetNode::enrol(&self.world, &name);
        self.traffic.move_to(node, self.nodes[node].address());
    }

    /// The bundle that every node serves now, by its own answer.
    pub(crate) fn served(&self) -> Vec<String> {
        let asked = self.nodes.iter().map(|node| ask(node.address()));
        asked.map(|(_, bundle)| bundle).collect()
    }

    /// Waits until every node serves this bundle: a killed node's last report may be older than its
    /// restart, which begins with the bundle before its trial.
    pub(crate) fn until_all_serve(&self, bundle: &str) {
        let since = Stopwatch::start();
        loop {
            let served = self.served();
            if served.iter().all(|found| found == bundle) {
                return;
            }
            let waited = since.elapsed();
            assert!(waited < TIMEOUT, "{served:?}\n{}", self.logs());
            pause(LOOK_INTERVAL);
        }
    }

    fn logs(&self) -> String {
        let mut logs = String::new();
        for node in &self.nodes {
            let lines = node.proxyd.stderr().lines().join("\n");
            writeln!(logs, "{}:\n{lines}", node.name).unwrap();
        }
        logs
    }
}

impl FleetNode {
    fn enrol(world: &World, name: &str) -> Self {
        let proxyd = Launch::new(PROXYD, &world.own(name, &world.url)).start();
        Self::once_enrolled(world, name, proxyd)
    }

    /// The node of this process, after its enrolment.
    pub(crate) fn once_enrolled(world: &World, name: &str, proxyd: Proxyd) -> Self {
        let mut id = None;
        poll_until("the node has enrolled", || {
            let nodes = world.get("nodes");
            let mut nodes = nodes["items"].as_array().into_iter().flatten();
            let found = nodes.find(|node| node["name"] == name);
            id = found.and_then(|node| Some(node["id"].as_str()?.to_owned()));
            id.is_some()
        });
        Self {
            name: name.to_owned(),
            id: id.unwrap(),
            proxyd,
        }
    }

    /// Listening address: each node has a port of its own, which the kernel chose.
    pub(crate) fn address(&self) -> SocketAddr {
        let log = self.proxyd.stderr();
        let logged = log.find(0, |record| record.text("message") == "listening");
        logged.text("address").parse().unwrap()
    }
}

fn files(name: &str, upstream: SocketAddr, listener: &str) -> Value {
    let config = format!(
        "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }}\n{listener} }}\n\
         routes {{ route \"all\" {{ upstream \"u\"; policies {{ \
         response-headers {{ set \"x-bundle\" \"{name}\" }} }} }} }}\n\
         upstreams {{ upstream \"u\" {{ target \"{upstream}\" }} }}\n"
    );
    json!({"proxy.kdl": config})
}

/// Outcomes that are neither from `bundles` nor 200, which a node outside a batch never produces.
pub(crate) fn wrong<'a>(outcomes: &'a [Outcome], bundles: &[&str]) -> Vec<&'a Outcome> {
    let is_right = |outcome: &Outcome| {
        outcome.status == 200 && bundles.iter().any(|bundle| outcome.bundle == *bundle)
    };
    outcomes
        .iter()
        .filter(|outcome| !is_right(outcome))
        .collect()
}
