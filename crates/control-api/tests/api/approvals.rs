//! Approval by a second person, as required by a project's policy.

use crate::fleet::{Fleet, ROLLOUTS, command};
use crate::world::{Answer, Credential, World, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Role, Tenant};
use control_testkit::{Database, until_lock_wait};
use serde_json::{Value, json};
use uuid::Uuid;

const POLICY: &str = "/projects/{project}/policy";
const BUNDLES: &str = "/projects/{project}/bundles";

/// Creates a key with the credential `by`.
async fn key_by(world: &World, by: &Credential) -> Credential {
    let new = json!({"name": Uuid::now_v7().to_string(), "scopes": []});
    let made = world.post("/api-keys", by, new).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    Credential::Bearer(made.text("secret"))
}

async fn set_policy(world: &World, by: &Credential, approve: &str) -> Answer {
    let body = json!({ "approve": approve });
    world.send(&Method::PUT, POLICY, by, &body, &[]).await
}

/// Creates a bundle that differs from the one with this port by `more`.
async fn variant(fleet: &Fleet<'_>, port: u16, more: &str) -> String {
    let text = format!("listeners {{ listener \"a\" {{ address \"127.0.0.1:{port}\" }} }}\n{more}");
    let body = json!({"name": "variant", "files": {"proxy.kdl": text}});
    let made = fleet.world.post(BUNDLES, &fleet.operator, body).await;
    assert_eq!(made.text("state"), "signed", "{}", made.body);
    made.text("id")
}

#[tokio::test]
async fn a_person_does_not_approve_by_another_key_or_session() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 1).await;
        let new = fleet.bundle(82).await;
        let id = fleet.plan(&new, json!({"needs_approval": true})).await;
        let person = world.user(world.org, Role::Admin).await;
        let (first, second) = (key_by(&world, &person).await, key_by(&world, &person).await);
        let minted = key_by(&world, &first).await;
        let submitted = command(&world, &id, &first, "start").await;
        assert_eq!(
            submitted.text("state"),
            "awaiting_approval",
            "{}",
            submitted.body
        );
        for own in [&first, &second, &minted, &person] {
            let own = command(&world, &id, own, "approve").await;
            assert_eq!(own.status, StatusCode::FORBIDDEN, "{}", own.body);
            assert!(own.text.contains("another person"), "{}", own.text);
        }
        // For a key from before creators were recorded, the creator is unknown.
        let unknown = world
            .store_key(&world.key(Tenant::org(world.org), &[]))
            .await;
        let unknown = command(&world, &id, &unknown, "approve").await;
        assert_eq!(unknown.status, StatusCode::FORBIDDEN, "{}", unknown.body);
        let other = world.user(world.org, Role::Operator).await;
        let approved = command(&world, &id, &other, "approve").await;
        assert_eq!(approved.text("state"), "running", "{}", approved.body);
    }
}

#[tokio::test]
async fn no_endpoint_bypasses_the_policy() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let (old, new) = (fleet.bundle(81).await, fleet.bundle(82).await);
        fleet.run(&old).await;
        let planned = fleet.plan(&new, json!({"skip_gate": true})).await;
        let admin = world.user(world.org, Role::Admin).await;
        let set = set_policy(&world, &admin, "all").await;
        assert_eq!(set.body["policy"]["approve"], "all", "{}", set.body);
        // The rule also applies to a rollout that was planned before.
        let started = command(&world, &planned, &admin, "start").await;
        assert_eq!(
            started.text("state"),
            "awaiting_approval",
            "{}",
            started.body
        );
        let own = command(&world, &planned, &admin, "approve").await;
        assert_eq!(own.status, StatusCode::FORBIDDEN, "{}", own.body);
        let assign = format!("{BUNDLES}/{new}/assign");
        let nodes = json!({"nodes": [fleet.nodes[0].id]});
        let assigned = world.post(&assign, &admin, nodes).await;
        assert_eq!(
            (assigned.status, assigned.code()),
            (StatusCode::CONFLICT, "WRONG_STATE"),
            "{}",
            assigned.body
        );
        // One administrator alone cannot disable the rule, not even for a moment.
        for _ in 0..2 {
            let asked = set_policy(&world, &admin, "none").await;
            assert_eq!(asked.status, StatusCode::OK, "{}", asked.body);
            assert_eq!(asked.body["policy"]["approve"], "all", "{}", asked.body);
            assert_eq!(asked.body["policy"]["weaker"]["approve"], "none");
        }
        let own_key = key_by(&world, &admin).await;
        let asked = set_policy(&world, &own_key, "none").await;
        assert_eq!(asked.body["policy"]["approve"], "all", "{}", asked.body);
        let other = world.user(world.org, Role::Admin).await;
        let lifted = set_policy(&world, &other, "none").await;
        let free =
            json!({"approve": "none", "refuse_warnings": false, "freeze": [], "weaker": null});
        assert_eq!(lifted.body["policy"], free);
        let assigned = json!({"nodes": [fleet.nodes[0].id]});
        let assigned = world.post(&assign, &admin, assigned).await;
        assert_eq!(assigned.status, StatusCode::OK, "{}", assigned.body);
    }
}

#[tokio::test]
async fn a_weaker_policy_of_a_former_administrator_does_not_count() {
    for world in worlds().await {
        let (admin, other) = (
            world.user(world.org, Role::Admin).await,
            world.user(world.org, Role::Admin).await,
        );
        set_policy(&world, &admin, "all").await;
        set_policy(&world, &admin, "none").await;
        let id = world.get("/users/me", &admin).await.text("id");
        let path = format!("/orgs/{{org}}/members/{id}");
        let removed = world
            .send(&Method::DELETE, &path, &other, &Value::Null, &[])
            .await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.body);
        let asked = set_policy(&world, &other, "none").await;
        assert_eq!(asked.body["policy"]["approve"], "all", "{}", asked.body);
    }
}

#[tokio::test]
async fn a_risky_change_needs_approval_and_a_comment_none() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let old = fleet.bundle(81).await;
        fleet.run(&old).await;
        let admin = world.user(world.org, Role::Admin).await;
        set_policy(&world, &admin, "risky").await;
        let comment = variant(&fleet, 81, "// nothing else").await;
        let other = fleet.bundle(82).await;
        let assign = async |bundle: &str| {
            let path = format!("{BUNDLES}/{bundle}/assign");
            let nodes = json!({"nodes": [fleet.nodes[0].id]});
            world.post(&path, &admin, nodes).await.status
        };
        assert_eq!(assign(&other).await, StatusCode::CONFLICT);
        assert_eq!(assign(&comment).await, StatusCode::OK);
        let id = fleet.plan(&other, json!({"skip_gate": true})).await;
        let started = command(&world, &id, &admin, "start").await;
        assert_eq!(
            started.text("state"),
            "awaiting_approval",
            "{}",
            started.body
        );
        let cancelled = command(&world, &id, &admin, "cancel").await;
        assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.body);
        let id = fleet.plan(&old, json!({"skip_gate": true})).await;
        let started = command(&world, &id, &admin, "start").await;
        assert_eq!(started.text("state"), "running", "{}", started.body);
    }
}

#[tokio::test]
async fn a_start_is_judged_again_if_the_orders_of_its_nodes_have_changed() {
    let world = World::new(Database::postgres()).await;
    let mut fleet = Fleet::new(&world, 1).await;
    let (other, old) = (fleet.bundle(82).await, fleet.bundle(81).await);
    fleet.run(&other).await;
    fleet.run(&old).await;
    let admin = world.user(world.org, Role::Admin).await;
    set_policy(&world, &admin, "risky").await;
    let comment = variant(&fleet, 81, "// nothing else").await;
    let id = fleet.plan(&comment, json!({"skip_gate": true})).await;
    let node = fleet.nodes[0].id;
    let mut tx = world.store.begin().await.unwrap();
    let seq = tx.lock_audit().await.unwrap();
    let mut order = tx.order(node).await.unwrap().unwrap().order;
    // An order by another operator, before its commit.
    order.bundle = other.parse().unwrap();
    order.counter += 1;
    let now = world.app.now();
    tx.write_order(&order, seq, None, now).await.unwrap();
    let commit = async {
        until_lock_wait(&world.database).await;
        tx.commit().await.unwrap();
    };
    let (started, ()) = tokio::join!(command(&world, &id, &admin, "start"), commit);
    assert_eq!(started.status, StatusCode::CONFLICT, "{}", started.body);
    assert_eq!(fleet.state(&id).await, "planned");
    // From the bundle that the node runs now, the change is risky.
    let again = command(&world, &id, &admin, "start").await;
    assert_eq!(again.text("state"), "awaiting_approval", "{}", again.body);
}

#[tokio::test]
async fn a_report_of_a_node_does_not_bypass_the_policy() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let (old, new) = (fleet.bundle(81).await, fleet.bundle(82).await);
        // Ordered before: only such a bundle of a node's report can be accepted.
        fleet.run(&new).await;
        fleet.run(&old).await;
        fleet.nodes[0].active = Some(new);
        fleet.beat(0).await;
        let late = world.app.now() + jiff::SignedDuration::from_mins(10);
        world.app.watch_drift(fleet.replica, late).await.unwrap();
        let admin = world.user(world.org, Role::Admin).await;
        set_policy(&world, &admin, "all").await;
        let drift = world.get("/projects/{project}/drift", &admin).await;
        let id = drift.body["items"][0]["id"].as_str().unwrap().to_owned();
        let path = format!("/projects/{{project}}/drift/{id}/resolve");
        let accepted = world.post(&path, &admin, json!({"remedy": "accept"})).await;
        assert_eq!(accepted.status, StatusCode::CONFLICT, "{}", accepted.body);
        let reordered = world
            .post(&path, &admin, json!({"remedy": "reorder"}))
            .await;
        assert_eq!(reordered.status, StatusCode::OK, "{}", reordered.body);
    }
}

#[tokio::test]
async fn a_rollout_names_the_person_or_the_key_of_each_command() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 1).await;
        let new = fleet.bundle(82).await;
        let id = fleet.plan(&new, json!({"needs_approval": true})).await;
        let ada = world.person(world.org, Role::Operator).await;
        let session = world.sign_in(&ada).await.session;
        let grace = world.user(world.org, Role::Admin).await;
        let key = key_by(&world, &grace).await;
        for (by, event) in [(&session, "start"), (&key, "approve"), (&grace, "pause")] {
            let done = command(&world, &id, by, event).await;
            assert_eq!(done.status, StatusCode::OK, "{event}: {}", done.body);
        }
        let reader = world.user(world.org, Role::Reader).await;
        let found = world.get(&format!("{ROLLOUTS}/{id}"), &reader).await;
        let commands = found.body["commands"].as_array().unwrap();
        let events = commands.iter().map(|command| {
            let text = |name: &str| command[name].as_str().unwrap().to_owned();
            (text("event"), text("actor_kind"))
        });
        let events: Vec<(String, String)> = events.collect();
        let expected = [
            ("created", "api_key"),
            ("submit", "user"),
            ("approve", "api_key"),
            ("pause", "user"),
        ];
        assert_eq!(events, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(commands[1]["actor"], ada.id.to_string());
        let by_key = commands[2]["actor_name"].as_str().unwrap();
        assert!(by_key.contains(", a key of "), "{by_key}");
        // Users that can read rollouts may not all read members' e-mail addresses.
        assert!(
            !found.body["commands"].to_string().contains('@'),
            "{commands:?}"
        );
    }
}
