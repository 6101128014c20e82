//! Background work of a replica with a wrong clock: none until the clock is right again.

use crate::fleet::Fleet;
use crate::world::{World, app_with_clock};
use control_app::App;
use control_domain::Tenant;
use control_store::{Objects, Upload};
use control_testkit::Database;
use control_wire::BundleId;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::sync::atomic::{AtomicI64, Ordering};
use uuid::Uuid;

const REPLICA: Uuid = Uuid::from_u128(1);
/// Age at which everything that has ended is deleted: entries of the audit log are kept for 400 days.
const RETENTION: SignedDuration = SignedDuration::from_hours(402 * 24);

/// Offset of [`clock`] in seconds, which only one test uses.
static OFFSET_SECS: AtomicI64 = AtomicI64::new(0);

fn clock() -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(OFFSET_SECS.load(Ordering::Relaxed))
}

/// Number of changes by each job in one round of background work.
#[derive(Debug, Default, PartialEq, Eq)]
struct Round {
    steps: usize,
    deleted: u64,
    swept: usize,
    archived: u64,
}

impl Round {
    /// Runs the scheduler now, and the jobs that delete after the retention.
    async fn run(app: &App, now: Timestamp) -> Self {
        let later = now + RETENTION;
        Self {
            steps: app.advance_rollouts(REPLICA, now).await.unwrap(),
            deleted: app.clean_up(REPLICA, later).await.unwrap(),
            swept: app.sweep_archives(REPLICA, later).await.unwrap(),
            archived: app.archive_audit(REPLICA, later).await.unwrap(),
        }
    }
}

/// Leaves an archive without a bundle, as after a crash during an upload.
async fn leave_archive(world: &World) {
    let objects = Objects::in_folder(world.objects.path()).unwrap();
    let upload = Upload {
        bundle: BundleId(Uuid::from_u128(1)),
        org: world.org,
        digest: "orphan".to_owned(),
        object: format!("bundles/{}/orphan.tar.zst", world.org),
    };
    objects.put(&upload.object, vec![1]).await.unwrap();
    let mut tx = world.store.begin().await.unwrap();
    tx.begin_upload(&upload, world.app.now()).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_replica_with_a_wrong_clock_deletes_moves_and_archives_nothing() {
    // With SQLite, each replica uses its own clock.
    let world = World::new(Database::postgres()).await;
    let (fleet, old, new) = Fleet::running(&world, 1).await;
    fleet.start(&new, json!({"skip_gate": true})).await;
    let ordered = async || fleet.order(0).await.unwrap().bundle.to_string();
    let mut key = world.key(Tenant::org(world.org), &[]);
    key.revoked_at = Some(world.app.now());
    world.store_key(&key).await;
    leave_archive(&world).await;
    let archives = world.objects.path().join("audit");
    let (app, _) = app_with_clock(&world.database.url, world.objects.path(), clock).await;

    for offset in [30, -30] {
        OFFSET_SECS.store(offset, Ordering::Relaxed);
        app.relay().await.unwrap();
        assert!(app.is_clock_wrong(), "{offset}");
        let idle = Round::run(&app, world.app.now()).await;
        assert_eq!(idle, Round::default(), "{offset}");
        let mut tx = world.store.read().await.unwrap();
        let leases = tx.leases().await.unwrap();
        drop(tx);
        assert!(leases.is_empty(), "{offset}: {leases:?}");
        assert_eq!(ordered().await, old);
        assert!(!archives.exists());
    }

    OFFSET_SECS.store(0, Ordering::Relaxed);
    app.relay().await.unwrap();
    assert!(!app.is_clock_wrong());
    let done = Round::run(&app, world.app.now()).await;
    let Round {
        steps,
        deleted,
        swept,
        archived,
    } = done;
    assert!(0 < steps && 0 < deleted && 0 < archived, "{done:?}");
    assert_eq!(swept, 1);
    assert_eq!(ordered().await, new);
    assert!(archives.exists());
}
