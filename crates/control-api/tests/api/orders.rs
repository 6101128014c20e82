//! Orders of nodes: signatures and long polls.

use crate::world::{Answer, Credential, World, app, sample, worlds};
use axum::http::{Method, StatusCode};
use control_app::{App, OrderTarget};
use control_auth::PublicKey;
use control_domain::Role;
use control_store::AuditEntry;
use control_wire::{BundleId, Order};
use serde_json::Value;
use sqlx::{AnyConnection, Connection};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::timeout;
use uuid::Uuid;

const DESIRED: &str = "/nodes/{node}/desired";
const DEADLINE: Duration = Duration::from_secs(20);

async fn desired(world: &World, wait: &str, known: &str) -> Answer {
    let fields = [("if-none-match", known)];
    let (path, by) = (format!("{DESIRED}{wait}"), &world.node_key);
    world
        .send(&Method::GET, &path, by, &Value::Null, &fields)
        .await
}

/// Inserts a bundle's row only: these tests are about orders.
async fn bundle(world: &World) -> OrderTarget {
    let id = BundleId(Uuid::now_v7());
    let mut connection = AnyConnection::connect(&world.database.url).await.unwrap();
    let insert = "INSERT INTO bundles (id, org_id, project_id, name, state, diagnostics,
                  created_at, version) VALUES ($1, $2, $3, $1, 'signed', '[]', 0, 1)";
    let insert = sqlx::query(insert).bind(id.to_string());
    let insert = insert.bind(world.org.to_string());
    let insert = insert.bind(world.project.to_string());
    insert.execute(&mut connection).await.unwrap();
    OrderTarget {
        org: world.org,
        bundle: id,
        digest: "digest".to_owned(),
        rollout: None,
    }
}

/// Orders the node to run a bundle, at this replica.
async fn order(world: &World, app: &App, target: &OrderTarget) -> Order {
    let now = app.now();
    let mut tx = world.store.begin().await.unwrap();
    let made = app.write_orders(&mut tx, target, &[world.node], now).await;
    let entry = AuditEntry {
        at: now,
        actor_kind: "system",
        actor: Uuid::nil(),
        actor_name: "controld",
        client_ip: None,
        tenant: Some(world.tenant()),
        action: "bundle.assigned",
        subject: target.bundle.0,
        correlation_id: "",
    };
    let key = app.audit_key(&mut tx).await.unwrap();
    tx.append_audit(&entry, &key).await.unwrap();
    tx.commit().await.unwrap();
    app.announce_orders(&[world.node]);
    made.unwrap().remove(0)
}

#[tokio::test]
async fn an_order_is_signed_by_a_key_that_the_node_pins() {
    for world in worlds().await {
        let none = desired(&world, "", "").await;
        assert_eq!(none.status, StatusCode::OK, "{}", none.body);
        assert_eq!(
            (none.header("etag"), &none.body["order"]),
            ("\"0\"", &Value::Null)
        );
        let target = bundle(&world).await;
        for counter in 1..3 {
            let made = order(&world, &world.app, &target).await;
            assert_eq!(made.counter, counter);
            let found = desired(&world, "", none.header("etag")).await;
            let found: Order = serde_json::from_value(found.body["order"].clone()).unwrap();
            assert_eq!(found, made);
        }
        let jwks = world.get("/orgs/{org}/jwks.json", &Credential::None).await;
        let key = jwks.body["keys"][0]["x"].as_str().unwrap();
        let found = desired(&world, "", "").await;
        let found: Order = serde_json::from_value(found.body["order"].clone()).unwrap();
        let key = PublicKey::from_text(key.to_owned());
        let text = found.signed_text();
        assert_eq!(key.verify(text.as_bytes(), &found.signature), Ok(()));
        let text = text.replace("\n2\n", "\n3\n");
        assert!(key.verify(text.as_bytes(), &found.signature).is_err());
    }
}

#[tokio::test]
async fn a_known_order_is_waited_on_for_as_long_as_asked() {
    for world in worlds().await {
        let known = desired(&world, "?wait=30", "").await;
        assert_eq!(known.status, StatusCode::OK, "nothing is known: no wait");
        let started = world.app.precise_now();
        let same = desired(&world, "?wait=1", known.header("etag")).await;
        assert_eq!(same.status, StatusCode::NOT_MODIFIED);
        let waited = world.app.precise_now().duration_since(started);
        assert!(waited.as_millis() >= 1_000, "{waited}");
        let at_once = desired(&world, "", known.header("etag")).await;
        assert_eq!(at_once.status, StatusCode::NOT_MODIFIED);
        for wait in ["?wait=31", "?wait=-1", "?wait=x"] {
            let wrong = desired(&world, wait, "").await;
            assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{wait}");
        }
    }
}

/// Starts `change` while a long poll waits; returns its response.
async fn poll_beside(world: &World, change: impl AsyncFnOnce()) -> Answer {
    let known = desired(world, "", "").await.header("etag").to_owned();
    let poll = desired(world, "?wait=30", &known);
    let change = async {
        while world.app.long_polls() == 0 {
            yield_now().await;
        }
        change().await;
    };
    let both = timeout(DEADLINE, async { tokio::join!(poll, change) });
    let (answer, ()) = both.await.unwrap();
    assert_eq!(world.app.long_polls(), 0);
    answer
}

#[tokio::test]
async fn a_long_poll_ends_with_a_new_order() {
    for world in worlds().await {
        let target = bundle(&world).await;
        let answer = poll_beside(&world, async || {
            order(&world, &world.app, &target).await;
        });
        assert_eq!(answer.await.body["order"]["counter"], 1);
    }
}

#[tokio::test]
async fn a_long_poll_ends_with_an_order_of_another_replica() {
    for world in worlds().await {
        let target = bundle(&world).await;
        let (other, _) = app(&world.database.url, world.objects.path()).await;
        world.app.relay().await.unwrap();
        let answer = poll_beside(&world, async || {
            order(&world, &other, &target).await;
            // The program does so every second.
            world.app.relay().await.unwrap();
        });
        assert_eq!(answer.await.body["order"]["counter"], 1);
    }
}

#[tokio::test]
async fn a_long_poll_ends_when_the_program_stops() {
    for world in worlds().await {
        let app = Arc::clone(&world.app);
        let answer = poll_beside(&world, async || app.end_waits());
        assert_eq!(answer.await.status, StatusCode::NOT_MODIFIED);
        let known = desired(&world, "", "").await.header("etag").to_owned();
        let later = timeout(DEADLINE, desired(&world, "?wait=30", &known)).await;
        assert_eq!(later.unwrap().status, StatusCode::NOT_MODIFIED, "no wait");
    }
}

#[tokio::test]
async fn an_order_is_signed_again_when_its_key_is_deactivated() {
    for world in worlds().await {
        let (target, admin) = (
            bundle(&world).await,
            world.user(world.org, Role::Admin).await,
        );
        let made = order(&world, &world.app, &target).await;
        let before = desired(&world, "", "").await;
        let keys = "/orgs/{org}/signing-keys";
        let rotate = format!("{keys}/rotate");
        let rotated = world.post(&rotate, &admin, Value::Null).await;
        let retired = desired(&world, "", before.header("etag")).await;
        assert_eq!(
            retired.status,
            StatusCode::NOT_MODIFIED,
            "it still verifies"
        );
        let deactivate = format!("{keys}/{}/deactivate", made.kid);
        world.post(&deactivate, &admin, Value::Null).await;
        let signed = desired(&world, "", before.header("etag")).await;
        assert_eq!(signed.status, StatusCode::OK);
        assert_eq!(signed.body["order"]["counter"], 1);
        assert_eq!(signed.body["order"]["kid"], rotated.body["id"]);
        let order: Order = serde_json::from_value(signed.body["order"].clone()).unwrap();
        let key = PublicKey::from_text(rotated.text("public_key"));
        let text = order.signed_text();
        assert_eq!(key.verify(text.as_bytes(), &order.signature), Ok(()));
        let again = desired(&world, "", signed.header("etag")).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "it was stored");
    }
}

#[tokio::test]
async fn a_renewed_certificate_reaches_the_nodes_of_its_project_without_an_order() {
    const CERTIFICATES: &str = "/projects/{project}/certificates";
    for world in worlds().await {
        let full = world.full_key().await;
        let made = world.post(CERTIFICATES, &full, sample(CERTIFICATES)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        order(&world, &world.app, &bundle(&world).await).await;
        let before = desired(&world, "", "").await;
        let same = desired(&world, "", before.header("etag")).await;
        assert_eq!(same.status, StatusCode::NOT_MODIFIED);
        let path = format!("{CERTIFICATES}/{}", made.text("id"));
        let put = Method::PUT;
        let renewed = world
            .send(&put, &path, &full, &sample(CERTIFICATES), &[])
            .await;
        assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.body);
        let after = desired(&world, "", before.header("etag")).await;
        assert_eq!(after.status, StatusCode::OK);
        assert_eq!(after.body["order"], before.body["order"]);
        let count = |answer: &Answer| answer.body["certificates"].as_u64().unwrap();
        assert_eq!(count(&after), count(&before) + 1);
    }
}
