//! Failures that stop a rollout and roll its nodes back.

use crate::fleet::{Fleet, served, well};
use crate::world::worlds;
use axum::http::{Method, StatusCode};
use jiff::SignedDuration;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection, Executor};

/// Returns reports of nodes in a failing batch, with a part of the reason.
fn bad_batches() -> Vec<(&'static str, Value, &'static str)> {
    let none = json!({});
    vec![
        ("500", served(1_000, 600, 3, &none), "end with 5xx"),
        (
            "slow",
            served(1_000, 1, 8, &none),
            "99 % of requests take up to",
        ),
        (
            "dead upstream",
            served(1_000, 5, 3, &json!({"connect_refused": 60})),
            "the reason connect_refused",
        ),
        (
            "lost routes",
            served(1_000, 0, 3, &json!({"route_not_found": 400})),
            "the reason route_not_found",
        ),
        ("too few", served(20, 0, 3, &none), "too little data"),
        ("silent", Value::Null, "too little data"),
    ]
}

/// Lets the nodes of the first batch report `traffic` for the new bundle. Returns the former bundle
/// and the rollout.
async fn first_batch_result(fleet: &mut Fleet<'_>, traffic: &Value) -> (String, String) {
    let (old, new) = (fleet.bundle(81).await, fleet.bundle(82).await);
    fleet.run(&old).await;
    let id = fleet.start(&new, json!({})).await;
    fleet.tick(0).await;
    for index in 0..2 {
        fleet.nodes[index].traffic = traffic.clone();
        fleet.follow_order(index).await;
    }
    fleet.serve(2..4).await;
    fleet.tick(0).await;
    if fleet.state(&id).await == "running" {
        // The gate waits for missing data until the deadline.
        fleet.tick(61).await;
    }
    (old, id)
}

#[tokio::test]
async fn a_bad_batch_is_stopped_and_reverted() {
    for world in worlds().await {
        for (name, traffic, reason) in bad_batches() {
            let mut fleet = Fleet::new(&world, 4).await;
            let (old, id) = first_batch_result(&mut fleet, &traffic).await;
            let view = fleet.view(&id).await;
            assert_eq!(view["state"], "rolling_back", "{name}: {view}");
            assert_eq!(view["batches"][0]["state"], "failed", "{name}");
            let message = view["reason"].as_str().unwrap();
            assert!(message.contains(reason), "{name}: {message}");
            let verdict = view["batches"][0]["figures"]["verdict"].as_str().unwrap();
            assert!(verdict.contains(reason), "{name}: {verdict}");
            assert_eq!(view["batch"], 1, "{name}: no second batch");
            for (index, orders) in [(0, 3), (1, 3), (2, 1), (3, 1)] {
                let order = fleet.order(index).await.unwrap();
                assert_eq!(order.bundle.to_string(), old, "{name} {index}");
                assert_eq!(order.counter, orders, "{name} {index}");
            }
            assert_eq!(fleet.tick(0).await, 0, "{name}: the nodes' word is awaited");
            for index in 0..2 {
                fleet.nodes[index].traffic = well();
                fleet.follow_order(index).await;
            }
            fleet.tick(0).await;
            assert_eq!(fleet.state(&id).await, "rolled_back", "{name}");
        }
    }
}

#[tokio::test]
async fn a_second_batch_that_fails_takes_the_first_one_back_too() {
    for world in worlds().await {
        let (mut fleet, old, new) = Fleet::running(&world, 5).await;
        let id = fleet.start(&new, json!({"skip_gate": true})).await;
        fleet.tick(0).await;
        for index in 0..2 {
            fleet.follow_order(index).await;
        }
        fleet.tick(0).await;
        fleet.follow_order(2).await;
        fleet.refuse(3).await;
        fleet.tick(0).await;
        let view = fleet.view(&id).await;
        assert_eq!(
            (&view["state"], &view["batch"]),
            (&json!("rolling_back"), &json!(2))
        );
        for (index, orders) in [(0, 3), (1, 3), (2, 3), (3, 3), (4, 1)] {
            let order = fleet.order(index).await.unwrap();
            assert_eq!(order.bundle.to_string(), old, "{index}");
            assert_eq!(order.counter, orders, "{index}");
        }
        for index in [1, 2, 3] {
            fleet.follow_order(index).await;
        }
        assert_eq!(
            fleet.tick(0).await,
            0,
            "a node of the first batch is awaited"
        );
        fleet.tick(61).await;
        let view = fleet.view(&id).await;
        assert_eq!(view["state"], "rolled_back", "{view}");
        let reason = view["reason"].as_str().unwrap();
        let message = "; 1 node did not revert in time";
        assert!(reason.ends_with(message), "{reason}");
    }
}

#[tokio::test]
async fn a_hot_batch_is_stopped() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 3).await;
        let id = fleet.start(&new, json!({})).await;
        fleet.tick(0).await;
        for index in 0..2 {
            fleet.nodes[index].cpu_percent = 80.0;
            fleet.follow_order(index).await;
        }
        fleet.serve(2..3).await;
        fleet.tick(0).await;
        let view = fleet.view(&id).await;
        assert!(
            view["reason"].as_str().unwrap().contains("80 % CPU"),
            "{view}"
        );
    }
}

#[tokio::test]
async fn one_node_that_rejects_the_bundle_stops_the_batch() {
    for world in worlds().await {
        for (on_failure, state) in [("roll_back", "rolling_back"), ("pause", "paused")] {
            let (mut fleet, _, new) = Fleet::running(&world, 4).await;
            let settings = json!({"on_failure": on_failure, "max_unavailable": 1});
            let id = fleet.start(&new, settings).await;
            fleet.tick(0).await;
            fleet.follow_order(0).await;
            fleet.refuse(1).await;
            fleet.tick(0).await;
            let view = fleet.view(&id).await;
            assert_eq!(view["state"], state, "{view}");
            let reason = view["reason"].as_str().unwrap();
            assert!(
                reason.contains("rejected the bundle: no such upstream"),
                "{reason}"
            );
            fleet.command(&id, "cancel").await;
        }
    }
}

#[tokio::test]
async fn an_old_refusal_reveals_nothing_about_a_newer_order() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 2).await;
        let settings = json!({"on_failure": "pause", "skip_gate": true});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        fleet.follow_order(0).await;
        fleet.refuse(1).await;
        fleet.tick(0).await;
        assert_eq!(fleet.state(&id).await, "paused");
        let resumed = fleet.command(&id, "resume").await;
        assert_eq!(resumed.text("state"), "running", "{}", resumed.body);
        assert_eq!(
            fleet.tick(0).await,
            1,
            "the node is ordered again, and no more"
        );
        assert_eq!(fleet.state(&id).await, "running");
        assert_eq!(
            fleet.order(0).await.unwrap().counter,
            2,
            "it runs the bundle"
        );
        assert_eq!(fleet.order(1).await.unwrap().counter, 3);
        fleet.follow_order(1).await;
        fleet.tick(0).await;
        assert_eq!(fleet.state(&id).await, "completed");
    }
}

#[tokio::test]
async fn a_node_that_invents_failures_does_not_let_a_bad_batch_pass() {
    for world in worlds().await {
        for invented in [10_000_000_u64, 10_000_000_000_000] {
            let (mut fleet, _, new) = Fleet::running(&world, 2).await;
            let id = fleet.start(&new, json!({"batch_count": 2})).await;
            fleet.tick(0).await;
            fleet.follow_order(0).await;
            fleet.tick(0).await;
            let bad = &mut fleet.nodes[0].traffic["routes"]["api"]["errors"];
            *bad = json!(bad.as_u64().unwrap() + 500);
            let route = &mut fleet.nodes[1].traffic["routes"]["api"];
            for name in ["requests", "errors"] {
                route[name] = json!(route[name].as_u64().unwrap() + invented);
            }
            fleet.serve(0..2).await;
            fleet.tick(0).await;
            let view = fleet.view(&id).await;
            assert_eq!(view["state"], "rolling_back", "{view}");
        }
    }
}

#[tokio::test]
async fn a_last_batch_that_was_paused_is_compared_with_itself_before_it_switched() {
    for world in worlds().await {
        for (errors, state) in [(0, "completed"), (900, "rolling_back")] {
            let (mut fleet, _, new) = Fleet::running(&world, 2).await;
            let id = fleet.start(&new, json!({})).await;
            fleet.tick(0).await;
            for index in 0..2 {
                fleet.follow_order(index).await;
            }
            fleet.tick(0).await;
            for _ in 0..2 {
                fleet.command(&id, "pause").await;
                fleet.command(&id, "resume").await;
            }
            fleet.tick(0).await;
            for node in &mut fleet.nodes {
                let counted = &mut node.traffic["routes"]["api"]["errors"];
                *counted = json!(counted.as_u64().unwrap() + errors);
            }
            fleet.serve(0..2).await;
            fleet.tick(0).await;
            let view = fleet.view(&id).await;
            assert_eq!(view["state"], state, "{view}");
            let figures = &view["batches"][0]["figures"];
            assert_eq!(figures["batch"]["requests"], 2_000, "since it was resumed");
            assert_eq!(figures["rest"]["requests"], 2_000, "{view}");
        }
    }
}

/// The later node of a pair is a standby: it serves nothing, or the requests of a monitor.
#[tokio::test]
async fn an_active_node_is_compared_with_itself_beside_a_standby() {
    for world in worlds().await {
        let cases = [(0, 0, "passed"), (5, 0, "passed"), (5, 900, "failed")];
        for (of_standby, errors, state) in cases {
            let (mut fleet, _, new) = Fleet::running(&world, 2).await;
            let id = fleet.start(&new, json!({"batch_count": 1})).await;
            fleet.tick(0).await;
            let own = served(1_000, errors, 3, &json!({}));
            fleet.nodes[0].traffic = own;
            fleet.follow_order(0).await;
            let mut standby = well();
            standby["routes"]["api"]["requests"] = json!(1_000 + of_standby);
            standby["routes"]["api"]["latency"][3] = json!(1_000 + of_standby);
            fleet.nodes[1].traffic = standby;
            fleet.beat(1).await;
            fleet.tick(0).await;
            fleet.report(0).await;
            fleet.tick(0).await;
            let view = fleet.view(&id).await;
            assert_eq!(view["batches"][0]["state"], state, "{of_standby}: {view}");
            let rest = &view["batches"][0]["figures"]["rest"];
            assert_eq!(rest["requests"], 1_000, "before the switch: {view}");
        }
    }
}

#[tokio::test]
async fn figures_that_cannot_be_read_hold_up_no_rollback() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 2).await;
        let id = fleet.start(&new, json!({})).await;
        fleet.tick(0).await;
        fleet.nodes[0].traffic = well();
        fleet.follow_order(0).await;
        let mut database = AnyConnection::connect(&world.database.url).await.unwrap();
        let newer = r#"UPDATE rollout_samples SET traffic = '{"of a newer release": 1}'"#;
        database.execute(newer).await.unwrap();
        database.close().await.unwrap();

        let back = fleet.command(&id, "rollback").await;
        assert_eq!(back.status, StatusCode::OK, "{}", back.body);
        assert_eq!(fleet.state(&id).await, "rolling_back");
    }
}

#[tokio::test]
async fn after_an_outage_a_resumed_rollout_orders_only_nodes_without_the_bundle() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 2).await;
        let settings = json!({"on_failure": "pause", "skip_gate": true, "soak_secs": 30});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        fleet.follow_order(0).await;
        fleet.tick(61).await;
        assert_eq!(fleet.state(&id).await, "paused", "one node is late");
        let mut database = AnyConnection::connect(&world.database.url).await.unwrap();
        // Trial: the deadline, one and a half soaks, and three heartbeats of 30 s: 195 s.
        for (silent_secs, expected) in [(185, [2, 3]), (205, [3, 4])] {
            let since = fleet.now() - SignedDuration::from_secs(silent_secs);
            let since = since.as_millisecond();
            let silent = format!("UPDATE node_heartbeats SET seen_at = {since}");
            let silent = sqlx::AssertSqlSafe(silent);
            database.execute(silent).await.unwrap();
            fleet.command(&id, "resume").await;
            fleet.tick(0).await;
            let ordered = [fleet.order(0).await, fleet.order(1).await];
            let counters = ordered.map(|order| order.unwrap().counter);
            assert_eq!(counters, expected, "silent for {silent_secs} s");
            fleet.command(&id, "pause").await;
        }
        database.close().await.unwrap();
    }
}

#[tokio::test]
async fn after_an_outage_no_batch_is_late_until_its_nodes_could_report() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 2).await;
        let settings = json!({"skip_gate": true, "soak_secs": 30});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        for index in 0..2 {
            fleet.follow_order(index).await;
        }
        assert_eq!(fleet.tick(0).await, 1, "the nodes have switched");
        world.app.note_outage();
        assert_eq!(fleet.tick(600).await, 0, "the deadline was 60 s");
        assert_eq!(fleet.state(&id).await, "running");
        fleet.tick(600 + 91).await;
        let view = fleet.view(&id).await;
        let reason = view["reason"].as_str().unwrap();
        assert!(reason.contains("2 of 2 nodes did not switch"), "{view}");
    }
}

#[tokio::test]
async fn after_an_outage_a_rollback_waits_for_its_nodes() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 2).await;
        let id = fleet.start(&new, json!({"skip_gate": true})).await;
        fleet.tick(0).await;
        for index in 0..2 {
            fleet.follow_order(index).await;
        }
        fleet.command(&id, "rollback").await;
        fleet.tick(0).await;
        world.app.note_outage();
        fleet.tick(600).await;
        assert_eq!(fleet.state(&id).await, "rolling_back");
        for index in 0..2 {
            fleet.follow_order(index).await;
        }
        fleet.tick(610).await;
        assert_eq!(fleet.state(&id).await, "rolled_back");
    }
}

#[tokio::test]
async fn a_node_that_is_ordered_twice_reverts_to_its_bundle_before_both() {
    for world in worlds().await {
        let (mut fleet, old, new) = Fleet::running(&world, 2).await;
        let settings = json!({"on_failure": "pause", "skip_gate": true});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        fleet.follow_order(1).await;
        // The node runs the new bundle, and later reports that its order failed.
        fleet.refuse(1).await;
        fleet.tick(0).await;
        assert_eq!(fleet.state(&id).await, "paused");
        fleet.command(&id, "resume").await;
        fleet.tick(0).await;
        assert_eq!(fleet.order(1).await.unwrap().counter, 3);
        fleet.command(&id, "rollback").await;
        fleet.tick(0).await;
        let order = fleet.order(1).await.unwrap();
        assert_eq!((order.bundle.to_string(), order.counter), (old, 4));
    }
}

#[tokio::test]
async fn a_node_that_is_offline_is_skipped_and_joins_later() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 2).await;
        let (old, new) = (fleet.bundle(81).await, fleet.bundle(82).await);
        // The second node is registered, but has sent no heartbeat.
        let away = fleet.nodes.pop().unwrap();
        fleet.run(&old).await;
        fleet.nodes.push(away);
        let settings = json!({"skip_gate": true, "max_unavailable": 1});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        fleet.follow_order(0).await;
        fleet.tick(0).await;
        let view = fleet.view(&id).await;
        assert_eq!(view["state"], "completed", "{view}");
        assert_eq!(view["batches"][0]["ready"], 1, "{view}");
        assert_eq!(view["batches"][0]["nodes"], 2, "{view}");
        fleet.follow_order(1).await;
        assert_eq!(fleet.nodes[1].active.as_ref(), Some(&new));

        let strict = fleet
            .start(&old, json!({"skip_gate": true, "on_failure": "pause"}))
            .await;
        fleet.tick(0).await;
        fleet.follow_order(0).await;
        fleet.tick(61).await;
        let view = fleet.view(&strict).await;
        assert_eq!(view["state"], "paused", "{view}");
        let reason = view["reason"].as_str().unwrap();
        assert!(
            reason.contains("1 of 2 nodes did not switch in time"),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn a_batch_whose_nodes_were_deleted_is_passed_over() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 3).await;
        let id = fleet.start(&new, json!({"batch_count": 1})).await;
        let path = format!("/projects/{{project}}/nodes/{}", fleet.nodes[1].id);
        let (delete, operator) = (Method::DELETE, &fleet.operator);
        let deleted = world
            .send(&delete, &path, operator, &Value::Null, &[])
            .await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.body);
        for index in [0, 2] {
            fleet.tick(0).await;
            fleet.follow_order(index).await;
            fleet.tick(0).await;
            fleet.serve(0..1).await;
            fleet.serve(2..3).await;
            fleet.tick(0).await;
        }
        let view = fleet.view(&id).await;
        assert_eq!(view["state"], "completed", "{view}");
        assert_eq!(view["batches"][1]["nodes"], 0, "{view}");
    }
}

#[tokio::test]
async fn a_revoked_bundle_is_taken_back_from_the_nodes_of_its_rollout() {
    for world in worlds().await {
        for command in ["", "pause"] {
            let (mut fleet, old, new) = Fleet::running(&world, 2).await;
            let settings = json!({"skip_gate": true, "soak_secs": 60});
            let id = fleet.start(&new, settings).await;
            fleet.tick(0).await;
            for index in 0..2 {
                fleet.follow_order(index).await;
            }
            if !command.is_empty() {
                fleet.command(&id, command).await;
            }
            let revoke = format!("/projects/{{project}}/bundles/{new}/revoke");
            fleet.post(&revoke, Value::Null).await;
            assert_eq!(
                fleet.order(0).await.unwrap().counter,
                2,
                "the rollout does it"
            );
            fleet.tick(0).await;
            let view = fleet.view(&id).await;
            assert_eq!(view["reason"], "the bundle was revoked", "{view}");
            for index in 0..2 {
                let order = fleet.order(index).await.unwrap();
                assert_eq!((order.bundle.to_string(), order.counter), (old.clone(), 3));
                fleet.follow_order(index).await;
            }
            fleet.tick(0).await;
            assert_eq!(fleet.state(&id).await, "rolled_back");
        }
    }
}

#[tokio::test]
async fn a_node_without_an_earlier_bundle_is_reported() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let new = fleet.bundle(82).await;
        let id = fleet.start(&new, json!({"skip_gate": true})).await;
        fleet.tick(0).await;
        fleet.refuse(0).await;
        fleet.tick(0).await;
        let view = fleet.view(&id).await;
        assert_eq!(view["state"], "rolled_back", "{view}");
        let reason = view["reason"].as_str().unwrap();
        assert!(
            reason.ends_with("; 1 node had no former bundle"),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn counts_of_another_bundle_prove_nothing() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 2).await;
        let path = format!("/projects/{{project}}/nodes/{}", fleet.nodes[0].id);
        let counted = async || world.get(&path, &world.full_key().await).await.body;
        assert!(counted().await["traffic"].is_object());
        let id = fleet.start(&new, json!({})).await;
        fleet.tick(0).await;
        fleet.nodes[0].traffic = Value::Null;
        fleet.follow_order(0).await;
        assert!(
            counted().await["traffic"].is_null(),
            "it was of the old bundle"
        );
        fleet.command(&id, "cancel").await;
    }
}
