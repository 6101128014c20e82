//! `PromQL` queries as conditions for a batch, with a small server that has Prometheus' HTTP API.

use crate::fleet::{Fleet, ROLLOUTS};
use crate::world::{World, worlds};
use axum::http::StatusCode;
use control_testkit::{Database, Receiver};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a server with one sample: 0, or 1 once `is_bad` is true.
fn prometheus(is_bad: Arc<AtomicBool>) -> Receiver {
    Receiver::start(move |_, _| {
        let value = i32::from(is_bad.load(Ordering::Relaxed));
        let sample =
            json!({"metric": {"job": "shop"}, "value": [1_700_000_000, value.to_string()]});
        let body = json!({
            "status": "success", "data": {"resultType": "vector", "result": [sample]},
        });
        let body = body.to_string();
        let length = body.len();
        Some(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        ))
    })
}

/// Moves the first batch of two nodes to its switch, and polls until the rollout has continued or
/// stopped. `step`: seconds between two polls, by the clock of the scheduler.
async fn until_moved(fleet: &mut Fleet<'_>, id: &str, step: i64) -> Value {
    for index in 0..2 {
        fleet.follow_order(index).await;
    }
    let moved = async {
        for round in 0.. {
            fleet.tick(round * step).await;
            let view = fleet.view(id).await;
            if view["state"] != "running" || view["batch"] == 2 {
                return view;
            }
            tokio::task::yield_now().await;
        }
        Value::Null
    };
    timeout(PATIENCE, moved).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_passes_by_its_figures_and_stops_by_worse_ones() {
    for mut world in worlds().await {
        world.allow_private_addresses(Timestamp::now);
        for is_bad in [false, true] {
            let flag = Arc::new(AtomicBool::new(is_bad));
            let server = prometheus(Arc::clone(&flag));
            let (mut fleet, _, new) = Fleet::running(&world, 4).await;
            let condition = json!({
                "url": format!("{}/prom/", server.url()), "query": "sum(failed) / 2", "max": 0.5,
            });
            let settings = json!({
                "skip_gate": true, "prometheus": condition, "on_failure": "pause",
                "soak_secs": 0, "deadline_secs": 86_400,
            });
            let id = fleet.start(&new, settings).await;
            fleet.tick(0).await;
            let view = until_moved(&mut fleet, &id, 0).await;
            assert_eq!(view["prometheus"]["max"], 0.5, "{view}");
            if is_bad {
                assert_eq!(view["state"], "paused", "{view}");
                assert_eq!(view["reason"], "`sum(failed) / 2` is 1; up to 0.5 pass");
            } else {
                assert_eq!(view["batch"], 2, "{view}");
            }
            let asked = server.received();
            let line = "GET /prom/api/v1/query?query=sum%28failed%29+%2F+2 HTTP/1.1";
            assert_eq!(asked[0].line, line);
            fleet.command(&id, "cancel").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_stops_the_batch_at_its_deadline() {
    let mut world = World::new(Database::sqlite()).await;
    world.allow_private_addresses(Timestamp::now);
    let server = Receiver::answering("500 Internal Server Error");
    let (mut fleet, _, new) = Fleet::running(&world, 4).await;
    let settings = json!({
        "skip_gate": true, "on_failure": "pause", "soak_secs": 0, "deadline_secs": 60,
        "prometheus": {"url": server.url(), "query": "up", "min": 1},
    });
    let id = fleet.start(&new, settings).await;
    fleet.tick(0).await;
    let view = until_moved(&mut fleet, &id, 5).await;
    assert_eq!(view["state"], "paused", "{view}");
    let reason = view["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("the gate has too little data: the metrics server"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_waits_for_a_metrics_server_has_that_reason() {
    let mut world = World::new(Database::sqlite()).await;
    world.allow_private_addresses(Timestamp::now);
    let server = Receiver::answering("500 Internal Server Error");
    let (mut fleet, _, new) = Fleet::running(&world, 2).await;
    let settings = json!({
        "skip_gate": true, "on_failure": "pause", "soak_secs": 0, "deadline_secs": 86_400,
        "prometheus": {"url": server.url(), "query": "up", "min": 1},
    });
    let id = fleet.start(&new, settings).await;
    fleet.tick(0).await;
    for index in 0..2 {
        fleet.follow_order(index).await;
    }
    fleet.tick(0).await;
    let answered = async {
        loop {
            let view = fleet.view(&id).await;
            let reason = view["progress"]["waits_for"].as_str().unwrap();
            if reason.starts_with("data for its gate: the metrics server: ") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, answered).await.unwrap();
    fleet.command(&id, "pause").await;
    let view = fleet.view(&id).await;
    assert_eq!(view["progress"]["waits_for"], Value::Null, "{view}");
}

#[tokio::test]
async fn a_condition_needs_a_limit_and_a_public_address() {
    for world in worlds().await {
        let (fleet, _, new) = Fleet::running(&world, 1).await;
        for (condition, field) in [
            (
                json!({"url": "https://127.0.0.1:9090", "query": "up", "min": 1}),
                "prometheus.url",
            ),
            (
                json!({"url": "http://prometheus.test", "query": "up", "min": 1}),
                "prometheus.url",
            ),
            (
                json!({"url": "https://prometheus.test/?a=1", "query": "up", "min": 1}),
                "prometheus.url",
            ),
            (
                json!({"url": "https://prometheus.test", "query": "up"}),
                "prometheus.max",
            ),
            (
                json!({"url": "https://prometheus.test", "query": "", "min": 1}),
                "prometheus.query",
            ),
        ] {
            let body = json!({"bundle": new, "prometheus": condition});
            let refused = fleet.post(ROLLOUTS, body).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{condition}"
            );
            let details = &refused.body["error"]["details"];
            assert_eq!(details[0]["field"], field, "{details}");
        }
    }
}
