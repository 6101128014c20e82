//! Drift: opened by reports of nodes; resolved automatically, by an operator, or by a rollout.

use crate::fleet::Fleet;
use crate::world::{Answer, World, worlds};
use axum::http::StatusCode;
use control_testkit::{Database, until_lock_wait};
use control_wire::NodeId;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sqlx::{Any, AnyConnection, Connection};

const DRIFT: &str = "/projects/{project}/drift";
const LATE: i64 = 121;

async fn drifts(world: &World, state: &str) -> Vec<Value> {
    let path = format!("{DRIFT}?state={state}");
    let listed = world.get(&path, &world.full_key().await).await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.body);
    listed.body["items"].as_array().unwrap().clone()
}

/// Creates a fleet of one node that runs another bundle than ordered, and the drift.
async fn drifting(world: &World) -> (Fleet<'_>, [String; 2], Value) {
    let mut fleet = Fleet::new(world, 1).await;
    let (old, new) = (fleet.bundle(81).await, fleet.bundle(82).await);
    fleet.run(&old).await;
    let path = format!("/projects/{{project}}/bundles/{new}/assign");
    let nodes = json!({"nodes": [fleet.nodes[0].id]});
    fleet.post(&path, nodes).await;
    fleet.beat(0).await;
    fleet.tick(LATE - 3).await;
    assert_eq!(
        drifts(world, "open").await,
        [] as [Value; 0],
        "within the grace"
    );
    fleet.tick(LATE).await;
    let open = drifts(world, "open").await;
    assert_eq!(open.len(), 1);
    assert_eq!(open[0]["desired"], json!(new));
    assert_eq!(open[0]["active"], json!(old));
    fleet.tick(LATE).await;
    assert_eq!(drifts(world, "open").await.len(), 1, "it is opened once");
    let drift = open[0].clone();
    (fleet, [old, new], drift)
}

async fn resolve(fleet: &Fleet<'_>, drift: &Value, body: Value) -> Answer {
    let path = format!("{DRIFT}/{}/resolve", drift["id"].as_str().unwrap());
    fleet.post(&path, body).await
}

#[tokio::test]
async fn a_node_that_follows_again_resolves_its_drift() {
    for world in worlds().await {
        let (mut fleet, _, drift) = drifting(&world).await;
        fleet.follow_order(0).await;
        fleet.tick(LATE).await;
        assert_eq!(drifts(&world, "open").await, [] as [Value; 0]);
        let resolved = &drifts(&world, "resolved").await[0];
        assert_eq!(resolved["id"], drift["id"]);
        assert_eq!(resolved["resolution"], "automatic");
        let again = resolve(&fleet, &drift, json!({})).await;
        assert_eq!(again.code(), "WRONG_STATE", "{}", again.body);
    }
}

#[tokio::test]
async fn an_edited_bundle_is_a_drift_until_it_is_restored() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let bundle = fleet.bundle(81).await;
        fleet.run(&bundle).await;
        fleet.nodes[0].altered = true;
        fleet.beat(0).await;
        fleet.tick(LATE).await;
        let open = drifts(&world, "open").await;
        assert_eq!(open.len(), 1);
        assert_eq!(open[0]["desired"], json!(bundle));
        assert_eq!(open[0]["active"], json!(bundle));
        let node = format!("/projects/{{project}}/nodes/{}", fleet.nodes[0].id);
        let view = world.get(&node, &world.full_key().await).await;
        assert_eq!(view.status, StatusCode::OK, "{}", view.body);
        fleet.nodes[0].altered = false;
        fleet.beat(0).await;
        fleet.tick(LATE).await;
        assert_eq!(drifts(&world, "open").await, [] as [Value; 0]);
        assert_eq!(
            drifts(&world, "resolved").await[0]["resolution"],
            "automatic"
        );
    }
}

#[tokio::test]
async fn an_operator_orders_again_or_accepts() {
    for world in worlds().await {
        for (remedy, wanted) in [("reorder", 1), ("accept", 0), ("", 1)] {
            let (fleet, bundles, drift) = drifting(&world).await;
            let body = match remedy {
                "" => Value::Null,
                remedy => json!({ "remedy": remedy }),
            };
            let resolved = resolve(&fleet, &drift, body).await;
            assert_eq!(resolved.status, StatusCode::OK, "{}", resolved.body);
            assert_eq!(resolved.text("resolution"), "manual");
            let order = fleet.order(0).await.unwrap();
            assert_eq!(order.bundle.to_string(), bundles[wanted]);
            assert_eq!(order.counter, 3);
            fleet.tick(LATE + 10).await;
            let open = drifts(&world, "open").await.len();
            assert_eq!(open, wanted, "{remedy}: what goes on is opened again");
            // Removes it for the next case.
            let path = format!("/projects/{{project}}/nodes/{}", fleet.nodes[0].id);
            let delete = axum::http::Method::DELETE;
            world
                .send(&delete, &path, &fleet.operator, &Value::Null, &[])
                .await;
        }
    }
}

#[tokio::test]
async fn a_node_that_a_rollout_holds_does_not_drift() {
    for world in worlds().await {
        let (fleet, _, new) = Fleet::running(&world, 1).await;
        let settings = json!({"skip_gate": true, "deadline_secs": 600});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        fleet.beat(0).await;
        fleet.tick(LATE).await;
        assert_eq!(drifts(&world, "open").await, [] as [Value; 0]);
        fleet.command(&id, "cancel").await;
        fleet.tick(LATE + 11).await;
        assert_eq!(
            drifts(&world, "open").await.len(),
            1,
            "it is no longer held"
        );
    }
}

#[tokio::test]
async fn a_rollout_resolves_the_drift_of_its_nodes() {
    for world in worlds().await {
        let (mut fleet, [old, _], drift) = drifting(&world).await;
        let id = fleet.start(&old, json!({"skip_gate": true})).await;
        let held = resolve(&fleet, &drift, json!({})).await;
        assert_eq!(held.status, StatusCode::CONFLICT, "{}", held.body);
        fleet.tick(LATE + 11).await;
        fleet.follow_order(0).await;
        fleet.tick(0).await;
        fleet.tick(11).await;
        assert_eq!(drifts(&world, "open").await, [] as [Value; 0]);
        let path = format!("{DRIFT}/{}", drift["id"].as_str().unwrap());
        let found = world.get(&path, &world.full_key().await).await;
        assert_eq!(found.text("resolution"), "rollout", "{}", found.body);
        fleet.command(&id, "cancel").await;
    }
}

#[tokio::test]
async fn nodes_revert_from_a_revoked_bundle_to_their_last_good_one() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let good = fleet.bundle(81).await;
        let (refused, bad) = (fleet.bundle(82).await, fleet.bundle(83).await);
        fleet.run(&good).await;
        let nodes = json!({"nodes": [fleet.nodes[0].id]});
        for bundle in [&refused, &bad] {
            let path = format!("/projects/{{project}}/bundles/{bundle}/assign");
            fleet.post(&path, nodes.clone()).await;
            fleet.refuse(0).await;
        }
        let revoke = format!("/projects/{{project}}/bundles/{bad}/revoke");
        fleet.post(&revoke, Value::Null).await;
        let order = fleet.order(0).await.unwrap();
        assert_eq!(
            order.bundle.to_string(),
            good,
            "not the one that was ordered before"
        );
    }
}

/// Two nodes that run another bundle than they are ordered to, and have reported it.
async fn behind(world: &World) -> (Fleet<'_>, Vec<NodeId>) {
    let (fleet, _, new) = Fleet::running(world, 2).await;
    let nodes: Vec<_> = fleet.nodes.iter().map(|node| node.id).collect();
    let path = format!("/projects/{{project}}/bundles/{new}/assign");
    fleet.post(&path, json!({ "nodes": nodes })).await;
    for index in 0..nodes.len() {
        fleet.beat(index).await;
    }
    (fleet, nodes)
}

#[tokio::test]
async fn changed_drifts_are_noted_page_by_page() {
    for world in worlds().await {
        let (fleet, nodes) = behind(&world).await;
        fleet.tick(LATE).await;
        assert_eq!(drifts(&world, "open").await.len(), 2);
        let mut connection = AnyConnection::connect(&world.database.url).await.unwrap();
        let change = "UPDATE node_heartbeats SET active_bundle_id = NULL";
        let change = sqlx::query::<Any>(change);
        change.execute(&mut connection).await.unwrap();
        let (mut found, mut last) = (Vec::new(), None);
        let mut tx = world.store.read().await.unwrap();
        for _ in 0..3 {
            let page = tx.changed_drifts(last, 1).await.unwrap();
            last = page.last().map(|drift| drift.value.node).or(last);
            found.extend(page.into_iter().map(|drift| drift.value.node));
        }
        drop(tx);
        let mut expected = nodes;
        expected.sort_unstable();
        assert_eq!(found, expected);
        fleet.tick(LATE).await;
        let open = drifts(&world, "open").await;
        assert!(open.iter().all(|drift| drift["active"].is_null()));
        assert_eq!(open.len(), 2);
    }
}

#[tokio::test]
async fn drifts_lock_their_nodes_in_the_order_of_heartbeats() {
    let world = World::new(Database::postgres()).await;
    let (fleet, nodes) = behind(&world).await;
    let mut heartbeats = AnyConnection::connect(&world.database.url).await.unwrap();
    // The second node has differed for longer, and is the first that is found.
    let longer = "UPDATE node_heartbeats SET diverged_at = diverged_at - 1000 WHERE node_id = $1";
    let write = |statement: &'static str, node: usize| {
        sqlx::query::<Any>(statement).bind(nodes[node].to_string())
    };
    write(longer, 1).execute(&mut heartbeats).await.unwrap();
    // Heartbeats of both nodes in one transaction, by their identifiers.
    let beat = "UPDATE node_heartbeats SET seen_at = seen_at WHERE node_id = $1";
    let mut tx = heartbeats.begin().await.unwrap();
    write(beat, 0).execute(&mut *tx).await.unwrap();
    let rest = async {
        until_lock_wait(&world.database).await;
        write(beat, 1).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    };
    let late = fleet.now() + SignedDuration::from_secs(LATE);
    let (opened, ()) = tokio::join!(world.app.watch_drift(fleet.replica, late), rest);
    assert_eq!(opened.unwrap(), 2);
}

#[tokio::test]
async fn a_node_that_claims_a_bundle_which_it_was_never_ordered_is_not_accepted() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let (ordered, foreign) = (fleet.bundle(81).await, fleet.bundle(82).await);
        fleet.run(&ordered).await;
        fleet.nodes[0].active = Some(foreign.clone());
        fleet.beat(0).await;
        fleet.tick(LATE).await;
        let open = drifts(&world, "open").await;
        assert_eq!(open[0]["active"], json!(foreign), "{open:?}");
        let refused = resolve(&fleet, &open[0], json!({"remedy": "accept"})).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.body
        );
        let order = fleet.order(0).await.unwrap();
        assert_eq!(order.bundle.to_string(), ordered);
        let again = resolve(&fleet, &open[0], json!({"remedy": "reorder"})).await;
        assert_eq!(again.status, StatusCode::OK, "{}", again.body);
    }
}

#[tokio::test]
async fn a_revoked_order_is_not_repeated_for_a_drift() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let (ordered, foreign) = (fleet.bundle(81).await, fleet.bundle(82).await);
        fleet.run(&ordered).await;
        fleet.nodes[0].active = Some(foreign);
        fleet.beat(0).await;
        fleet.tick(LATE).await;
        let open = drifts(&world, "open").await;
        // The node has no earlier bundle to return to, so its order stays.
        let revoke = format!("/projects/{{project}}/bundles/{ordered}/revoke");
        let revoked = fleet.post(&revoke, Value::Null).await;
        assert_eq!(revoked.status, StatusCode::OK, "{}", revoked.body);
        let refused = resolve(&fleet, &open[0], json!({})).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.body);
        assert_eq!(refused.code(), "WRONG_STATE", "{}", refused.body);
    }
}
