//! Simulated nodes that follow orders, and a scheduler with a simulated clock.

use crate::world::{Answer, Credential, World};
use axum::http::{Method, StatusCode};
use control_wire::{NodeId, Order};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const ROLLOUTS: &str = "/projects/{project}/rollouts";
const BUNDLES: &str = "/projects/{project}/bundles";

/// A node, and the contents of its next heartbeat.
pub(crate) struct SimulatedNode {
    pub(crate) id: NodeId,
    pub(crate) key: Credential,
    pub(crate) active: Option<String>,
    last_good: Option<String>,
    answered: Option<(u64, bool)>,
    /// Counts since the activation of the active bundle.
    pub(crate) traffic: Value,
    pub(crate) cpu_percent: f64,
    /// Whether the files of the bundle were edited.
    pub(crate) altered: bool,
}

/// Nodes of the project, sorted by ID, and an operator.
pub(crate) struct Fleet<'a> {
    pub(crate) world: &'a World,
    pub(crate) nodes: Vec<SimulatedNode>,
    pub(crate) operator: Credential,
    pub(crate) replica: Uuid,
}

/// Creates counters of a route: `requests` with a duration in this bucket.
pub(crate) fn served(requests: u64, errors: u64, bucket: usize, reasons: &Value) -> Value {
    let mut latency = [0; 12];
    latency[bucket] = requests;
    json!({"routes": {"api": {
        "requests": requests, "errors": errors, "reasons": reasons, "latency": latency,
    }}})
}

/// Creates counters of a node without failures.
pub(crate) fn well() -> Value {
    served(1_000, 1, 3, &json!({}))
}

/// Sends a command to a rollout with the credential `by`.
pub(crate) async fn command(world: &World, id: &str, by: &Credential, command: &str) -> Answer {
    let path = format!("{ROLLOUTS}/{id}/{command}");
    world.post(&path, by, Value::Null).await
}

impl<'a> Fleet<'a> {
    pub(crate) async fn new(world: &'a World, count: usize) -> Self {
        let operator = world.made_key(&[]).await;
        let mut nodes = Vec::new();
        for _ in 0..count {
            let (id, key) = world.new_node(world.tenant()).await;
            nodes.push(SimulatedNode {
                id,
                key,
                active: None,
                last_good: None,
                answered: None,
                traffic: well(),
                cpu_percent: 10.0,
                altered: false,
            });
        }
        nodes.sort_by_key(|node| node.id);
        Self {
            world,
            nodes,
            operator,
            // Fleets of one test share the lease.
            replica: world.node.0,
        }
    }

    /// Creates a signed bundle; each port makes a different one.
    pub(crate) async fn bundle(&self, port: u16) -> String {
        let text = format!("listeners {{ listener \"a\" {{ address \"127.0.0.1:{port}\" }} }}");
        let body = json!({"name": port.to_string(), "files": {"proxy.kdl": text}});
        let made = self.world.post(BUNDLES, &self.operator, body).await;
        assert_eq!(made.text("state"), "signed", "{}", made.body);
        made.text("id")
    }

    /// Creates a fleet that runs a bundle. Also returns that bundle, and another one to roll out.
    pub(crate) async fn running(world: &'a World, count: usize) -> (Self, String, String) {
        let mut fleet = Self::new(world, count).await;
        let (old, new) = (fleet.bundle(81).await, fleet.bundle(82).await);
        fleet.run(&old).await;
        (fleet, old, new)
    }

    /// Assigns a bundle to all nodes, which activate it.
    pub(crate) async fn run(&mut self, bundle: &str) {
        let nodes: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        let path = format!("{BUNDLES}/{bundle}/assign");
        let assigned = self.post(&path, json!({ "nodes": nodes })).await;
        assert_eq!(assigned.status, StatusCode::OK, "{}", assigned.body);
        for index in 0..self.nodes.len() {
            self.follow_order(index).await;
        }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        // Rate limits are not tested here, so each call has its own key.
        let key = self.world.made_key(&[]).await;
        self.world.post(path, &key, body).await
    }

    /// Starts a rollout to all nodes, in batches of two without a soak, with further settings.
    pub(crate) async fn start(&self, bundle: &str, settings: Value) -> String {
        let id = self.plan(bundle, settings).await;
        let started = self.command(&id, "start").await;
        assert_eq!(started.status, StatusCode::OK, "{}", started.body);
        id
    }

    pub(crate) async fn plan(&self, bundle: &str, settings: Value) -> String {
        let nodes: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        let mut body = json!({
            "bundle": bundle, "nodes": nodes, "batch_count": 2, "soak_secs": 0,
            "deadline_secs": 60,
        });
        for (name, value) in settings.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let made = self.post(ROLLOUTS, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        made.text("id")
    }

    pub(crate) async fn command(&self, rollout: &str, command: &str) -> Answer {
        let path = format!("{ROLLOUTS}/{rollout}/{command}");
        self.post(&path, Value::Null).await
    }

    pub(crate) async fn view(&self, rollout: &str) -> Value {
        let reader = self.world.full_key().await;
        let path = format!("{ROLLOUTS}/{rollout}");
        self.world.get(&path, &reader).await.body
    }

    pub(crate) async fn state(&self, rollout: &str) -> String {
        self.view(rollout).await["state"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Runs the scheduler once, `secs` seconds from now.
    pub(crate) async fn tick(&self, secs: i64) -> usize {
        let now = self.now() + SignedDuration::from_secs(secs);
        let app = &self.world.app;
        let steps = app.advance_rollouts(self.replica, now).await.unwrap();
        app.watch_drift(self.replica, now).await.unwrap();
        steps
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.app.now()
    }

    /// Returns the newest order to a node.
    pub(crate) async fn order(&self, index: usize) -> Option<Order> {
        let node = &self.nodes[index];
        let path = format!("/nodes/{}/desired", node.id);
        let answer = self
            .world
            .send(&Method::GET, &path, &node.key, &Value::Null, &[])
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        serde_json::from_value(answer.body["order"].clone()).unwrap()
    }

    /// Activates the node's newest order, resets its counters, and reports it.
    pub(crate) async fn follow_order(&mut self, index: usize) {
        let Some(order) = self.order(index).await else {
            return;
        };
        let bundle = order.bundle.to_string();
        let node = &mut self.nodes[index];
        node.active = Some(bundle.clone());
        node.last_good = Some(bundle);
        node.answered = Some((order.counter, true));
        self.beat(index).await;
    }

    /// Rejects the node's newest order, and reports it.
    pub(crate) async fn refuse(&mut self, index: usize) {
        let order = self.order(index).await.unwrap();
        self.nodes[index].answered = Some((order.counter, false));
        self.beat(index).await;
    }

    /// Sends a heartbeat of a node.
    pub(crate) async fn beat(&self, index: usize) {
        let node = &self.nodes[index];
        let (order, accepted) = node.answered.unzip();
        let verdict = accepted.map(|accepted| if accepted { "accepted" } else { "rejected" });
        let diagnostics = match accepted {
            Some(false) => json!(["no such upstream"]),
            Some(true) | None => json!([]),
        };
        let mut body = json!({
            "health": {"cpu_percent": node.cpu_percent},
            "status": {
                "active": node.active, "last_good": node.last_good, "order": order,
                "verdict": verdict, "diagnostics": diagnostics, "altered": node.altered,
            },
        });
        if !node.traffic.is_null() {
            body["traffic"] = node.traffic.clone();
        }
        let path = format!("/nodes/{}/heartbeat", node.id);
        let answer = self.world.post(&path, &node.key, body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }

    /// Sends a heartbeat with a change, which is written at once.
    pub(crate) async fn report(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.altered = !node.altered;
        self.beat(index).await;
        self.nodes[index].altered = !self.nodes[index].altered;
        self.beat(index).await;
    }

    /// Returns the trial of a node's newest order; null if the order is confirmed.
    pub(crate) async fn trial(&self, index: usize) -> Value {
        let node = &self.nodes[index];
        let path = format!("/nodes/{}/desired", node.id);
        self.world.get(&path, &node.key).await.body["trial"].clone()
    }

    /// Returns the confirmation of a node's newest order, for a heartbeat.
    pub(crate) async fn confirmation(&self, index: usize) -> String {
        let node = &self.nodes[index];
        let path = format!("/nodes/{}/heartbeat", node.id);
        let body = json!({"health": {"cpu_percent": 1}});
        let answer = self.world.post(&path, &node.key, body).await;
        answer.text("confirmation")
    }

    /// Adds traffic of the remaining nodes while the gate evaluates a batch.
    pub(crate) async fn serve(&mut self, indexes: std::ops::Range<usize>) {
        for index in indexes {
            let routes = &mut self.nodes[index].traffic["routes"]["api"];
            let more = |value: &Value| json!(value.as_u64().unwrap() + 1_000);
            routes["requests"] = more(&routes["requests"]);
            routes["latency"][3] = more(&routes["latency"][3]);
            self.beat(index).await;
        }
    }
}
