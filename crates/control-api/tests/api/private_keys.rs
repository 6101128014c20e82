//! Labels come from tokens, not from nodes; private keys need a separate permission.

use crate::fleet::Fleet;
use crate::world::{Answer, Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{DRIFT_GRACE, Scope};
use control_wire::NodeId;
use serde_json::{Value, json};

const NODES: &str = "/projects/{project}/nodes";
const TOKENS: &str = "/projects/{project}/enrolment-tokens";
const BUNDLES: &str = "/projects/{project}/bundles";
const CERTIFICATES: &str = "/projects/{project}/certificates";
const DRIFT: &str = "/projects/{project}/drift";

async fn key(world: &World, scopes: &[Scope]) -> Credential {
    world.store_key(&world.key(world.tenant(), scopes)).await
}

async fn patch(world: &World, by: &Credential, node: &str, labels: Value) -> Answer {
    let (path, body) = (format!("{NODES}/{node}"), json!({ "labels": labels }));
    world.send(&Method::PATCH, &path, by, &body, &[]).await
}

/// A certificate for nodes with `tier=payments`, and a bundle that names it.
async fn payments(world: &World, full: &Credential) -> (String, String) {
    let mut new = sample(CERTIFICATES);
    new["node_labels"] = json!({"tier": "payments"});
    let made = world.post(CERTIFICATES, full, new).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let certificate = made.text("id");
    let made = world.post(BUNDLES, full, naming(&certificate)).await;
    assert_eq!(made.text("state"), "signed", "{}", made.body);
    (certificate, made.text("id"))
}

fn naming(certificate: &str) -> Value {
    let mut new = sample(BUNDLES);
    new["files"][format!("certificates/{certificate}.pem")] = json!("");
    new
}

async fn assign(world: &World, by: &Credential, bundle: &str, node: NodeId) -> Answer {
    let path = format!("{BUNDLES}/{bundle}/assign");
    world.post(&path, by, json!({ "nodes": [node] })).await
}

#[tokio::test]
async fn labels_are_given_by_the_token_and_others_wait_for_an_approval() {
    for world in worlds().await {
        let full = world.full_key().await;
        let given = json!({"name": "rack", "max_uses": 5, "labels": {"region": "eu"}});
        let token = Credential::Bearer(world.post(TOKENS, &full, given).await.text("secret"));
        let register = format!("{NODES}/register");
        let labels = async |name: &str, labels: Value| {
            let body = json!({ "name": name, "labels": labels });
            let made = world.post(&register, &token, body).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
            let path = format!("{NODES}/{}", made.text("node_id"));
            world.get(&path, &full).await
        };
        for (name, asked) in [("a", json!({})), ("b", json!({"region": "eu"}))] {
            let node = labels(name, asked).await;
            assert_eq!(node.body["labels"], json!({"region": "eu"}));
            assert_eq!(node.body["requested_labels"], Value::Null);
        }
        let asked = json!({"region": "eu", "tier": "payments"});
        let node = labels("c", asked.clone()).await;
        assert_eq!(
            node.body["labels"],
            json!({"region": "eu"}),
            "not what it claims"
        );
        assert_eq!(node.body["requested_labels"], asked);

        // The node waits for approval, so neither an assignment nor a rollout includes it.
        let bundle = world.post(BUNDLES, &full, sample(BUNDLES)).await.text("id");
        let id: NodeId = node.text("id").parse().unwrap();
        let refused = assign(&world, &full, &bundle, id).await;
        assert_eq!(refused.code(), "WRONG_STATE", "{}", refused.body);
        let naming = json!({"bundle": bundle, "nodes": [id]});
        let refused = world
            .post("/projects/{project}/rollouts", &full, naming)
            .await;
        assert_eq!(refused.code(), "WRONG_STATE", "{}", refused.body);
        let rollout = json!({"bundle": bundle, "labels": {"region": "eu"}});
        let rollout = world
            .post("/projects/{project}/rollouts", &full, rollout)
            .await;
        assert_eq!(rollout.body["nodes"], 2, "{}", rollout.body);

        let approve = format!("{NODES}/{id}/approve");
        let approved = world.post(&approve, &full, json!({})).await;
        assert_eq!(approved.body["labels"], asked, "{}", approved.body);
        assert_eq!(approved.body["requested_labels"], Value::Null);
        assert_eq!(
            assign(&world, &full, &bundle, id).await.status,
            StatusCode::OK
        );
        let again = world.post(&approve, &full, json!({})).await;
        assert_eq!(again.code(), "WRONG_STATE");

        let node = labels("d", json!({"tier": "payments"})).await.text("id");
        let approve = format!("{NODES}/{node}/approve");
        let plain = json!({"without_labels": true});
        let approved = world.post(&approve, &full, plain).await;
        assert_eq!(approved.body["labels"], json!({"region": "eu"}));
    }
}

#[tokio::test]
async fn a_certificate_of_a_bundle_that_nodes_may_run_is_not_deleted() {
    for world in worlds().await {
        let full = world.full_key().await;
        let made = world.post(CERTIFICATES, &full, sample(CERTIFICATES)).await;
        let certificate = made.text("id");
        let named = world.post(BUNDLES, &full, naming(&certificate)).await;
        assert_eq!(named.text("state"), "signed", "{}", named.body);
        let named = named.text("id");
        let mut plain = sample(BUNDLES);
        let text = plain["files"]["proxy.kdl"].as_str().unwrap().to_owned();
        plain["files"]["proxy.kdl"] = json!(format!("// Without certificates.\n{text}"));
        let plain = world.post(BUNDLES, &full, plain).await;
        assert_eq!(plain.text("state"), "signed", "{}", plain.body);
        let plain = plain.text("id");
        let path = format!("{CERTIFICATES}/{certificate}");
        let delete = async || {
            world
                .send(&Method::DELETE, &path, &full, &Value::Null, &[])
                .await
        };
        // In force first, then the way back of the node.
        for bundle in [&named, &plain] {
            let ordered = assign(&world, &full, bundle, world.node).await;
            assert_eq!(ordered.status, StatusCode::OK, "{}", ordered.body);
            let refused = delete().await;
            assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
            let reason = "nodes or rollouts whose bundles name it";
            assert!(refused.text.contains(reason), "{}", refused.text);
        }
        let revoke = format!("{BUNDLES}/{named}/revoke");
        let revoked = world.post(&revoke, &full, Value::Null).await;
        assert_eq!(revoked.text("state"), "revoked", "{}", revoked.body);
        let deleted = delete().await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.text);
    }
}

#[tokio::test]
async fn a_certificate_is_delivered_only_to_nodes_with_its_labels() {
    for world in worlds().await {
        let full = world.full_key().await;
        let (certificate, bundle) = payments(&world, &full).await;
        let node = world.node.to_string();
        let refused = assign(&world, &full, &bundle, world.node).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.body
        );
        let rollout = json!({"bundle": bundle, "nodes": [world.node]});
        let refused = world
            .post("/projects/{project}/rollouts", &full, rollout)
            .await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.body
        );

        patch(&world, &full, &node, json!({"tier": "payments"})).await;
        let ordered = assign(&world, &full, &bundle, world.node).await;
        assert_eq!(ordered.status, StatusCode::OK, "{}", ordered.body);
        let fetch = format!("/nodes/{node}/certificates/{certificate}");
        let fetched = world.get(&fetch, &world.node_key).await;
        assert_eq!(fetched.status, StatusCode::OK, "{}", fetched.body);
        // A renewal without labels keeps the existing ones.
        let path = format!("{CERTIFICATES}/{certificate}");
        let new = sample(CERTIFICATES);
        let renewed = world.send(&Method::PUT, &path, &full, &new, &[]).await;
        assert_eq!(renewed.body["node_labels"], json!({"tier": "payments"}));

        patch(&world, &full, &node, json!({"tier": null})).await;
        for _ in 0..2 {
            let refused = world.get(&fetch, &world.node_key).await;
            assert_eq!(refused.status, StatusCode::NOT_FOUND);
        }
        let log = world.get("/orgs/{org}/audit?limit=200", &full).await;
        let entries = log.body["items"].as_array().unwrap();
        let count = |action: &str| {
            let named = entries.iter().filter(|entry| entry["action"] == action);
            named.count()
        };
        assert_eq!(count("certificate.delivered"), 1, "{entries:?}");
        assert_eq!(count("certificate.refused"), 1, "once an hour: {entries:?}");
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
    }
}

#[tokio::test]
async fn the_right_to_nodes_reads_no_private_key() {
    for world in worlds().await {
        let full = world.full_key().await;
        let (_, bundle) = payments(&world, &full).await;
        let nodes = key(&world, &[Scope::NodesWrite]).await;
        let both = key(&world, &[Scope::NodesWrite, Scope::ServicesWrite]).await;
        let node = world.node.to_string();
        let labels = json!({"tier": "payments"});
        let rotate = format!("{NODES}/{node}/rotate-key");
        let rotated = world.post(&rotate, &nodes, json!({})).await;
        assert_eq!(rotated.status, StatusCode::CREATED, "it holds nothing yet");

        let token = json!({"name": "rack", "labels": labels});
        let made = json!({"name": "own", "labels": labels});
        let forbidden = StatusCode::FORBIDDEN;
        assert_eq!(
            patch(&world, &nodes, &node, labels.clone()).await.status,
            forbidden
        );
        assert_eq!(
            world.post(TOKENS, &nodes, token.clone()).await.status,
            forbidden
        );
        let register = format!("{NODES}/register");
        assert_eq!(world.post(&register, &nodes, made).await.status, forbidden);
        let plain = json!({"name": "plain"});
        let plain = world.post(TOKENS, &nodes, plain).await.text("secret");
        let asking = json!({"name": "stranger", "labels": labels});
        let stranger = world
            .post(&register, &Credential::Bearer(plain), asking)
            .await;
        let approve = format!("{NODES}/{}/approve", stranger.text("node_id"));
        assert_eq!(
            world.post(&approve, &nodes, json!({})).await.status,
            forbidden
        );

        assert_eq!(
            patch(&world, &both, &node, labels).await.status,
            StatusCode::OK
        );
        assert_eq!(
            world.post(TOKENS, &both, token).await.status,
            StatusCode::CREATED
        );
        let ordered = assign(&world, &full, &bundle, world.node).await;
        assert_eq!(ordered.status, StatusCode::OK, "{}", ordered.body);
        let refused = world.post(&rotate, &nodes, json!({})).await;
        assert_eq!(
            refused.status, forbidden,
            "the new key would read the certificate's"
        );
        let rotated = world.post(&rotate, &both, json!({})).await;
        assert_eq!(rotated.status, StatusCode::CREATED, "{}", rotated.body);
    }
}

#[tokio::test]
async fn the_right_to_bundles_names_no_certificate() {
    for world in worlds().await {
        let full = world.full_key().await;
        let (certificate, _) = payments(&world, &full).await;
        let bundles = key(&world, &[Scope::BundlesWrite]).await;
        let refused = world.post(BUNDLES, &bundles, naming(&certificate)).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
        let made = world.post(BUNDLES, &bundles, sample(BUNDLES)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    }
}

#[tokio::test]
async fn a_drift_to_a_bundle_with_a_certificate_is_accepted_like_a_delivery() {
    for world in worlds().await {
        let full = world.full_key().await;
        let (_, naming) = payments(&world, &full).await;
        let mut fleet = Fleet::new(&world, 1).await;
        let node = fleet.nodes[0].id;
        let labels = json!({"tier": "payments"});
        let set_labels = async |labels: &Value| {
            let set = patch(&world, &full, &node.to_string(), labels.clone()).await;
            assert_eq!(set.status, StatusCode::OK, "{}", set.body);
        };
        set_labels(&labels).await;
        fleet.run(&naming).await;
        let plain = fleet.bundle(82).await;
        let ordered = assign(&world, &full, &plain, node).await;
        assert_eq!(ordered.status, StatusCode::OK, "{}", ordered.body);
        // The node goes on with the bundle that names the certificate.
        fleet.beat(0).await;
        fleet.tick(DRIFT_GRACE.as_secs() + 1).await;
        let open = world.get(&format!("{DRIFT}?state=open"), &full).await;
        let drift = &open.body["items"][0];
        assert_eq!(drift["active"], json!(naming), "{}", open.body);
        let resolve = format!("{DRIFT}/{}/resolve", drift["id"].as_str().unwrap());
        let body = json!({"remedy": "accept"});
        let accept = async |by: &Credential| world.post(&resolve, by, body.clone()).await;

        let nodes = key(&world, &[Scope::NodesWrite]).await;
        let refused = accept(&nodes).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
        let both = key(&world, &[Scope::NodesWrite, Scope::ServicesWrite]).await;
        set_labels(&json!({"tier": null})).await;
        let refused = accept(&both).await;
        let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(refused.status, unprocessable, "{}", refused.body);
        let order = fleet.order(0).await.unwrap();
        assert_eq!(order.bundle.to_string(), plain);
        set_labels(&labels).await;
        let accepted = accept(&both).await;
        assert_eq!(accepted.status, StatusCode::OK, "{}", accepted.body);
        let order = fleet.order(0).await.unwrap();
        assert_eq!(order.bundle.to_string(), naming);
    }
}
