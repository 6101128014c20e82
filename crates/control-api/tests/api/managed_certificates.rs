//! Managed certificates by the interface: what is refused, and what a node sees.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_wire::{HttpChallenge, ManagedCertificateId};
use serde_json::{Value, json};

const ALL: &str = "/projects/{project}/managed-certificates";

async fn made(world: &World, by: &Credential) -> Value {
    let made = world.post(ALL, by, sample(ALL)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    made.body
}

#[tokio::test]
async fn authorities_that_the_installation_does_not_list_are_refused() {
    for world in worlds().await {
        let key = world.full_key().await;
        for (field, value) in [
            ("directory", json!("https://127.0.0.1/directory")),
            ("directory", json!("https://acme.example/directory")),
            ("hosts", json!(["*.example.com"])),
            ("hosts", json!(["10.0.0.1"])),
            ("hosts", json!([])),
            ("terms_agreed", json!(false)),
            ("email", json!("nobody")),
        ] {
            let mut body = sample(ALL);
            body[field] = value;
            let refused = world.post(ALL, &key, body).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
            let details = &refused.body["error"]["details"];
            assert_eq!(details[0]["field"], field, "{}", refused.text);
        }
    }
}

#[tokio::test]
async fn a_managed_certificate_is_pending_until_it_is_issued() {
    for world in worlds().await {
        let key = world.full_key().await;
        let view = made(&world, &key).await;
        assert_eq!(view["state"], "pending");
        assert_eq!(view["key_type"], "ecdsa-p256");
        assert!(view["certificate"].is_null() && view["error"].is_null());
        let own = format!("{ALL}/{}", view["id"].as_str().unwrap());
        let mut body = sample(ALL);
        body["name"] = view["name"].clone();
        let taken = world.post(ALL, &key, body).await;
        assert_eq!(taken.status, StatusCode::CONFLICT, "{}", taken.text);
        let due = world.post(&format!("{own}/renew"), &key, Value::Null).await;
        assert_eq!(due.status, StatusCode::OK, "{}", due.text);
        let stale = [("if-match", "\"9\"")];
        let late = world
            .send(&Method::PUT, &own, &key, &sample(ALL), &stale)
            .await;
        assert_eq!(
            late.status,
            StatusCode::PRECONDITION_FAILED,
            "{}",
            late.text
        );
        let gone = world
            .send(&Method::DELETE, &own, &key, &Value::Null, &[])
            .await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    }
}

#[tokio::test]
async fn the_name_of_a_certificate_is_not_managed_a_second_time() {
    for world in worlds().await {
        let key = world.full_key().await;
        let certificates = "/projects/{project}/certificates";
        let stored = world.post(certificates, &key, sample(certificates)).await;
        let mut body = sample(ALL);
        body["name"] = stored.body["name"].clone();
        let taken = world.post(ALL, &key, body).await;
        assert_eq!(taken.status, StatusCode::CONFLICT, "{}", taken.text);
    }
}

#[tokio::test]
async fn a_node_sees_and_confirms_its_own_challenges_alone() {
    for world in worlds().await {
        let key = world.full_key().await;
        let view = made(&world, &key).await;
        let id: ManagedCertificateId = view["id"].as_str().unwrap().parse().unwrap();
        let (other, other_key) = world.new_node(world.tenant()).await;
        let bundles = "/projects/{project}/bundles";
        let bundle = world.post(bundles, &key, sample(bundles)).await.text("id");
        let nodes = json!({"nodes": [world.node, other]});
        let assign = format!("{bundles}/{bundle}/assign");
        assert_eq!(
            world.post(&assign, &key, nodes).await.status,
            StatusCode::OK
        );
        let desired = async |node: &str, by: &Credential| {
            world.get(&format!("/nodes/{node}/desired"), by).await
        };
        let before = desired("{node}", &world.node_key).await;
        assert!(before.body.get("challenges").is_none(), "{}", before.text);
        let mut tx = world.store.begin().await.unwrap();
        let managed = tx.managed_certificate(id).await.unwrap().unwrap().value;
        let challenge = HttpChallenge {
            host: "a.example.com".to_owned(),
            token: "token".to_owned(),
            key_authorization: "token.key".to_owned(),
        };
        tx.insert_challenge(&managed, world.node, &challenge, 1)
            .await
            .unwrap();
        tx.commit().await.unwrap();

        let during = desired("{node}", &world.node_key).await;
        assert_eq!(
            during.body["challenges"][0]["token"], "token",
            "{}",
            during.text
        );
        assert_ne!(during.header("etag"), before.header("etag"));
        let others = desired(&other.to_string(), &other_key).await;
        assert!(others.body.get("challenges").is_none(), "{}", others.text);

        let confirmed = async || {
            let mut tx = world.store.read().await.unwrap();
            tx.confirmed_hosts(id).await.unwrap()
        };
        let body = json!({"tokens": ["token"]});
        let path = format!("/nodes/{other}/challenges");
        let ignored = world.post(&path, &other_key, body.clone()).await;
        assert_eq!(ignored.status, StatusCode::NO_CONTENT, "{}", ignored.text);
        assert!(confirmed().await.is_empty(), "another node's word");
        let path = "/nodes/{node}/challenges";
        let done = world.post(path, &world.node_key, body).await;
        assert_eq!(done.status, StatusCode::NO_CONTENT, "{}", done.text);
        assert_eq!(confirmed().await, ["a.example.com"]);
    }
}

#[tokio::test]
async fn hosts_have_one_lease_each() {
    for world in worlds().await {
        let now = world.app.now();
        let (one, other) = (uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
        let lifetime = jiff::SignedDuration::from_secs(15);
        let take = async |holder| {
            let mut tx = world.store.begin().await.unwrap();
            let held = tx
                .acquire_lease("certificate of a.example.com", holder, now, lifetime)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            held
        };
        assert!(take(one).await);
        assert!(!take(other).await);
        let mut tx = world.store.begin().await.unwrap();
        tx.release_lease("certificate of a.example.com", one)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert!(take(other).await);
    }
}

#[tokio::test]
async fn a_project_is_deleted_with_its_managed_certificates() {
    for world in worlds().await {
        let key = world.full_key().await;
        let body = json!({"name": "short-lived"});
        let project = world.post("/orgs/{org}/projects", &key, body).await;
        let project = format!("/projects/{}", project.text("id"));
        let all = format!("{project}/managed-certificates");
        let managed = world.post(&all, &key, sample(ALL)).await;
        assert_eq!(managed.status, StatusCode::CREATED, "{}", managed.text);
        let gone = world.send(&Method::DELETE, &project, &key, &Value::Null, &[]);
        let gone = gone.await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
        let after = world.get(&all, &key).await;
        assert_eq!(after.status, StatusCode::NOT_FOUND, "{}", after.text);
    }
}
