//! Webhooks with real receivers: settings, queue, signatures, repetitions.

use crate::fleet::Fleet;
use crate::world::{Answer, Credential, World, worlds};
use axum::http::{Method, StatusCode};
use base64::{Engine, engine::general_purpose::STANDARD};
use control_app::Error;
use control_auth::{MasterKey, SealError, Sealer, WebhookKey};
use control_testkit::{Database, Receiver, empty};
use control_wire::WebhookId;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::thread;
use uuid::Uuid;
use zeroize::Zeroizing;

const WEBHOOKS: &str = "/projects/{project}/webhooks";

/// Later than the second attempt of a delivery.
fn a_little_later() -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(11)
}

/// Later than the moment when the result of a first attempt is missed.
fn in_two_minutes() -> Timestamp {
    Timestamp::now() + SignedDuration::from_mins(2)
}

struct Made {
    id: WebhookId,
    path: String,
    secret: String,
}

async fn make(world: &World, key: &Credential, url: &str, events: &[&str]) -> Made {
    let body = json!({"name": Uuid::now_v7().to_string(), "url": url, "events": events});
    let made = world.post(WEBHOOKS, key, body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let id = made.text("id");
    Made {
        path: format!("{WEBHOOKS}/{id}"),
        id: id.parse().unwrap(),
        secret: made.text("secret"),
    }
}

async fn deliveries(world: &World, key: &Credential, webhook: &Made) -> Vec<Value> {
    let path = format!("{}/deliveries", webhook.path);
    let listed = world.get(&path, key).await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.text);
    listed.body["items"].as_array().unwrap().clone()
}

async fn test(world: &World, key: &Credential, webhook: &Made) -> Answer {
    let path = format!("{}/test", webhook.path);
    world.post(&path, key, Value::Null).await
}

/// Queues new events, and sends due deliveries.
async fn round(world: &World, silence: bool) {
    let now = world.app.now();
    let replica = Uuid::from_u128(7);
    world
        .app
        .queue_webhooks(replica, now, silence)
        .await
        .unwrap();
    for due in world.app.due_webhooks(now).await.unwrap() {
        world.app.send_webhook(due.webhook).await.unwrap();
    }
}

fn key_of(webhook: &Made) -> WebhookKey {
    let text = webhook.secret.strip_prefix("whsec_").unwrap();
    WebhookKey::new(Zeroizing::new(STANDARD.decode(text).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_rollout_arrive_signed_and_once() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        let receiver = Receiver::answering("204 No Content");
        let (mut fleet, _, new) = Fleet::running(&world, 2).await;
        let key = world.full_key().await;
        let events = ["rollout.stopped", "rollout.completed"];
        let url = format!("{}/hook", receiver.url());
        let webhook = make(&world, &key, &url, &events).await;
        let id = fleet.start(&new, json!({"skip_gate": true})).await;
        fleet.command(&id, "pause").await;
        round(&world, false).await;
        fleet.command(&id, "resume").await;
        fleet.tick(0).await;
        for index in 0..2 {
            fleet.follow_order(index).await;
        }
        fleet.tick(0).await;
        fleet.tick(40).await;
        assert_eq!(fleet.state(&id).await, "completed");
        round(&world, false).await;
        round(&world, false).await;
        let received = receiver.received();
        let found: Vec<Value> = received
            .iter()
            .map(|request| serde_json::from_str(&request.body).unwrap())
            .collect();
        let types: Vec<&Value> = found.iter().map(|body| &body["type"]).collect();
        assert_eq!(types, ["rollout.stopped", "rollout.completed"], "{found:?}");
        assert_eq!(found[0]["data"]["rollout"]["id"], json!(id), "{found:?}");
        let page = format!(
            "https://controld.test/projects/{}/rollouts/{id}",
            world.project
        );
        assert_eq!(found[0]["data"]["page"], json!(page));
        for request in &received {
            assert_eq!(request.line, "POST /hook HTTP/1.1");
            let (own, at) = (
                request.header("webhook-id"),
                request.header("webhook-timestamp"),
            );
            let signature = key_of(&webhook).sign(own, at.parse().unwrap(), &request.body);
            assert_eq!(request.header("webhook-signature"), signature);
        }
        let listed = deliveries(&world, &key, &webhook).await;
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert_eq!(listed[0]["event"], "rollout.completed", "the newest first");
        assert_eq!(listed[0]["state"], "delivered");
        assert_eq!(listed[0]["last_status"], 204);
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_fails_is_asked_again_later_with_the_same_id() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        let receiver = Receiver::start(|number, _| {
            let status = if number == 0 {
                "503 Service Unavailable"
            } else {
                "200 OK"
            };
            Some(empty(status))
        });
        let key = world.full_key().await;
        let webhook = make(&world, &key, &receiver.url(), &["drift.opened"]).await;
        let queued = test(&world, &key, &webhook).await;
        assert_eq!(queued.status, StatusCode::ACCEPTED, "{}", queued.text);
        round(&world, false).await;
        round(&world, false).await;
        let listed = deliveries(&world, &key, &webhook).await;
        assert_eq!(listed[0]["state"], "pending");
        assert_eq!(
            (&listed[0]["attempts"], &listed[0]["last_status"]),
            (&json!(1), &json!(503))
        );
        assert_eq!(receiver.received().len(), 1, "it is not due yet");
        world.allow_private_addresses(a_little_later);
        round(&world, false).await;
        let listed = deliveries(&world, &key, &webhook).await;
        assert_eq!(listed[0]["state"], "delivered", "{listed:?}");
        assert_eq!(listed[0]["attempts"], 2);
        let received = receiver.received();
        assert_eq!(received.len(), 2);
        assert_eq!(
            received[0].header("webhook-id"),
            received[1].header("webhook-id")
        );
        assert_eq!(received[0].header("webhook-id"), queued.text("id"));
        assert_eq!(received[0].body, received[1].body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_without_the_master_key_uses_up_no_attempt() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        let receiver = Receiver::answering("200 OK");
        let key = world.full_key().await;
        let webhook = make(&world, &key, &receiver.url(), &["drift.opened"]).await;
        test(&world, &key, &webhook).await;
        let other = MasterKey::new(&[2; 32]).unwrap();
        let other = Sealer::new(vec![other]).unwrap();
        world.app.replace_master_keys(other);
        let failed = world.app.send_webhook(webhook.id).await.unwrap_err();
        assert!(
            matches!(failed, Error::Seal(SealError::UnknownKey)),
            "{failed}"
        );
        let listed = deliveries(&world, &key, &webhook).await;
        let (state, attempts) = (&listed[0]["state"], &listed[0]["attempts"]);
        assert_eq!((state, attempts), (&json!("pending"), &json!(0)));
        world.app.send_webhook(webhook.id).await.unwrap();
        assert!(receiver.received().is_empty(), "it is due after a minute");
        world.allow_private_addresses(in_two_minutes);
        round(&world, false).await;
        let listed = deliveries(&world, &key, &webhook).await;
        let (state, attempts) = (&listed[0]["state"], &listed[0]["attempts"]);
        assert_eq!((state, attempts), (&json!("delivered"), &json!(1)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_with_an_unreadable_column_is_a_failed_attempt() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        let key = world.full_key().await;
        let url = "http://127.0.0.1:1/";
        let webhook = make(&world, &key, url, &["drift.opened"]).await;
        test(&world, &key, &webhook).await;
        let mut tx = world.store.begin().await.unwrap();
        let found = tx.webhook(webhook.id).await.unwrap().unwrap();
        let (mut value, version) = (found.value, found.version);
        value.url = "nowhere".to_owned();
        tx.update_webhook(&value, None, version).await.unwrap();
        tx.commit().await.unwrap();
        world.app.send_webhook(webhook.id).await.unwrap();
        let listed = deliveries(&world, &key, &webhook).await;
        assert_eq!(listed[0]["attempts"], 1);
        assert_eq!(
            listed[0]["last_error"],
            "not sent: column url cannot be read"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_and_a_silent_receiver_is_left_alone() {
    let mut world = World::new(Database::sqlite()).await;
    world.allow_private_addresses(Timestamp::now);
    let secret_place = Receiver::answering("200 OK");
    let target = secret_place.url();
    let redirecting = Receiver::start(move |_, _| {
        Some(format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n"
        ))
    });
    let silent = Receiver::start(|_, _| None);
    let key = world.full_key().await;
    let mut failures = Vec::new();
    for url in [redirecting.url(), silent.url()] {
        let webhook = make(&world, &key, &url, &["drift.opened"]).await;
        test(&world, &key, &webhook).await;
        world.app.send_webhook(webhook.id).await.unwrap();
        let listed = deliveries(&world, &key, &webhook).await;
        assert_eq!(listed[0]["state"], "pending", "{listed:?}");
        failures.push(listed[0]["last_error"].as_str().unwrap().to_owned());
    }
    assert!(failures[0].contains("307"), "{failures:?}");
    assert!(
        failures[1].contains("no answer within 10 seconds"),
        "{failures:?}"
    );
    assert!(secret_place.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_without_a_status_is_named() {
    let mut world = World::new(Database::sqlite()).await;
    world.allow_private_addresses(Timestamp::now);
    let key = world.full_key().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            drop(stream.write_all(b"220 mail.example.com ready\r\n\r\n"));
            open.push(stream);
        }
    });
    for (url, expected) in [
        ("http://127.0.0.1:1/".to_owned(), "no connection"),
        (format!("https://127.0.0.1:{port}/"), "no TLS"),
        (format!("http://127.0.0.1:{port}/"), "incomplete answer"),
    ] {
        let webhook = make(&world, &key, &url, &["drift.opened"]).await;
        test(&world, &key, &webhook).await;
        world.app.send_webhook(webhook.id).await.unwrap();
        let listed = deliveries(&world, &key, &webhook).await;
        let why = listed[0]["last_error"].as_str().unwrap();
        assert!(why.starts_with(expected), "{url}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_private_networks_and_wrong_settings_are_refused() {
    for world in worlds().await {
        let key = world.full_key().await;
        for (url, events, field) in [
            ("https://127.0.0.1/", json!(["drift.opened"]), "url"),
            (
                "https://169.254.169.254/latest",
                json!(["drift.opened"]),
                "url",
            ),
            ("https://[::1]/", json!(["drift.opened"]), "url"),
            ("http://hooks.example.com/", json!(["drift.opened"]), "url"),
            (
                "https://user:secret@hooks.example.com/",
                json!(["drift.opened"]),
                "url",
            ),
            ("ftp://hooks.example.com/", json!(["drift.opened"]), "url"),
            ("https://hooks.example.com/", json!([]), "events"),
        ] {
            let body = json!({"name": "a", "url": url, "events": events});
            let refused = world.post(WEBHOOKS, &key, body).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{url}");
            assert_eq!(refused.body["error"]["details"][0]["field"], field, "{url}");
        }
        // A host name with a private address is refused after its resolution.
        let webhook = make(&world, &key, "https://localhost/", &["drift.opened"]).await;
        test(&world, &key, &webhook).await;
        world.app.send_webhook(webhook.id).await.unwrap();
        let listed = deliveries(&world, &key, &webhook).await;
        let why = listed[0]["last_error"].as_str().unwrap();
        assert!(why.contains("the address is private"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_is_shown_once_and_replaced_and_a_webhook_that_is_off_sends_nothing() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        let receiver = Receiver::answering("200 OK");
        let key = world.full_key().await;
        let webhook = make(&world, &key, &receiver.url(), &["drift.opened"]).await;
        let shown = world.get(&webhook.path, &key).await;
        assert!(shown.body.get("secret").is_none(), "{}", shown.text);
        assert!(!shown.text.contains(&webhook.secret));
        let rotated = world
            .post(
                &format!("{}/rotate-secret", webhook.path),
                &key,
                Value::Null,
            )
            .await;
        assert_eq!(rotated.status, StatusCode::CREATED, "{}", rotated.text);
        let again = Made {
            secret: rotated.text("secret"),
            id: webhook.id,
            path: webhook.path.clone(),
        };
        assert_ne!(again.secret, webhook.secret);
        test(&world, &key, &webhook).await;
        let off = json!({
            "name": "off", "url": receiver.url(), "events": ["node.silent"], "enabled": false,
        });
        let changed = world
            .send(&Method::PUT, &webhook.path, &key, &off, &[])
            .await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
        round(&world, false).await;
        assert!(receiver.received().is_empty(), "it is switched off");
        let refused = test(&world, &key, &webhook).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert_eq!(refused.code(), "WRONG_STATE", "{}", refused.text);
        let on = json!({"name": "on", "url": receiver.url(), "events": ["node.silent"]});
        world
            .send(&Method::PUT, &webhook.path, &key, &on, &[])
            .await;
        round(&world, false).await;
        let received = receiver.received();
        let request = &received[0];
        let at = request.header("webhook-timestamp").parse().unwrap();
        let signature = key_of(&again).sign(request.header("webhook-id"), at, &request.body);
        assert_eq!(request.header("webhook-signature"), signature);
        let gone = world
            .send(&Method::DELETE, &webhook.path, &key, &Value::Null, &[])
            .await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
        assert_eq!(
            world.get(&webhook.path, &key).await.status,
            StatusCode::NOT_FOUND
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_become_silent_are_reported_once() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        let receiver = Receiver::answering("200 OK");
        let key = world.full_key().await;
        let webhook = make(&world, &key, &receiver.url(), &["node.silent"]).await;
        let (fleet, ..) = Fleet::running(&world, 2).await;
        let silent = json!(fleet.nodes[0].id);
        drop(fleet);
        round(&world, true).await;
        assert!(receiver.received().is_empty());
        world.allow_private_addresses(|| Timestamp::now() + SignedDuration::from_secs(100));
        world.app.note_outage();
        round(&world, true).await;
        assert!(
            receiver.received().is_empty(),
            "nodes could not report in the outage"
        );
        world.allow_private_addresses(|| Timestamp::now() + SignedDuration::from_secs(100));
        round(&world, true).await;
        round(&world, true).await;
        let received = receiver.received();
        assert_eq!(received.len(), 1, "{received:?}");
        let body: Value = serde_json::from_str(&received[0].body).unwrap();
        assert_eq!(body["type"], "node.silent");
        assert_eq!(body["data"]["node_count"], 2, "{body}");
        let named = body["data"]["nodes"].as_array().unwrap();
        assert!(named.iter().any(|node| node["id"] == silent));
        assert_eq!(deliveries(&world, &key, &webhook).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_compared_by_every_write_of_a_webhook() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        let key = world.full_key().await;
        let webhook = make(
            &world,
            &key,
            "https://hooks.example.com/",
            &["drift.opened"],
        )
        .await;
        let settings = json!({
            "name": "a", "url": "https://hooks.example.com/", "events": ["node.silent"],
        });
        let (test, rotate) = (
            format!("{}/test", webhook.path),
            format!("{}/rotate-secret", webhook.path),
        );
        for (method, path, body) in [
            (Method::POST, &test, &Value::Null),
            (Method::POST, &rotate, &Value::Null),
            (Method::PUT, &webhook.path, &settings),
            (Method::DELETE, &webhook.path, &Value::Null),
        ] {
            let tag = world
                .get(&webhook.path, &key)
                .await
                .header("etag")
                .to_owned();
            let stale = [("if-match", "\"987654\"")];
            let refused = world.send(&method, path, &key, body, &stale).await;
            assert_eq!(refused.code(), "PRECONDITION_FAILED", "{method} {path}");
            let own = [("if-match", tag.as_str())];
            let done = world.send(&method, path, &key, body, &own).await;
            assert!(done.status.is_success(), "{method} {path}: {}", done.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn due_webhooks_of_each_organization_are_found() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        let key = world.full_key().await;
        let (first, second) = (
            make(&world, &key, "https://a.example.com/", &["drift.opened"]).await,
            make(&world, &key, "https://b.example.com/", &["drift.opened"]).await,
        );
        for webhook in [&first, &first, &second] {
            test(&world, &key, webhook).await;
        }
        let now = world.app.now();
        let due = world.app.due_webhooks(now).await.unwrap();
        let found: Vec<_> = due.iter().map(|due| (due.org, due.webhook)).collect();
        assert_eq!(found, [(world.org, first.id), (world.org, second.id)]);
    }
}
