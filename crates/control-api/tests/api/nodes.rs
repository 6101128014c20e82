//! Nodes: registration, reports, search, deletion.

use crate::world::{Answer, Credential, World, worlds};
use axum::http::{Method, StatusCode};
use control_domain::Role;
use control_wire::{Health, HeartbeatRequest, NodeId};
use jiff::SignedDuration;
use serde_json::{Value, json};
use uuid::Uuid;

const NODES: &str = "/projects/{project}/nodes";
const TOKENS: &str = "/projects/{project}/enrolment-tokens";

async fn enrol(world: &World, max_uses: u32) -> (String, Credential) {
    let operator = world.user(world.org, Role::Operator).await;
    let body = json!({"name": "rack 1", "max_uses": max_uses, "labels": {"zone": "eu"}});
    let made = world.post(TOKENS, &operator, body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(made.header("cache-control"), "no-store");
    (made.text("id"), Credential::Bearer(made.text("secret")))
}

async fn register(world: &World, token: &Credential, name: &str) -> Answer {
    let body = json!({"name": name, "labels": {"zone": "eu"}});
    world
        .post("/projects/{project}/nodes/register", token, body)
        .await
}

async fn heartbeat(world: &World, id: &str, by: &Credential, body: &Value) -> Answer {
    let path = format!("/nodes/{id}/heartbeat");
    world.post(&path, by, body.clone()).await
}

async fn patch(world: &World, id: &str, labels: &Value, tag: &str) -> Answer {
    let (path, body) = (format!("{NODES}/{id}"), json!({"labels": labels}));
    let full = world.full_key().await;
    let fields = [("if-match", tag)];
    world
        .send(&Method::PATCH, &path, &full, &body, &fields)
        .await
}

#[tokio::test]
async fn a_node_is_enrolled_reports_and_is_deleted() {
    for world in worlds().await {
        let (_, token) = enrol(&world, 1).await;
        let made = register(&world, &token, "edge-1").await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(made.header("cache-control"), "no-store");
        assert_eq!(made.text("node_key").len(), 43);
        assert_eq!(made.body["heartbeat_interval_secs"], 30);
        let jwks = world.get("/orgs/{org}/jwks.json", &Credential::None).await;
        assert_eq!(made.body["signing_keys"], jwks.body["keys"]);
        let again = register(&world, &token, "edge-2").await;
        assert_eq!(again.status, StatusCode::UNAUTHORIZED, "it is used up");

        let (id, key) = (made.text("node_id"), made.text("node_key"));
        let key = Credential::NodeKey(key);
        let (reader, path) = (
            world.user(world.org, Role::Reader).await,
            format!("{NODES}/{id}"),
        );
        let new = world.get(&path, &reader).await;
        assert_eq!(new.text("state"), "enrolled");
        assert_eq!(new.body["labels"], json!({"zone": "eu"}));
        let beat = heartbeat(&world, &id, &key, &json!({"health": {"cpu_percent": 2}})).await;
        let answer =
            json!({"heartbeat_interval_secs": 30, "order": 0, "confirmation": "confirmed"});
        assert_eq!(beat.body, answer);
        let there = world.get(&path, &reader).await;
        assert_eq!(there.text("state"), "online");
        assert_eq!(there.body["cpu_percent"], 2.0);
        assert_ne!(there.header("etag"), new.header("etag"));
        let unchanged = [("if-none-match", there.header("etag"))];
        let known = world
            .send(&Method::GET, &path, &reader, &Value::Null, &unchanged)
            .await;
        assert_eq!(known.status, StatusCode::NOT_MODIFIED);

        let operator = world.user(world.org, Role::Operator).await;
        let gone = world
            .send(&Method::DELETE, &path, &operator, &Value::Null, &[])
            .await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        let beat = heartbeat(&world, &id, &key, &json!({"health": {"cpu_percent": 2}})).await;
        assert_eq!(beat.status, StatusCode::UNAUTHORIZED);
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_enrolment_token_is_counted_and_revoked() {
    for world in worlds().await {
        let (id, token) = enrol(&world, 3).await;
        let made = register(&world, &token, "edge-1").await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        // Another machine with the same name. A lost response is repeated only to the same address.
        world.change_address();
        let taken = register(&world, &token, "edge-1").await;
        assert_eq!(
            (taken.status, taken.code()),
            (StatusCode::CONFLICT, "CONFLICT")
        );
        let full = world.full_key().await;
        let listed = world.get(TOKENS, &full).await;
        let item = &listed.body["items"][0];
        assert_eq!(item["uses"], 1, "a name that is taken uses nothing up");
        assert_eq!(item["state"], "active");
        assert_eq!(item.get("secret"), None);
        let path = format!("{TOKENS}/{id}/revoke");
        let revoked = world.post(&path, &full, Value::Null).await;
        assert_eq!(revoked.text("state"), "revoked");
        let late = register(&world, &token, "edge-2").await;
        assert_eq!(late.status, StatusCode::UNAUTHORIZED);
        let twice = world.post(&path, &full, Value::Null).await;
        assert_eq!(twice.code(), "WRONG_STATE");
        for (body, field) in [
            (json!({"name": "a", "max_uses": 0}), "max_uses"),
            (json!({"name": "a", "max_uses": 100_001}), "max_uses"),
            (json!({"name": ""}), "name"),
            (
                json!({"name": "a", "expires_at": "2020-01-01T00:00:00Z"}),
                "expires_at",
            ),
            (
                json!({"name": "a", "expires_at": "2999-01-01T00:00:00Z"}),
                "expires_at",
            ),
        ] {
            let wrong = world.post(TOKENS, &full, body).await;
            assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
            assert_eq!(wrong.body["error"]["details"][0]["field"], field);
        }
    }
}

#[tokio::test]
async fn registrations_of_one_address_are_few() {
    for world in worlds().await {
        let (_, token) = enrol(&world, 100).await;
        for number in 0..10 {
            let made = register(&world, &token, &format!("edge-{number}")).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        }
        let refused = register(&world, &token, "edge-10").await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        world.change_address();
        let made = register(&world, &token, "edge-10").await;
        assert_eq!(
            made.status,
            StatusCode::CREATED,
            "another address has its own"
        );
    }
}

#[tokio::test]
async fn a_node_that_misses_three_heartbeats_is_offline() {
    for world in worlds().await {
        let path = format!("{NODES}/{}", world.node);
        for (age, state) in [(89, "online"), (91, "offline")] {
            let mut tx = world.store.begin().await.unwrap();
            let heartbeat_request = HeartbeatRequest {
                health: Health { cpu_percent: 1.0 },
                version: None,
                status: None,
                traffic: None,
                instance: None,
            };
            let then = world.app.now() - SignedDuration::from_secs(age);
            tx.write_heartbeat(world.node, &heartbeat_request, then)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let full = world.full_key().await;
            assert_eq!(world.get(&path, &full).await.text("state"), state);
            let stats = world.get(&format!("{NODES}/stats"), &full).await;
            assert_eq!(
                (&stats.body["total"], &stats.body[state]),
                (&json!(1), &json!(1))
            );
            for filter in ["enrolled", "online", "offline"] {
                let listed = world.get(&format!("{NODES}?state={filter}"), &full).await;
                let found = listed.body["items"].as_array().unwrap().len();
                assert_eq!(found, usize::from(filter == state), "{filter} at {age}");
            }
        }
    }
}

#[tokio::test]
async fn a_node_reports_its_bundle_and_its_traffic() {
    for world in worlds().await {
        let id = world.node.to_string();
        let bundle = NodeId::new(world.app.now(), [7; 10]);
        let status = json!({
            "desired": bundle, "staged": null, "active": bundle, "last_good": bundle,
            "order": 4, "verdict": "rejected", "diagnostics": ["no such upstream"],
        });
        let traffic = json!({"routes": {"api": {
            "requests": 3, "errors": 1, "reasons": {"timeout": 1},
            "latency": [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        }}});
        let body = json!({
            "health": {"cpu_percent": 12.5}, "version": "1.2.3", "status": status,
            "traffic": traffic,
        });
        let beat = heartbeat(&world, &id, &world.node_key, &body).await;
        assert_eq!(beat.status, StatusCode::OK, "{}", beat.body);
        let full = world.full_key().await;
        let view = world.get(&format!("{NODES}/{id}"), &full).await;
        assert_eq!(view.body["status"]["active"], json!(bundle));
        assert_eq!(view.body["status"]["verdict"], "rejected");
        assert_eq!(view.body["status"]["order"], 4);
        assert_eq!(view.body["diagnostics"], json!(["no such upstream"]));
        assert_eq!(view.body["traffic"], traffic);
        assert_eq!(view.body["version"], "1.2.3");
        let stats = world.get(&format!("{NODES}/stats"), &full).await;
        let active = json!([{"bundle": bundle, "nodes": 1}]);
        assert_eq!(stats.body["active_bundles"], active);
    }
}

#[tokio::test]
async fn a_heartbeat_is_held_to_its_bounds() {
    for world in worlds().await {
        let health = json!({"cpu_percent": 1});
        let long = "x".repeat(1_001);
        let many: Vec<&str> = vec!["x"; 101];
        for (body, field) in [
            (json!({}), "health"),
            (json!({"health": {}}), "health.cpu_percent"),
            (json!({"health": {"cpu_percent": -1}}), "health.cpu_percent"),
            (
                json!({"health": {"cpu_percent": 1e9}}),
                "health.cpu_percent",
            ),
            (
                json!({"health": {"cpu_percent": "1"}}),
                "health.cpu_percent",
            ),
            (json!({"health": health, "uptime": 1}), "uptime"),
            (json!({"health": health, "version": "a\nb"}), "version"),
            (
                json!({"health": health, "status": {"verdict": "accepted"}}),
                "status.order",
            ),
            (
                json!({"health": health, "status": {"order": u64::MAX}}),
                "status.order",
            ),
            (
                json!({"health": health, "status": {"diagnostics": [long]}}),
                "status.diagnostics",
            ),
            (
                json!({"health": health, "status": {"diagnostics": many}}),
                "status.diagnostics",
            ),
            (
                json!({"health": health, "status": {"diagnostics": ["\0"]}}),
                "status.diagnostics",
            ),
            (
                json!({"health": health, "traffic": {"routes": {"": {
                "requests": 1, "errors": 0, "latency": vec![0; 12]}}}}),
                "traffic.routes",
            ),
        ] {
            world.change_address();
            let id = world.node.to_string();
            let wrong = heartbeat(&world, &id, &world.node_key, &body).await;
            assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
            assert_eq!(wrong.body["error"]["details"][0]["field"], field, "{body}");
        }
    }
}

#[tokio::test]
async fn a_heartbeat_is_not_audited() {
    for world in worlds().await {
        let head = async || {
            let mut tx = world.store.read().await.unwrap();
            tx.audit_head().await.unwrap()
        };
        let (before, id) = (head().await, world.node.to_string());
        let body = json!({"health": {"cpu_percent": 1}});
        let beat = heartbeat(&world, &id, &world.node_key, &body).await;
        assert_eq!(beat.status, StatusCode::OK);
        assert_eq!(head().await, before);
    }
}

#[tokio::test]
async fn simultaneous_heartbeats_are_all_stored() {
    for world in worlds().await {
        let (full, mut ids) = (world.full_key().await, Vec::new());
        for _ in 0..40 {
            ids.push(world.new_node(world.tenant()).await);
        }
        let body = json!({"health": {"cpu_percent": 1}});
        let beats = ids.iter().map(|(id, key)| {
            let (world, id, body) = (&world, id.to_string(), &body);
            async move { heartbeat(world, &id, key, body).await.status }
        });
        let statuses = futures_util::future::join_all(beats).await;
        assert!(statuses.iter().all(|status| *status == StatusCode::OK));
        let stats = world.get(&format!("{NODES}/stats"), &full).await;
        assert_eq!(stats.body["online"], 40);
    }
}

#[tokio::test]
async fn labels_are_changed_by_version_and_searched() {
    for world in worlds().await {
        let (full, id) = (world.full_key().await, world.node.to_string());
        let path = format!("{NODES}/{id}");
        let tag = world.get(&path, &full).await.header("etag").to_owned();
        let labels = json!({"zone": "eu", "tier": "edge"});
        let changed = patch(&world, &id, &labels, &tag).await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
        assert_eq!(changed.body["labels"], labels);
        let stale = patch(&world, &id, &json!({"zone": "us"}), &tag).await;
        assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
        let labels = json!({"zone": null});
        let changed = patch(&world, &id, &labels, changed.header("etag")).await;
        assert_eq!(changed.body["labels"], json!({"tier": "edge"}));
        for (label, found) in [("tier=edge", 1), ("tier=core", 0), ("zone=eu", 0)] {
            let listed = world.get(&format!("{NODES}?label={label}"), &full).await;
            let items = listed.body["items"].as_array().unwrap();
            assert_eq!(items.len(), found, "{label}");
        }
        let wrong = patch(&world, &id, &json!({"Zone": "eu"}), "*").await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
        for wrong in ["=eu", "tier!=eu"] {
            let wrong = world.get(&format!("{NODES}?label={wrong}"), &full).await;
            assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{}", wrong.body);
        }
        let wrong = world.get(&format!("{NODES}?label=tier"), &full).await;
        assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn events_of_a_node_are_kept_in_their_order() {
    for world in worlds().await {
        let event = |number: u32| {
            json!({"at": "2026-01-01T00:00:00Z", "kind": "bundle.activated",
                   "message": number.to_string()})
        };
        let path = "/nodes/{node}/events";
        let send = async |events: Vec<Value>| {
            let body = json!({"events": events});
            world.post(path, &world.node_key, body).await.status
        };
        assert_eq!(
            send((0..100).map(event).collect()).await,
            StatusCode::NO_CONTENT
        );
        assert_eq!(
            send((100..102).map(event).collect()).await,
            StatusCode::NO_CONTENT
        );
        let wrong = StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(send(Vec::new()).await, wrong);
        assert_eq!(send((0..101).map(event).collect()).await, wrong);
        let kind = json!({"at": "2026-01-01T00:00:00Z", "kind": "Bundle!"});
        assert_eq!(send(vec![kind]).await, wrong);
        let full = world.full_key().await;
        let mut expected: Vec<String> = (0..102).map(|number| number.to_string()).collect();
        for sort in ["&sort=id", ""] {
            let path = format!("{NODES}/{}/events?limit=200{sort}", world.node);
            let listed = world.get(&path, &full).await;
            let items = listed.body["items"].as_array().unwrap().iter();
            let messages: Vec<&str> = items
                .map(|item| item["message"].as_str().unwrap())
                .collect();
            assert_eq!(messages, expected, "{path}");
            // Newest first, unless the request asks for another order.
            expected.reverse();
        }
    }
}

#[tokio::test]
async fn two_processes_of_one_identity_are_shown_and_refused_nothing() {
    for world in worlds().await {
        let path = format!("{NODES}/{}", world.node);
        let key = world.full_key().await;
        let before = world.get(&path, &key).await;
        assert_eq!(before.body["duplicated_since"], Value::Null);
        let heartbeat = format!("/nodes/{}/heartbeat", world.node);
        let copies = [Uuid::from_u128(1), Uuid::from_u128(2)];
        for instance in copies.iter().cycle().take(6) {
            let body = json!({"health": {"cpu_percent": 1.0}, "instance": instance});
            let answer = world.post(&heartbeat, &world.node_key, body).await;
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        }
        let view = world.get(&path, &key).await;
        assert!(view.body["duplicated_since"].is_string(), "{}", view.body);
        assert!(
            view.header("etag").ends_with("-duplicated\""),
            "{:?}",
            view.headers
        );
        let events = world.get(&format!("{path}/events"), &key).await;
        let events = events.body["items"].as_array().unwrap().clone();
        assert_eq!(events.len(), 1, "one event for all turns: {events:?}");
        assert_eq!(events[0]["kind"], "node.duplicated");
    }
}

#[tokio::test]
async fn an_enrolment_whose_answer_was_lost_is_finished_by_asking_again() {
    for world in worlds().await {
        let mut token = world.enrolment_token(world.tenant());
        token.max_uses = 1;
        let token = world.store_enrolment_token(&token).await;
        let path = "/projects/{project}/nodes/register";
        let body = json!({"name": "rack-1"});
        let lost = world.post(path, &token, body.clone()).await;
        assert_eq!(lost.status, StatusCode::CREATED, "{}", lost.body);
        let again = world.post(path, &token, body.clone()).await;
        assert_eq!(again.status, StatusCode::CREATED, "{}", again.body);
        assert_eq!(again.text("node_id"), lost.text("node_id"));
        let node = again.text("node_id");
        let exchange = async |answer: &Answer| {
            let key = Credential::NodeKey(answer.text("node_key"));
            let path = format!("/nodes/{node}/token");
            world.post(&path, &key, Value::Null).await.status
        };
        assert_eq!(exchange(&lost).await, StatusCode::UNAUTHORIZED);
        assert_eq!(exchange(&again).await, StatusCode::OK);
        // The token admits no other node, and gives out no key for a node after its first
        // heartbeat.
        let other = world.post(path, &token, json!({"name": "rack-2"})).await;
        assert_eq!(other.status, StatusCode::UNAUTHORIZED, "{}", other.body);
        let key = Credential::NodeKey(again.text("node_key"));
        let beat = json!({"health": {"cpu_percent": 1.0}});
        let beat = world
            .post(&format!("/nodes/{node}/heartbeat"), &key, beat)
            .await;
        assert_eq!(beat.status, StatusCode::OK, "{}", beat.body);
        let late = world.post(path, &token, body).await;
        assert_eq!(late.status, StatusCode::UNAUTHORIZED, "{}", late.body);
        assert_eq!(exchange(&again).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn nodes_are_chosen_by_a_selector() {
    for world in worlds().await {
        let key = world.full_key().await;
        let path = format!("/projects/{{project}}/nodes/{}", world.node);
        let labels = json!({"labels": {"zone": "eu", "tier": "edge"}});
        let labelled = world.send(&Method::PATCH, &path, &key, &labels, &[]).await;
        assert_eq!(labelled.status, StatusCode::OK, "{}", labelled.body);
        for (selector, count) in [
            ("zone=eu,tier=edge", 1),
            ("zone=eu,tier!=edge", 0),
            ("zone!=us", 1),
            ("zone,!spare", 1),
            ("!zone", 0),
        ] {
            let list = format!("/projects/{{project}}/nodes?selector={selector}");
            let found = world.get(&list, &key).await.body;
            assert_eq!(
                found["items"].as_array().map(Vec::len),
                Some(count),
                "{selector}"
            );
        }
        let wrong = world
            .get("/projects/{project}/nodes?selector==eu", &key)
            .await;
        assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
        assert!(wrong.text.contains("selector"), "{}", wrong.text);
    }
}
