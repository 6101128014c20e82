//! Retention: finished items are deleted, on request or after their time, including their archives.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Drift, DriftResolution, DriftState, Tenant};
use control_wire::{DriftId, ProjectId};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use uuid::Uuid;

const BUNDLES: &str = "/projects/{project}/bundles";
const ROLLOUTS: &str = "/projects/{project}/rollouts";
const TOKENS: &str = "/projects/{project}/enrolment-tokens";

/// Creates a bundle with unique contents.
async fn bundle(world: &World, by: &Credential, name: &str) -> String {
    let text = format!("// {name}\nlisteners {{ listener \"a\" {{ address \"127.0.0.1:80\" }} }}");
    let body = json!({"name": name, "files": {"proxy.kdl": text}});
    let made = world.post(BUNDLES, by, body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    made.text("id")
}

async fn delete(world: &World, by: &Credential, path: &str) -> StatusCode {
    let gone = world.send(&Method::DELETE, path, by, &Value::Null, &[]);
    gone.await.status
}

async fn is_there(world: &World, by: &Credential, path: &str) -> bool {
    world.get(path, by).await.status == StatusCode::OK
}

fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let counts = entries.map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path) } else { 1 }
    });
    counts.sum()
}

async fn sweep(world: &World) {
    let replica = Uuid::now_v7();
    let now = world.app.now();
    world.app.sweep_archives(replica, now).await.unwrap();
    // Late enough for the next run to acquire the lease.
    let later = now + SignedDuration::from_mins(5);
    world.app.sweep_archives(replica, later).await.unwrap();
}

#[tokio::test]
async fn a_bundle_is_deleted_with_its_archive_unless_it_is_needed() {
    for world in worlds().await {
        let key = world.made_key(&[]).await;
        let (used, unused) = (
            bundle(&world, &key, "used").await,
            bundle(&world, &key, "unused").await,
        );
        let same = bundle(&world, &key, "unused").await;
        let assign = format!("{BUNDLES}/{used}/assign");
        let assigned = world.post(&assign, &key, json!({"nodes": [world.node]}));
        assert_eq!(assigned.await.status, StatusCode::OK);
        assert_eq!(files(world.objects.path()), 2);
        let place = |bundle: &str| format!("{BUNDLES}/{bundle}");
        assert_eq!(
            delete(&world, &key, &place(&used)).await,
            StatusCode::CONFLICT
        );
        assert_eq!(
            delete(&world, &key, &place(&unused)).await,
            StatusCode::NO_CONTENT
        );
        assert!(!is_there(&world, &key, &place(&unused)).await);
        sweep(&world).await;
        assert_eq!(
            files(world.objects.path()),
            2,
            "another bundle has the bytes"
        );
        assert!(is_there(&world, &key, &format!("{BUNDLES}/{same}/sbom")).await);
        assert_eq!(
            delete(&world, &key, &place(&same)).await,
            StatusCode::NO_CONTENT
        );
        sweep(&world).await;
        assert_eq!(files(world.objects.path()), 1);
        assert!(is_there(&world, &key, &format!("{BUNDLES}/{used}/sbom")).await);
    }
}

#[tokio::test]
async fn the_archives_of_a_project_go_with_it() {
    for world in worlds().await {
        let key = world.full_key().await;
        let made = world
            .post("/orgs/{org}/projects", &key, sample("/orgs"))
            .await;
        let project = made.text("id");
        let bundles = BUNDLES.replace("{project}", &project);
        let made = world.post(&bundles, &key, sample(BUNDLES)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(files(world.objects.path()), 1);
        let gone = delete(&world, &key, &format!("/projects/{project}")).await;
        assert_eq!(gone, StatusCode::NO_CONTENT);
        sweep(&world).await;
        assert_eq!(files(world.objects.path()), 0);
    }
}

#[tokio::test]
async fn a_rollout_that_moves_is_not_deleted() {
    for world in worlds().await {
        let key = world.made_key(&[]).await;
        let bundle = bundle(&world, &key, "a").await;
        let new = json!({"bundle": bundle, "nodes": [world.node]});
        let id = world.post(ROLLOUTS, &key, new).await.text("id");
        let place = format!("{ROLLOUTS}/{id}");
        let started = world
            .post(&format!("{place}/start"), &key, Value::Null)
            .await;
        assert_eq!(started.status, StatusCode::OK, "{}", started.body);
        assert_eq!(delete(&world, &key, &place).await, StatusCode::CONFLICT);
        let cancelled = world
            .post(&format!("{place}/cancel"), &key, Value::Null)
            .await;
        assert_eq!(cancelled.status, StatusCode::OK);
        assert_eq!(delete(&world, &key, &place).await, StatusCode::NO_CONTENT);
        assert!(!is_there(&world, &key, &place).await);
    }
}

/// Creates a drift that was resolved just now.
async fn resolved_drift(world: &World) -> String {
    let drift = Drift {
        id: DriftId(Uuid::now_v7()),
        tenant: world.tenant(),
        node: world.node,
        state: DriftState::Resolved,
        desired: Uuid::now_v7().into(),
        active: None,
        opened_at: world.app.now(),
        resolved_at: Some(world.app.now()),
        resolution: Some(DriftResolution::Manual),
    };
    let mut tx = world.store.begin().await.unwrap();
    tx.insert_drift(&drift).await.unwrap();
    tx.update_drift(&drift, 1).await.unwrap();
    tx.commit().await.unwrap();
    format!("/projects/{{project}}/drift/{}", drift.id)
}

#[tokio::test]
async fn expired_records_are_deleted_after_their_time() {
    for world in worlds().await {
        let key = world.made_key(&[]).await;
        let (used, unused) = (
            bundle(&world, &key, "used").await,
            bundle(&world, &key, "unused").await,
        );
        let of_rollout = bundle(&world, &key, "of a rollout").await;
        let assign = format!("{BUNDLES}/{used}/assign");
        world
            .post(&assign, &key, json!({"nodes": [world.node]}))
            .await;
        let (other, _) = world.new_node(world.tenant()).await;
        let new = json!({"bundle": of_rollout, "nodes": [other]});
        let open = world.post(ROLLOUTS, &key, new.clone()).await.text("id");
        let ended = world.post(ROLLOUTS, &key, new).await.text("id");
        let cancel = format!("{ROLLOUTS}/{ended}/cancel");
        let cancelled = world.post(&cancel, &key, Value::Null).await;
        assert_eq!(cancelled.status, StatusCode::OK);
        let token = world.post(TOKENS, &key, sample(TOKENS)).await;
        let drift = resolved_drift(&world).await;
        let mut revoked = world.key(Tenant::org(world.org), &[]);
        revoked.revoked_at = Some(world.app.now());
        world.store_key(&revoked).await;
        let revoked = format!("/api-keys/{}", revoked.id);

        let places = [
            (format!("{BUNDLES}/{unused}"), 180),
            (format!("{ROLLOUTS}/{ended}"), 180),
            (drift, 90),
            (revoked, 90),
        ];
        let clean = async |days: i64| {
            let now = world.app.now() + SignedDuration::from_hours(days * 24);
            world.app.clean_up(Uuid::now_v7(), now).await.unwrap();
        };
        for days in [89, 91, 179, 181] {
            clean(days).await;
            for (place, kept) in &places {
                assert_eq!(
                    is_there(&world, &key, place).await,
                    days < *kept,
                    "{place} {days}"
                );
            }
        }
        for place in [
            format!("{BUNDLES}/{used}"),
            format!("{BUNDLES}/{of_rollout}"),
            format!("{ROLLOUTS}/{open}"),
        ] {
            assert!(is_there(&world, &key, &place).await, "{place}");
        }
        let tokens = world.get(TOKENS, &key).await.body;
        assert_eq!(tokens["items"], json!([]), "{}", token.body);
        let project: ProjectId = world.project;
        assert!(is_there(&world, &key, &format!("/projects/{project}")).await);
    }
}

#[tokio::test]
async fn a_large_answer_is_not_kept_for_its_repetition() {
    for world in worlds().await {
        let key = world.full_key().await;
        let text = "limits { wrong 1; }\n".repeat(100);
        let body = json!({"name": "wrong", "files": {"proxy.kdl": text}});
        let repeat = [("idempotency-key", "one")];
        let send = || world.send(&Method::POST, BUNDLES, &key, &body, &repeat);
        let first = send().await;
        assert_eq!(first.status, StatusCode::CREATED);
        assert!(8 * 1024 < first.bytes.len(), "{}", first.bytes.len());
        let second = send().await;
        assert_eq!(second.status, StatusCode::CONFLICT);
        let message = second.body["error"]["message"].as_str().unwrap();
        assert!(message.ends_with(&first.text("id")), "{message}");
    }
}

#[tokio::test]
async fn a_repetition_of_a_large_change_names_its_resource_and_no_secret() {
    const UPSTREAMS: &str = "/projects/{project}/upstreams";
    for world in worlds().await {
        let key = world.full_key().await;
        let made = world.post(UPSTREAMS, &key, sample(UPSTREAMS)).await;
        let own = format!("{UPSTREAMS}/{}", made.text("id"));
        let host = "a".repeat(60);
        let targets = (1..=200).map(|port| json!({"address": format!("{host}.test:{port}")}));
        let targets: Vec<Value> = targets.collect();
        let body = json!({"name": "large", "targets": targets});
        let repeat = [("idempotency-key", "one")];
        let send = || world.send(&Method::PUT, &own, &key, &body, &repeat);
        let first = send().await;
        assert_eq!(first.status, StatusCode::OK, "{}", first.text);
        assert!(8 * 1024 < first.bytes.len(), "{}", first.bytes.len());
        let second = send().await;
        assert_eq!(second.code(), "IDEMPOTENCY_CONFLICT", "{}", second.text);
        let message = second.body["error"]["message"].as_str().unwrap();
        let path = format!("see /api/v1/projects/{}/upstreams/", world.project);
        assert!(message.contains(&path), "{message}");
        assert!(message.ends_with(&made.text("id")), "{message}");
    }
}

#[tokio::test]
async fn audit_entries_of_nine_days_stay_whatever_the_retention() {
    for mut world in worlds().await {
        world.replace_app(Timestamp::now, |app| app.retention.audit = 1);
        let key = world.made_key(&[]).await;
        bundle(&world, &key, "first").await;
        let archive = async |days: i64| {
            let now = world.app.now() + SignedDuration::from_hours(days * 24);
            world.app.archive_audit(Uuid::now_v7(), now).await.unwrap()
        };
        // An archive is written when its oldest entry is overdue by a day.
        assert_eq!(archive(9).await, 0);
        assert!(0 < archive(11).await);
    }
}

#[tokio::test]
async fn audit_entries_are_archived_before_they_are_deleted() {
    for world in worlds().await {
        let key = world.made_key(&[]).await;
        bundle(&world, &key, "first").await;
        let newest = async || {
            let log = world.get(&format!("/orgs/{}/audit", world.org), &key).await;
            log.body["items"][0]["seq"].as_i64()
        };
        let last = newest().await.unwrap();
        let replica = Uuid::now_v7();
        let archive = async |days: i64| {
            let now = world.app.now() + SignedDuration::from_hours(days * 24);
            world.app.archive_audit(replica, now).await
        };
        assert_eq!(archive(400).await.unwrap(), 0, "kept for 400 days");
        // The object store has no space, so everything must be kept.
        let folder = world.objects.path().join("audit");
        fs::write(&folder, "").unwrap();
        archive(402).await.unwrap_err();
        assert_eq!(newest().await, Some(last));
        fs::remove_file(&folder).unwrap();
        let stored = files(world.objects.path());
        assert!(0 < archive(402).await.unwrap());
        assert_eq!(files(world.objects.path()), stored + 1);
        assert_eq!(newest().await, None);
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
        assert_eq!(world.app.verify_audit_archives().await.unwrap(), None);
        bundle(&world, &key, "second").await;
        assert_eq!(newest().await, Some(last + 1), "numbers go on");
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
        let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
        fs::write(file.path(), "changed").unwrap();
        let changed = world.app.verify_audit_archives().await.unwrap();
        assert_eq!(changed.map(|archive| archive.first), Some(1));
    }
}
