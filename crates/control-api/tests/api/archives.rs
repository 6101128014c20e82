//! Unused archives in the object store.

use crate::world::{World, worlds};
use control_store::{Objects, StoreError, Upload};
use control_wire::BundleId;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

const OLDER: SignedDuration = SignedDuration::from_hours(2);
const REPLICA: Uuid = Uuid::from_u128(1);

fn upload(world: &World, number: u128, digest: &str) -> Upload {
    Upload {
        bundle: BundleId(Uuid::from_u128(number)),
        org: world.org,
        digest: digest.to_owned(),
        object: format!("bundles/{}/{digest}.tar.zst", world.org),
    }
}

/// Leaves an upload, as after a crash before the bundle was written to the database.
async fn leave(world: &World, upload: &Upload, at: Timestamp) {
    let objects = Objects::in_folder(world.objects.path()).unwrap();
    let mut tx = world.store.begin().await.unwrap();
    tx.begin_upload(upload, at).await.unwrap();
    tx.commit().await.unwrap();
    if objects.get(&upload.object, 1_000_000).await.is_err() {
        objects.put(&upload.object, vec![1]).await.unwrap();
    }
}

async fn finish(world: &World, upload: &Upload) -> Result<(), StoreError> {
    let mut tx = world.store.begin().await.unwrap();
    tx.finish_upload(upload.bundle).await
}

fn is_there(world: &World, upload: &Upload) -> bool {
    world.objects.path().join(&upload.object).is_file()
}

#[tokio::test]
async fn an_archive_without_a_bundle_is_deleted_after_its_time() {
    for world in worlds().await {
        let full = world.full_key().await;
        let text = "listeners { listener \"a\" { address \"127.0.0.1:80\" } }";
        let body = json!({"name": "edge", "files": {"proxy.kdl": text}});
        let bundles = format!("/projects/{}/bundles", world.project);
        let made = world.post(&bundles, &full, body).await;
        let now = world.app.now();
        let orphan = upload(&world, 1, "orphan");
        // An upload of the same bytes as an existing bundle: only the note of it is removed.
        let shared = upload(&world, 2, &made.text("digest"));
        leave(&world, &orphan, now - OLDER).await;
        leave(&world, &shared, now - OLDER).await;
        let young = upload(&world, 3, "young");
        leave(&world, &young, now).await;

        let swept = world.app.sweep_archives(REPLICA, now).await.unwrap();
        assert_eq!(swept, 2, "not the young one");
        assert!(!is_there(&world, &orphan));
        assert!(is_there(&world, &shared), "a bundle needs it");
        assert!(is_there(&world, &young));
        let late = finish(&world, &orphan).await;
        assert!(matches!(late, Err(StoreError::Stale)), "it was given up");
        assert!(finish(&world, &young).await.is_ok());
        let again = world.app.sweep_archives(REPLICA, now).await.unwrap();
        assert_eq!(again, 0);
    }
}

#[tokio::test]
async fn the_bytes_of_an_archive_that_is_being_deleted_are_not_stored_meanwhile() {
    for world in worlds().await {
        let now = world.app.now();
        let (orphan, same) = (upload(&world, 1, "orphan"), upload(&world, 2, "orphan"));
        leave(&world, &orphan, now - OLDER).await;
        let mut tx = world.store.begin().await.unwrap();
        let given_up = tx.abandon_uploads(now, 10).await.unwrap();
        assert_eq!(given_up.len(), 1);
        let meanwhile = tx.begin_upload(&same, now).await;
        assert!(matches!(meanwhile, Err(StoreError::Stale)));
        tx.forget_upload(orphan.bundle).await.unwrap();
        assert!(tx.begin_upload(&same, now).await.is_ok());
    }
}

#[tokio::test]
async fn one_replica_at_a_time_deletes_archives_and_few_in_a_round() {
    for world in worlds().await {
        let now = world.app.now();
        for number in 0..25 {
            let digest = format!("orphan-{number}");
            leave(&world, &upload(&world, number, &digest), now - OLDER).await;
        }
        assert_eq!(world.app.sweep_archives(REPLICA, now).await.unwrap(), 20);
        let other = Uuid::from_u128(2);
        assert_eq!(world.app.sweep_archives(other, now).await.unwrap(), 0);
        assert_eq!(world.app.sweep_archives(REPLICA, now).await.unwrap(), 5);
    }
}
