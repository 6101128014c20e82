//! Simulated nodes over real HTTP: they follow their orders, and report it.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may stop, and says why"
)]

use crate::http::Client;
use arc_swap::ArcSwap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout, spawn};
use std::time::Duration;

/// Interval of heartbeats: a node may send five requests a second.
const ROUND: Duration = Duration::from_millis(500);
/// Requests that a node serves in a round.
const REQUESTS: u64 = 100;

/// Behaviour of nodes with a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// Serves without errors.
    #[default]
    Well,
    /// Every second answer is a 500.
    Failing,
    /// An answer takes half a second.
    Slow,
    /// Its upstream refuses connections, and some responses are cached.
    Unreachable,
    /// Rejects the bundle.
    Rejecting,
}

/// Nodes of one project, served by a thread of its own until it is dropped.
#[derive(Debug)]
pub struct NodeFleet {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    names: Vec<String>,
}

#[derive(Debug)]
struct Shared {
    base_url: ArcSwap<String>,
    behaviours: ArcSwap<BTreeMap<String, Behaviour>>,
    /// Active bundle of each node, by its identifier.
    active: ArcSwap<BTreeMap<String, String>>,
    stop: AtomicBool,
}

#[derive(Debug)]
struct SimulatedNode {
    id: String,
    key: String,
    active: Option<String>,
    answered: Option<(u64, bool)>,
    requests: u64,
}

impl NodeFleet {
    /// Enrols `count` nodes, at most 10, and starts their thread.
    ///
    /// # Panics
    ///
    /// If the control plane refuses one.
    pub fn enrol(base_url: &str, key: &str, project: &str, count: usize) -> Self {
        let client = Client::new(base_url).with_bearer(key);
        let tokens = format!("/api/v1/projects/{project}/enrolment-tokens");
        let given = json!({"name": "fleet", "max_uses": count, "labels": {"tier": "edge"}});
        let token = client.post(&tokens, &given);
        let token = token.json()["secret"]
            .as_str()
            .expect("the answer has a token")
            .to_owned();
        let register = format!("/api/v1/projects/{project}/nodes/register");
        let enrolled = (1..=count).map(|number| {
            let name = format!("edge-{number}");
            let body = json!({"name": name, "labels": {"tier": "edge"}});
            let client = Client::new(base_url).with_bearer(&token);
            let made = client.post(&register, &body).json();
            let text = |field: &str| made[field].as_str().expect("a node").to_owned();
            SimulatedNode {
                id: text("node_id"),
                key: text("node_key"),
                active: None,
                answered: None,
                requests: 0,
            }
        });
        let mut nodes: Vec<SimulatedNode> = enrolled.collect();
        let names = nodes.iter().map(|node| node.id.clone()).collect();
        let shared = Arc::new(Shared {
            base_url: ArcSwap::from_pointee(base_url.to_owned()),
            behaviours: ArcSwap::default(),
            active: ArcSwap::default(),
            stop: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let thread = spawn(move || {
            while !own.stop.load(Ordering::Relaxed) {
                for node in &mut nodes {
                    // Retries an unreachable control plane.
                    node.round(&own).unwrap_or_default();
                }
                park_timeout(ROUND);
            }
        });
        Self {
            shared,
            thread: Some(thread),
            names,
        }
    }

    /// Sets another address of the control plane.
    pub fn follow(&self, base_url: &str) {
        self.shared.base_url.store(Arc::new(base_url.to_owned()));
    }

    /// Sets the behaviour of nodes with a bundle.
    pub fn behave(&self, bundle: &str, behaviour: Behaviour) {
        insert(&self.shared.behaviours, bundle, behaviour);
    }

    /// The identifiers of the nodes, in the order of their registration.
    pub fn ids(&self) -> &[String] {
        &self.names
    }

    /// Active bundles of the nodes, in the order of their registration.
    pub fn active(&self) -> Vec<Option<String>> {
        let active = self.shared.active.load();
        let names = self.names.iter();
        names.map(|name| active.get(name).cloned()).collect()
    }
}

impl Drop for NodeFleet {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

impl SimulatedNode {
    fn round(&mut self, shared: &Shared) -> std::io::Result<()> {
        let client = Client::new(&shared.base_url.load());
        let key = [("x-service-node-key", self.key.as_str())];
        let desired = format!("/api/v1/nodes/{}/desired", self.id);
        let order = client.attempt("GET", &desired, &key, None)?.json()["order"].clone();
        let newest = self.answered.map_or(0, |(order, _)| order);
        let counter = order["counter"]
            .as_u64()
            .filter(|counter| newest < *counter);
        if let (Some(counter), Some(bundle)) = (counter, order["bundle"].as_str()) {
            self.follow_order(shared, counter, bundle);
        }
        self.requests += REQUESTS;
        let beat = format!("/api/v1/nodes/{}/heartbeat", self.id);
        let body = self.heartbeat(shared);
        let key = [("x-service-node-key", self.key.as_str())];
        client.attempt("POST", &beat, &key, Some(&body))?;
        Ok(())
    }

    fn follow_order(&mut self, shared: &Shared, counter: u64, bundle: &str) {
        let accepted = shared.behaviour(bundle) != Behaviour::Rejecting;
        self.answered = Some((counter, accepted));
        if accepted {
            self.active = Some(bundle.to_owned());
            self.requests = 0;
            insert(&shared.active, &self.id, bundle.to_owned());
        }
    }

    fn heartbeat(&self, shared: &Shared) -> Value {
        let behaviour = self
            .active
            .as_deref()
            .map(|bundle| shared.behaviour(bundle));
        let served = self.requests;
        let (errors, bucket, reasons) = match behaviour.unwrap_or_default() {
            Behaviour::Well | Behaviour::Rejecting => (0, 3, json!({})),
            Behaviour::Failing => (served / 2, 3, json!({})),
            Behaviour::Slow => (0, 8, json!({})),
            Behaviour::Unreachable => (1, 3, json!({"connect_refused": served / 2})),
        };
        let mut latency = [0; 12];
        latency[bucket] = served;
        let (order, accepted) = self.answered.unzip();
        let verdict = accepted.map(|accepted| if accepted { "accepted" } else { "rejected" });
        let diagnostics = match accepted {
            Some(false) => json!(["the port is taken"]),
            Some(true) | None => json!([]),
        };
        json!({
            "health": {"cpu_percent": 10.0},
            "status": {
                "active": self.active, "last_good": self.active, "order": order,
                "verdict": verdict, "diagnostics": diagnostics,
            },
            "traffic": {"routes": {"api": {
                "requests": served, "errors": errors, "reasons": reasons, "latency": latency,
            }}},
        })
    }
}

impl Shared {
    fn behaviour(&self, bundle: &str) -> Behaviour {
        let all = self.behaviours.load();
        all.get(bundle).copied().unwrap_or_default()
    }
}

fn insert<T: Clone>(map: &ArcSwap<BTreeMap<String, T>>, name: &str, value: T) {
    map.rcu(|old| {
        let mut new = BTreeMap::clone(old);
        new.insert(name.to_owned(), value.clone());
        new
    });
}
