//! Revoked bundles: nodes return to the newest signed bundle that they ran by an order.

use crate::fleet::{Fleet, ROLLOUTS};
use crate::world::{World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_app::metric::NODES_WITHOUT_WAY_BACK;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_default_local_recorder,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

async fn command(fleet: &Fleet<'_>, bundle: &str, command: &str) {
    let body = match command {
        "assign" => json!({"nodes": [fleet.nodes[0].id]}),
        _ => Value::Null,
    };
    let path = format!("/projects/{{project}}/bundles/{bundle}/{command}");
    let answer = fleet.post(&path, body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
}

async fn ordered(fleet: &Fleet<'_>) -> String {
    fleet.order(0).await.unwrap().bundle.to_string()
}

/// Creates a node that received orders for these bundles in sequence. False marks a rejected one.
async fn ran<const N: usize>(world: &World, accepts: [bool; N]) -> (Fleet<'_>, [String; N]) {
    let mut fleet = Fleet::new(world, 1).await;
    let mut bundles = [const { String::new() }; N];
    for ((bundle, port), accepts) in bundles.iter_mut().zip(81..).zip(accepts) {
        *bundle = fleet.bundle(port).await;
        command(&fleet, bundle, "assign").await;
        if accepts {
            fleet.follow_order(0).await;
        } else {
            fleet.refuse(0).await;
        }
    }
    (fleet, bundles)
}

async fn recall(world: &World) {
    for _ in 0..6 {
        world.app.recall_bundles(world.app.now()).await.unwrap();
    }
}

#[tokio::test]
async fn a_node_reverts_past_a_bundle_that_it_rejected() {
    for world in worlds().await {
        let (fleet, [good, _, bad]) = ran(&world, [true, false, true]).await;
        command(&fleet, &bad, "revoke").await;
        assert_eq!(ordered(&fleet).await, good);
    }
}

#[tokio::test]
async fn a_node_reverts_past_every_revoked_bundle() {
    for world in worlds().await {
        let (fleet, [good, second, third]) = ran(&world, [true, true, true]).await;
        command(&fleet, &second, "revoke").await;
        assert_eq!(ordered(&fleet).await, third, "it does not run that one");
        command(&fleet, &third, "revoke").await;
        assert_eq!(ordered(&fleet).await, good);
    }
}

#[tokio::test]
async fn a_certificate_of_the_bundle_that_a_recall_reverts_to_is_not_deleted() {
    for world in worlds().await {
        let full = world.full_key().await;
        let certificates = "/projects/{project}/certificates";
        let made = world.post(certificates, &full, sample(certificates)).await;
        let certificate = made.text("id");
        let mut fleet = Fleet::new(&world, 1).await;
        let bundles = "/projects/{project}/bundles";
        let mut new = sample(bundles);
        new["files"][format!("certificates/{certificate}.pem")] = json!("");
        let made = world.post(bundles, &full, new).await;
        let naming = made.text("id");
        let assign = json!({"nodes": [fleet.nodes[0].id]});
        let path = format!("{bundles}/{naming}/assign");
        let ordered = world.post(&path, &full, assign).await;
        assert_eq!(ordered.status, StatusCode::OK, "{}", ordered.body);
        fleet.follow_order(0).await;
        for (port, accepts) in [(81, false), (82, true)] {
            let bundle = fleet.bundle(port).await;
            command(&fleet, &bundle, "assign").await;
            if accepts {
                fleet.follow_order(0).await;
            } else {
                fleet.refuse(0).await;
            }
        }
        let path = format!("{certificates}/{certificate}");
        let delete = async || {
            let sent = world.send(&Method::DELETE, &path, &full, &Value::Null, &[]);
            sent.await.status
        };
        assert_eq!(delete().await, StatusCode::CONFLICT);

        // Two bundles later, no recall leads to it.
        let next = fleet.bundle(83).await;
        command(&fleet, &next, "assign").await;
        fleet.follow_order(0).await;
        assert_eq!(delete().await, StatusCode::NO_CONTENT);
    }
}

#[tokio::test]
async fn a_bundle_of_a_deleted_rolled_back_rollout_is_no_revert_target() {
    for world in worlds().await {
        let (mut fleet, [good, second]) = ran(&world, [true, true]).await;
        let bad = fleet.bundle(90).await;
        let rollout = fleet.start(&bad, json!({"skip_gate": true})).await;
        fleet.tick(0).await;
        fleet.follow_order(0).await;
        let back = fleet.command(&rollout, "rollback").await;
        assert_eq!(back.status, StatusCode::OK, "{}", back.body);
        fleet.tick(0).await;
        fleet.follow_order(0).await;
        fleet.tick(0).await;
        assert_eq!(fleet.state(&rollout).await, "rolled_back");
        let path = format!("{ROLLOUTS}/{rollout}");
        let deleted = world.send(&Method::DELETE, &path, &fleet.operator, &Value::Null, &[]);
        assert_eq!(deleted.await.status, StatusCode::NO_CONTENT);
        assert_eq!(ordered(&fleet).await, second);

        command(&fleet, &second, "revoke").await;

        assert_eq!(ordered(&fleet).await, good);
    }
}

#[tokio::test]
async fn a_node_that_rejects_its_revert_gets_an_earlier_bundle() {
    for world in worlds().await {
        let (mut fleet, [good, second, bad]) = ran(&world, [true, true, true]).await;
        command(&fleet, &bad, "revoke").await;
        assert_eq!(ordered(&fleet).await, second);
        fleet.refuse(0).await;
        recall(&world).await;
        assert_eq!(ordered(&fleet).await, good);
        fleet.refuse(0).await;
        recall(&world).await;
        assert_eq!(ordered(&fleet).await, good, "there is no other one");
    }
}

#[tokio::test]
async fn a_node_without_a_revert_target_is_noted() {
    for world in worlds().await {
        let (fleet, [_, bad]) = ran(&world, [false, true]).await;
        command(&fleet, &bad, "revoke").await;
        assert_eq!(ordered(&fleet).await, bad);
        let path = format!("/orgs/{}/audit", world.org);
        let log = world.get(&path, &world.full_key().await).await;
        let text = log.body.to_string();
        assert!(text.contains("bundle.kept_by_nodes"), "{text}");
    }
}

/// Value of the counter of nodes that keep a revoked bundle, in the thread of a test.
#[derive(Debug, Default)]
struct KeptCount(Arc<AtomicU64>);

impl Recorder for KeptCount {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() == NODES_WITHOUT_WAY_BACK {
            return Counter::from_arc(Arc::clone(&self.0));
        }
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn a_node_without_a_revert_target_is_counted_once() {
    for world in worlds().await {
        for (accepts, expected) in [(true, 0), (false, 1)] {
            let (fleet, [_, bad]) = ran(&world, [accepts, true]).await;
            let kept = KeptCount::default();
            let _recording = set_default_local_recorder(&kept);
            command(&fleet, &bad, "revoke").await;
            recall(&world).await;
            assert_eq!(kept.0.load(Ordering::Relaxed), expected);
        }
    }
}

/// Model of the node in a random sequence of commands.
#[derive(Debug, Default)]
struct Model {
    /// Newest orders by which the node ran and rejected each bundle.
    confirmed: BTreeMap<String, u64>,
    rejected: BTreeMap<String, u64>,
    revoked: BTreeSet<String>,
    active: Option<String>,
    ordered: Option<String>,
    counter: u64,
    is_rejected: bool,
}

impl Model {
    fn answer(&mut self, bundle: &str, counter: u64, accepts: bool) {
        self.counter = counter;
        self.ordered = Some(bundle.to_owned());
        self.is_rejected = !accepts;
        if accepts {
            self.active = Some(bundle.to_owned());
        } else {
            self.rejected.insert(bundle.to_owned(), counter);
        }
        if self.active.as_deref() == Some(bundle) {
            self.confirmed.insert(bundle.to_owned(), counter);
        }
    }

    fn way_back(&self) -> Option<&str> {
        let good = self.confirmed.iter().filter(|(bundle, counter)| {
            let rejected = self.rejected.get(*bundle).copied().unwrap_or_default();
            !self.revoked.contains(*bundle) && rejected <= **counter
        });
        let newest = good.max_by_key(|(_, counter)| **counter);
        newest.map(|(bundle, _)| bundle.as_str())
    }

    /// Returns true if the node must leave the bundle that it runs or has an order for.
    fn is_leaving(&self) -> bool {
        let is_revoked = |bundle: &String| self.revoked.contains(bundle);
        self.ordered.as_ref().is_some_and(is_revoked)
            || self.is_rejected && self.active.as_ref().is_some_and(is_revoked)
    }
}

/// Follows orders until there is no newer one.
async fn settle(
    world: &World,
    fleet: &mut Fleet<'_>,
    model: &mut Model,
    random: &mut Random,
    mut is_way_back: bool,
) {
    loop {
        recall(world).await;
        let Some(order) = fleet.order(0).await else {
            return;
        };
        let bundle = order.bundle.to_string();
        if order.counter == model.counter {
            let stays = !model.is_leaving() || model.way_back().is_none();
            assert!(stays, "nothing leads away from {bundle}: {model:?}");
            return;
        }
        if is_way_back {
            assert_eq!(Some(bundle.as_str()), model.way_back(), "{model:?}");
        }
        let accepts = random.below(4) > 0;
        if accepts {
            fleet.follow_order(0).await;
        } else {
            fleet.refuse(0).await;
        }
        model.answer(&bundle, order.counter, accepts);
        is_way_back = true;
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Compares 14 random commands on five bundles, with ports from `first_port`, with the model.
async fn run_sequence(world: &World, random: &mut Random, first_port: u16) {
    let mut fleet = Fleet::new(world, 1).await;
    let mut bundles = Vec::new();
    for port in (first_port..).take(5) {
        bundles.push(fleet.bundle(port).await);
    }
    let mut model = Model::default();
    for _ in 0..14 {
        if bundles.is_empty() {
            return;
        }
        let chosen = random.below(u64::try_from(bundles.len()).unwrap());
        let chosen = bundles[usize::try_from(chosen).unwrap()].clone();
        let is_assigned = random.below(3) > 0;
        if is_assigned {
            command(&fleet, &chosen, "assign").await;
        } else {
            command(&fleet, &chosen, "revoke").await;
            bundles.retain(|bundle| *bundle != chosen);
            model.revoked.insert(chosen);
        }
        settle(world, &mut fleet, &mut model, random, !is_assigned).await;
    }
}

#[tokio::test]
async fn every_sequence_of_verdicts_and_revocations_leads_to_a_good_bundle() {
    for world in worlds().await {
        let mut random = Random(31);
        for sequence in 0..12 {
            run_sequence(&world, &mut random, 10_000 + sequence * 10).await;
        }
    }
}
