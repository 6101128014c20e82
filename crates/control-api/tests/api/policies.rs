//! Policies of projects: refused bundles with warnings, and weekly times without changes.

use crate::fleet::Fleet;
use crate::world::{Answer, Credential, World, worlds};
use axum::http::{Method, StatusCode};
use control_domain::Role;
use jiff::Timestamp;
use serde_json::{Value, json};

const POLICY: &str = "/projects/{project}/policy";
const BUNDLES: &str = "/projects/{project}/bundles";
const WHOLE_WEEK_FREEZES: [&str; 2] = ["Mon 00:00-Thu 00:00", "Thu 00:00-Mon 00:00"];

async fn set(world: &World, by: &Credential, body: Value) -> Answer {
    let answer = world.send(&Method::PUT, POLICY, by, &body, &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer
}

async fn assign(fleet: &Fleet<'_>, bundle: &str) -> Answer {
    let path = format!("{BUNDLES}/{bundle}/assign");
    fleet
        .post(&path, json!({"nodes": [fleet.nodes[0].id]}))
        .await
}

fn is_refused(answer: &Answer, reason: &str) {
    let found = (answer.status, answer.code());
    assert_eq!(
        found,
        (StatusCode::CONFLICT, "WRONG_STATE"),
        "{}",
        answer.body
    );
    assert!(answer.text.contains(reason), "{}", answer.text);
}

#[tokio::test]
async fn nothing_is_rolled_out_during_a_freeze() {
    for world in worlds().await {
        let (mut fleet, old, new) = Fleet::running(&world, 4).await;
        let planned = fleet.plan(&old, json!({"skip_gate": true})).await;
        let admin = world.user(world.org, Role::Admin).await;
        let id = fleet.start(&new, json!({"skip_gate": true})).await;
        assert_eq!(fleet.tick(0).await, 1, "the first batch is opened");
        let frozen = set(&world, &admin, json!({ "freeze": WHOLE_WEEK_FREEZES })).await;
        assert_eq!(frozen.body["policy"]["freeze"], json!(WHOLE_WEEK_FREEZES));
        // The current batch is completed, but the next one is not opened.
        fleet.follow_order(0).await;
        fleet.follow_order(1).await;
        fleet.tick(0).await;
        assert_eq!(fleet.tick(0).await, 0);
        let view = fleet.view(&id).await;
        assert_eq!(
            (&view["state"], &view["batch"]),
            (&json!("running"), &json!(1))
        );
        assert_eq!(view["batches"][0]["state"], "passed", "{view}");
        let end: Timestamp = view["held_until"].as_str().unwrap().parse().unwrap();
        assert!(world.app.now() < end, "{view}");
        let until = "allows no change until ";
        is_refused(&assign(&fleet, &old).await, until);
        fleet.command(&id, "pause").await;
        is_refused(&fleet.command(&id, "resume").await, until);
        is_refused(&fleet.command(&planned, "start").await, until);
        // Reverts are not restricted.
        let back = fleet.command(&id, "rollback").await;
        assert_eq!(back.status, StatusCode::OK, "{}", back.body);
        set(&world, &admin, json!({"freeze": []})).await;
        let audit = world.get("/orgs/{org}/audit?action=project.", &admin).await;
        assert!(
            audit.text.contains("project.policy_changed"),
            "{}",
            audit.text
        );
        assert!(audit.text.contains("Mon 00:00-Thu 00:00"), "{}", audit.text);
    }
}

#[tokio::test]
async fn a_bundle_with_warnings_is_refused_if_the_policy_requires_it() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let text = "listeners { listener \"a\" { address \"127.0.0.1:82\" } }\n\
                    routes { route \"all\" { service-type \"builtin\"; builtin-handler \"health\" } }";
        let unused = "upstreams { upstream \"u\" { target \"10.0.0.1:80\" } }";
        let body = |text: &str| json!({"name": "one", "files": {"proxy.kdl": text}});
        let clean = fleet.post(BUNDLES, body(text)).await.text("id");
        fleet.run(&clean).await;
        let body = body(&format!("{text}\n{unused}"));
        let warned = fleet.post(BUNDLES, body.clone()).await;
        assert_eq!(warned.text("state"), "signed", "{}", warned.body);
        let warned = warned.text("id");
        let admin = world.user(world.org, Role::Admin).await;
        set(&world, &admin, json!({"refuse_warnings": true})).await;
        is_refused(
            &assign(&fleet, &warned).await,
            "refuses bundles with warnings",
        );
        let id = fleet.plan(&warned, json!({"skip_gate": true})).await;
        is_refused(&fleet.command(&id, "start").await, "and this one has ");
        let files = json!({"files": body["files"]});
        let preview = fleet.post(&format!("{BUNDLES}/preview"), files).await;
        assert_eq!(preview.body["refused"], true, "{}", preview.body);
        // Nodes decide whether a target on loopback is allowed.
        let text = "listeners { listener \"a\" { address \"127.0.0.1:8099\" } }\n\
                    routes { route \"all\" { upstream \"u\" } }\n\
                    upstreams { upstream \"u\" { target \"127.0.0.1:9\" } }";
        let local = json!({"name": "local", "files": {"proxy.kdl": text}});
        let local = fleet.post(BUNDLES, local).await;
        assert!(local.text.contains("node-allowance"), "{}", local.text);
        let assigned = assign(&fleet, &local.text("id")).await;
        assert_eq!(assigned.status, StatusCode::OK, "{}", assigned.body);
        // Fields that are absent stay unchanged.
        let kept = set(&world, &admin, json!({"approve": "none"})).await;
        assert_eq!(kept.body["policy"]["refuse_warnings"], true);
        set(&world, &admin, json!({"refuse_warnings": false})).await;
        let free = assign(&fleet, &warned).await;
        assert_eq!(free.status, StatusCode::OK, "{}", free.body);
    }
}

#[tokio::test]
async fn a_preview_compares_with_the_ordered_bundles() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 2).await;
        let old = fleet.bundle(81).await;
        let preview = async |port: u16| {
            let text = format!("listeners {{ listener \"a\" {{ address \"127.0.0.1:{port}\" }} }}");
            let body = json!({"files": {"proxy.kdl": text}});
            world
                .post(&format!("{BUNDLES}/preview"), &fleet.operator, body)
                .await
        };
        let before = preview(81).await;
        assert_eq!(before.status, StatusCode::OK, "{}", before.body);
        // The node that every test has is without an order, too.
        assert_eq!(before.body["unordered_nodes"], 3, "{}", before.body);
        assert_eq!(before.body["comparisons"], json!([]));
        fleet.run(&old).await;
        let preview = async |port: u16| {
            let text = format!("listeners {{ listener \"a\" {{ address \"127.0.0.1:{port}\" }} }}");
            let body = json!({"files": {"proxy.kdl": text}});
            world
                .post(&format!("{BUNDLES}/preview"), &fleet.operator, body)
                .await
        };
        let same = preview(81).await.body;
        assert_eq!(same["comparisons"][0]["before"], old, "{same}");
        assert_eq!(same["comparisons"][0]["nodes"], 2, "{same}");
        assert_eq!(same["comparisons"][0]["same"], true, "{same}");
        let other = preview(82).await.body;
        let found = &other["comparisons"][0];
        assert_eq!(found["same"], false, "{other}");
        assert_eq!(
            found["diff"]["risks"][0]["class"], "listener-removed",
            "{other}"
        );
        assert_eq!(other["needs_approval"], false);
        let wrong = json!({"files": {"proxy.kdl": "limits { }\nplanets { }"}});
        let wrong = world
            .post(&format!("{BUNDLES}/preview"), &fleet.operator, wrong)
            .await;
        assert_eq!(wrong.body["digest"], Value::Null, "{}", wrong.body);
        assert_eq!(wrong.body["diagnostics"][0]["severity"], "error");
        let listed = world.get(BUNDLES, &fleet.operator).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 1);
    }
}
