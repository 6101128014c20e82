//! A month of a fleet by a clock of the test: the size of the database after it, by table.
//!
//! `CONTROLD_MONTH=1000`, as `cargo xtask fleet --month 1000` sets it, is the number of nodes. Without it a few nodes
//! run for twelve days, and only the growth is bounded.
//!
//! A day of the fleet: a new bundle that is rolled out to all nodes, a renewed certificate that all nodes fetch, fifty
//! changes with an `Idempotency-Key`, one drift for a hundred nodes, requests by twenty routes of each node in every hour,
//! and housekeeping. Heartbeats replace the one before: one a day has the size of 2 880.

use crate::world::{Credential, World, sample};
use axum::http::{Method, StatusCode};
use control_domain::{
    CountedRequests, Drift, DriftResolution, DriftState, RouteCounts, StepTraffic,
};
use control_testkit::Database;
use control_wire::{
    BundleId, DriftId, Health, HeartbeatRequest, NodeEvent, NodeEventId, NodeId, NodeStatus,
    RouteTraffic, Traffic, Verdict,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection, Row};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use uuid::Uuid;

const BUNDLES: &str = "/projects/{project}/bundles";
const CERTIFICATES: &str = "/projects/{project}/certificates";
const ROLLOUTS: &str = "/projects/{project}/rollouts";
const UPSTREAMS: &str = "/projects/{project}/upstreams";

const ROUTES: u64 = 20;
/// Changes in one hour, for ten hours of a day.
const CHANGES_IN_HOUR: usize = 5;
const WORKING_HOURS: std::ops::Range<i64> = 8..18;
const STEP: SignedDuration = SignedDuration::from_mins(5);
/// Hours at the end with a step of traffic every five minutes; shorter steps are deleted after three hours.
const FINE_HOURS: i64 = 4;
/// Maximum number of rounds for a rollout in four batches.
const MAX_ROUNDS: usize = 40;
/// Maximum size of the database of 1000 nodes after a month.
const MAX_BYTES: i64 = 100_000_000;

/// Simulated time since the start, which only one test uses.
static ELAPSED_SECS: AtomicI64 = AtomicI64::new(0);

fn now() -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(ELAPSED_SECS.load(Ordering::Relaxed))
}

fn pass(time: SignedDuration) {
    ELAPSED_SECS.fetch_add(time.as_secs(), Ordering::Relaxed);
}

struct FleetNode {
    id: NodeId,
    key: Credential,
    /// Counter of the last order that the node followed.
    order: u64,
    bundle: Option<BundleId>,
}

struct Month<'a> {
    world: &'a World,
    operator: Credential,
    nodes: Vec<FleetNode>,
    certificate: String,
    upstream: String,
    replica: Uuid,
    requests: u64,
}

impl<'a> Month<'a> {
    async fn new(world: &'a World, count: usize) -> Self {
        let operator = world.made_key(&[]).await;
        let certificate = world.post(CERTIFICATES, &operator, sample(CERTIFICATES));
        let upstream = world.post(UPSTREAMS, &operator, sample(UPSTREAMS));
        let (certificate, upstream) = (certificate.await.text("id"), upstream.await.text("id"));
        let mut nodes = Vec::new();
        for _ in 0..count {
            let (id, key) = world.new_node(world.tenant()).await;
            nodes.push(FleetNode {
                id,
                key,
                order: 0,
                bundle: None,
            });
        }
        Self {
            world,
            operator,
            nodes,
            certificate,
            upstream,
            replica: Uuid::now_v7(),
            requests: 0,
        }
    }

    async fn day(&mut self, number: i64, is_last: bool) {
        for hour in 0..24 {
            match hour {
                9 => self.release(number).await,
                10 => self.renew_certificate().await,
                11 => self.drift().await,
                12 => self.beat().await,
                _ => {}
            }
            if WORKING_HOURS.contains(&hour) {
                self.change(number, hour).await;
            }
            if is_last && 24 - FINE_HOURS <= hour {
                for _ in 0..12 {
                    self.serve().await;
                    pass(STEP);
                }
            } else {
                self.serve().await;
                pass(SignedDuration::from_hours(1));
            }
            self.clean_up().await;
        }
    }

    /// Creates a heartbeat under a node's newest order.
    fn said(node: &FleetNode, requests: u64) -> HeartbeatRequest {
        let routes = (0..ROUTES).map(|route| {
            let own = requests + route * 97;
            let counters = RouteTraffic {
                requests: own,
                errors: own / 500,
                reasons: [("connect_timeout".to_owned(), own / 500)].into(),
                latency: [0, own / 4, own / 2, own / 8, own / 8, 0, 0, 0, 0, 0, 0, 0],
                statuses: [(200, own - own / 500), (504, own / 500)].into(),
                ..RouteTraffic::default()
            };
            (format!("route-{route}"), counters)
        });
        let traffic = Traffic {
            routes: routes.collect(),
            connections: None,
        };
        HeartbeatRequest {
            health: Health { cpu_percent: 12.0 },
            version: Some("0.1.0".to_owned()),
            status: Some(NodeStatus {
                desired: node.bundle,
                active: node.bundle,
                last_good: node.bundle,
                order: Some(node.order),
                verdict: Some(Verdict::Accepted),
                ..NodeStatus::default()
            }),
            traffic: Some(traffic),
            instance: None,
        }
    }

    async fn beat(&self) {
        let mut tx = self.world.store.begin().await.unwrap();
        for node in &self.nodes {
            let said = Self::said(node, self.requests);
            tx.write_heartbeat(node.id, &said, now()).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Activates all new orders, and reports them.
    async fn obey(&mut self) {
        let mut tx = self.world.store.begin().await.unwrap();
        for node in &mut self.nodes {
            let Some(found) = tx.order(node.id).await.unwrap() else {
                continue;
            };
            if found.order.counter == node.order {
                continue;
            }
            (node.order, node.bundle) = (found.order.counter, Some(found.order.bundle));
            let said = Self::said(node, 0);
            tx.write_heartbeat(node.id, &said, now()).await.unwrap();
            let event = event("bundle.activated", found.order.bundle);
            let events = std::iter::once((NodeEventId(Uuid::now_v7()), &event));
            tx.insert_node_events(node.id, events).await.unwrap();
        }
        tx.commit().await.unwrap();
        self.requests = 0;
    }

    /// Rolls a new bundle out to all nodes, in four batches.
    async fn release(&mut self, number: i64) {
        let text = format!(
            "listeners {{ listener \"web\" {{ address \"127.0.0.1:{}\" }} }}",
            3_000 + number
        );
        let mut files = serde_json::Map::new();
        files.insert("proxy.kdl".to_owned(), json!(text));
        files.insert(format!("certificates/{}.pem", self.certificate), json!(""));
        let new = json!({"name": format!("release {number}"), "files": files});
        let bundle = self.created(BUNDLES, new).await;
        let nodes: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        let plan = json!({
            "bundle": bundle, "nodes": nodes, "batch_percent": 25, "soak_secs": 0,
            "deadline_secs": 600, "skip_gate": true,
        });
        let rollout = self.created(ROLLOUTS, plan).await;
        let path = format!("{ROLLOUTS}/{rollout}");
        let start = format!("{path}/start");
        let started = self.world.post(&start, &self.operator, Value::Null).await;
        assert_eq!(started.status, StatusCode::OK, "{}", started.body);
        let mut state = Value::Null;
        for _ in 0..MAX_ROUNDS {
            let app = &self.world.app;
            app.advance_rollouts(self.replica, now()).await.unwrap();
            self.obey().await;
            pass(SignedDuration::from_secs(2));
            let found = self.world.get(&path, &self.operator).await;
            state = found.body["state"].clone();
            if state == "completed" {
                break;
            }
        }
        assert_eq!(state, "completed");
    }

    /// Replaces the certificate; every node fetches the new one.
    async fn renew_certificate(&self) {
        let path = format!("{CERTIFICATES}/{}", self.certificate);
        let renewed = sample(CERTIFICATES);
        let put = self
            .world
            .send(&Method::PUT, &path, &self.operator, &renewed, &[]);
        let put = put.await;
        assert_eq!(put.status, StatusCode::OK, "{}", put.body);
        for node in &self.nodes {
            let path = format!("/nodes/{}/certificates/{}", node.id, self.certificate);
            let fetched = self.world.get(&path, &node.key).await;
            assert_eq!(fetched.status, StatusCode::OK, "{}", fetched.body);
        }
        let mut tx = self.world.store.begin().await.unwrap();
        for node in &self.nodes {
            let event = event("certificates.renewed", &self.certificate);
            let events = std::iter::once((NodeEventId(Uuid::now_v7()), &event));
            tx.insert_node_events(node.id, events).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Lets one node of a hundred differ from its order for a while.
    async fn drift(&self) {
        let mut tx = self.world.store.begin().await.unwrap();
        for node in self.nodes.iter().step_by(100) {
            let mut drift = Drift {
                id: DriftId(Uuid::now_v7()),
                tenant: self.world.tenant(),
                node: node.id,
                state: DriftState::Open,
                desired: node.bundle.unwrap(),
                active: None,
                opened_at: now(),
                resolved_at: None,
                resolution: None,
            };
            tx.insert_drift(&drift).await.unwrap();
            drift.state = DriftState::Resolved;
            drift.resolved_at = Some(now());
            drift.resolution = Some(DriftResolution::Automatic);
            tx.update_drift(&drift, 1).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    async fn change(&self, day: i64, hour: i64) {
        self.world.change_address();
        for number in 0..CHANGES_IN_HOUR {
            let path = format!("{UPSTREAMS}/{}", self.upstream);
            let changed = json!({
                "name": format!("shop {day}-{hour}-{number}"),
                "targets": [{"address": format!("10.0.{hour}.{number}:80")}],
            });
            let key = format!("{day}-{hour}-{number}");
            let once = [("idempotency-key", key.as_str())];
            let put = self
                .world
                .send(&Method::PUT, &path, &self.operator, &changed, &once);
            let put = put.await;
            assert_eq!(put.status, StatusCode::OK, "{}", put.body);
        }
    }

    /// Adds traffic of all nodes in a time step, as replicas collect it from heartbeats.
    async fn serve(&mut self) {
        self.requests += 1_000;
        let mut step = StepTraffic::default();
        for (node, load) in self.nodes.iter().zip(1_000..) {
            let routes = (0..ROUTES).map(|route| {
                let mut counted = CountedRequests::default();
                for (count, bucket) in (1..).zip(counted.latency.iter_mut().take(8)) {
                    *bucket = load * 7 % (90 + count + route);
                }
                counted.requests = counted.latency.iter().sum();
                counted.errors = load % 5;
                (format!("route-{route}"), counted)
            });
            let routes: BTreeMap<_, _> = routes.collect();
            step.count(node.id, &RouteCounts { routes });
        }
        let mut tx = self.world.store.begin().await.unwrap();
        let added = tx.add_traffic(self.world.project, now(), &step);
        added.await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn clean_up(&self) {
        let app = &self.world.app;
        while 0 < app.clean_up(self.replica, now()).await.unwrap() {}
        app.archive_audit(self.replica, now()).await.unwrap();
        app.sweep_archives(self.replica, now()).await.unwrap();
    }

    async fn created(&self, path: &str, new: Value) -> String {
        let made = self.world.post(path, &self.operator, new).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        made.text("id")
    }

    async fn bytes(&self) -> i64 {
        let mut tx = self.world.store.read().await.unwrap();
        tx.stored_bytes().await.unwrap().database
    }

    async fn rows(&self, table: &str) -> i64 {
        let mut tx = self.world.store.read().await.unwrap();
        let rows = tx.count_rows().await.unwrap();
        rows.iter().find(|(name, _)| *name == table).unwrap().1
    }
}

fn event(kind: &str, subject: impl std::fmt::Display) -> NodeEvent {
    NodeEvent {
        at: now(),
        kind: kind.to_owned(),
        message: format!("{subject} is in force"),
    }
}

/// Returns the largest tables, including their indexes.
async fn largest_tables(world: &World) -> Vec<(String, i64)> {
    let select = "SELECT s.tbl_name AS name, CAST(SUM(d.pgsize) AS BIGINT) AS bytes
                  FROM dbstat d JOIN sqlite_schema s ON s.name = d.name
                  GROUP BY s.tbl_name ORDER BY 2 DESC LIMIT 12";
    let mut connection = AnyConnection::connect(&world.database.url).await.unwrap();
    let rows = sqlx::query(select).fetch_all(&mut connection);
    let rows = rows.await.unwrap();
    let sizes = rows.iter().map(|row| (row.get("name"), row.get("bytes")));
    sizes.collect()
}

#[tokio::test]
async fn a_month_of_a_fleet_has_a_bounded_size() {
    let full = std::env::var("CONTROLD_MONTH").ok();
    let nodes = full.as_ref().map_or(3, |text| text.parse().unwrap());
    let days = if full.is_some() { 30 } else { 12 };
    let mut world = World::new(Database::sqlite()).await;
    world.replace_app(now, |_| {});
    let mut month = Month::new(&world, nodes).await;
    println!(
        "{nodes} nodes, at first: {} KB",
        month.bytes().await / 1_000
    );
    for day in 1..=days {
        month.day(day, day == days).await;
        if day % 10 == 0 {
            println!("after {day} days: {} KB", month.bytes().await / 1_000);
        }
    }
    let bytes = month.bytes().await;
    println!("{nodes} nodes, after {days} days: {} KB", bytes / 1_000);
    for (table, bytes) in largest_tables(&world).await {
        println!("  {table}: {} KB", bytes / 1_000);
    }
    // A day of replies; five minutes for three hours, an hour for nine days, six hours for the month.
    let replies = i64::try_from(CHANGES_IN_HOUR).unwrap() * 10 * 2;
    let steps = 37 + 9 * 24 + 1 + days * 4 + 1;
    assert!(month.rows("replies").await <= replies);
    assert!(month.rows("project_traffic").await <= steps);
    assert!(full.is_none() || bytes < MAX_BYTES, "{bytes} bytes");
}
