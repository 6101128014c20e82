//! Rollouts with a concurrent revocation, command or deletion.

use crate::fleet::Fleet;
use crate::world::{World, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Bundle, BundleState};
use control_testkit::{Database, until_lock_wait};
use control_wire::{BundleId, RolloutId};
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection, Executor};

const BUNDLES: &str = "/projects/{project}/bundles";

async fn revoke(fleet: &Fleet<'_>, bundle: &str) {
    let path = format!("{BUNDLES}/{bundle}/revoke");
    let revoked = fleet.post(&path, Value::Null).await;
    assert_eq!(revoked.status, StatusCode::OK, "{}", revoked.body);
}

async fn recall(fleet: &Fleet<'_>) {
    let app = &fleet.world.app;
    while app.recall_bundles(app.now()).await.unwrap() > 0 {}
}

async fn ordered(fleet: &Fleet<'_>, index: usize) -> String {
    fleet.order(index).await.unwrap().bundle.to_string()
}

#[tokio::test]
async fn a_revoked_bundle_is_taken_back_though_its_rollout_was_cancelled() {
    for world in worlds().await {
        let (mut fleet, old, new) = Fleet::running(&world, 2).await;
        let settings = json!({"skip_gate": true, "soak_secs": 60});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        for index in 0..2 {
            fleet.follow_order(index).await;
        }
        revoke(&fleet, &new).await;
        // The command arrives before the scheduler would have rolled the nodes back.
        let cancelled = fleet.command(&id, "cancel").await;
        assert_eq!(cancelled.text("state"), "cancelled", "{}", cancelled.body);
        recall(&fleet).await;
        for index in 0..2 {
            assert_eq!(ordered(&fleet, index).await, old, "{index}");
        }
    }
}

#[tokio::test]
async fn a_revoked_bundle_is_not_replaced_by_one_that_a_rollout_reverted() {
    for world in worlds().await {
        for obeys_first in [false, true] {
            let (mut fleet, old, new) = Fleet::running(&world, 1).await;
            let id = fleet
                .start(&new, json!({"skip_gate": true, "soak_secs": 60}))
                .await;
            fleet.tick(0).await;
            fleet.follow_order(0).await;
            fleet.command(&id, "rollback").await;
            fleet.tick(0).await;
            assert_eq!(ordered(&fleet, 0).await, old);
            if obeys_first {
                fleet.follow_order(0).await;
                fleet.tick(0).await;
            }
            revoke(&fleet, &old).await;
            recall(&fleet).await;
            assert_eq!(
                ordered(&fleet, 0).await,
                old,
                "{obeys_first}: not the bad one"
            );
            fleet.follow_order(0).await;
            fleet.tick(0).await;
            assert_eq!(fleet.state(&id).await, "rolled_back", "{obeys_first}");
        }
    }
}

#[tokio::test]
async fn a_node_that_was_offline_returns_to_its_order_if_its_bundle_was_revoked() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let (oldest, old) = (fleet.bundle(80).await, fleet.bundle(81).await);
        let new = fleet.bundle(82).await;
        fleet.run(&oldest).await;
        fleet.run(&old).await;
        revoke(&fleet, &old).await;
        recall(&fleet).await;
        assert_eq!(ordered(&fleet, 0).await, oldest);
        // The node is back online after a rollout has ordered the new bundle for it.
        let id = fleet
            .start(&new, json!({"skip_gate": true, "soak_secs": 60}))
            .await;
        fleet.tick(0).await;
        fleet.follow_order(0).await;
        fleet.command(&id, "rollback").await;
        fleet.tick(0).await;
        assert_eq!(ordered(&fleet, 0).await, oldest);
    }
}

#[tokio::test]
async fn no_node_is_ordered_to_run_a_bundle_that_is_revoked_during_the_step() {
    let world = World::new(Database::postgres()).await;
    let (fleet, old, new) = Fleet::running(&world, 2).await;
    let id = fleet.start(&new, json!({"skip_gate": true})).await;
    let mut tx = world.store.begin().await.unwrap();
    tx.lock_audit().await.unwrap();
    let bundle = BundleId(new.parse().unwrap());
    let found = tx.bundle(bundle).await.unwrap().unwrap();
    // A revocation by an operator, before its commit.
    let revoked = Bundle {
        state: BundleState::Revoked,
        revoked_at: Some(world.app.now()),
        ..found.value
    };
    tx.update_bundle(&revoked, found.version).await.unwrap();
    let commit = async {
        until_lock_wait(&world.database).await;
        tx.commit().await.unwrap();
    };
    tokio::join!(fleet.tick(0), commit);
    for index in 0..2 {
        let order = fleet.order(index).await.unwrap();
        assert_eq!((order.bundle.to_string(), order.counter), (old.clone(), 1));
    }
    fleet.tick(0).await;
    let view = fleet.view(&id).await;
    assert_eq!(view["reason"], "the bundle was revoked", "{view}");
}

#[tokio::test]
async fn an_operator_who_pauses_during_a_step_is_not_refused() {
    let world = World::new(Database::postgres()).await;
    let (fleet, _, new) = Fleet::running(&world, 2).await;
    let id = fleet.start(&new, json!({"skip_gate": true})).await;
    let mut tx = world.store.begin().await.unwrap();
    tx.lock_audit().await.unwrap();
    let rollout = tx.rollout(RolloutId(id.parse().unwrap()));
    let found = rollout.await.unwrap().unwrap();
    // A step of another replica, before its commit.
    tx.update_rollout(&found.value, found.version)
        .await
        .unwrap();
    let commit = async {
        until_lock_wait(&world.database).await;
        tx.commit().await.unwrap();
    };
    let (paused, ()) = tokio::join!(fleet.command(&id, "pause"), commit);
    assert_eq!(paused.status, StatusCode::OK, "{}", paused.body);
    assert_eq!(paused.text("state"), "paused");
}

#[tokio::test]
async fn the_deletion_of_a_node_and_a_step_do_not_wait_for_each_other() {
    let world = World::new(Database::postgres()).await;
    let (fleet, _, new) = Fleet::running(&world, 1).await;
    let id = fleet.start(&new, json!({"skip_gate": true})).await;
    let rollout = RolloutId(id.parse().unwrap());
    let mut tx = world.store.begin().await.unwrap();
    tx.lock_audit().await.unwrap();
    let node = fleet.nodes[0].id;
    // A step that is about to order the node.
    let step = async {
        until_lock_wait(&world.database).await;
        tx.note_previous(rollout, node).await.unwrap();
        tx.commit().await.unwrap();
    };
    let path = format!("/projects/{{project}}/nodes/{node}");
    let delete = world.send(&Method::DELETE, &path, &fleet.operator, &Value::Null, &[]);
    let (deleted, ()) = tokio::join!(delete, step);
    assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.body);
}

#[tokio::test]
async fn a_thousand_waiting_rollouts_delay_no_other() {
    let world = World::new(Database::sqlite()).await;
    let (mut fleet, _, new) = Fleet::running(&world, 1).await;
    // All of them are older, and not yet due.
    let insert = "WITH RECURSIVE numbers(n) AS
                    (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)
                  INSERT INTO rollouts (id, org_id, project_id, bundle_id, state, batch_count,
                    max_unavailable, deadline_secs, soak_secs, needs_approval, on_failure, labels,
                    nodes, batch_size, not_before, created_by, created_at, version)
                  SELECT '00000000-0000-0000-0000-' || CAST(100000000000 + n AS TEXT), org_id,
                    project_id, id, 'running', 1, 0, 60, 0, 0, 'pause', '{}', 1, 1,
                    253000000000000, id, 0, 1
                  FROM numbers, (SELECT id, org_id, project_id FROM bundles LIMIT 1) AS bundle";
    let mut connection = AnyConnection::connect(&world.database.url).await.unwrap();
    connection.execute(insert).await.unwrap();
    connection.close().await.unwrap();
    let id = fleet.start(&new, json!({"skip_gate": true})).await;
    fleet.tick(0).await;
    fleet.follow_order(0).await;
    fleet.tick(0).await;
    assert_eq!(fleet.state(&id).await, "completed");
}
