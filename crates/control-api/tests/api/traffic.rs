//! Number of requests by time step: from heartbeats to the interface.

use crate::world::worlds;
use axum::http::{Method, StatusCode};
use control_domain::{CountedRequests, RouteCounts, StepTraffic, TrafficPeriod};
use jiff::SignedDuration;
use serde_json::{Value, json};
use uuid::Uuid;

const TRAFFIC: &str = "/projects/{project}/traffic";

#[tokio::test]
async fn counted_heartbeats_write_one_row_each_and_a_step_is_written_when_it_is_over() {
    for world in worlds().await {
        let path = format!("/nodes/{}/heartbeat", world.node);
        let beat = async |requests: u64| {
            let traffic = json!({"routes": {"api": {
                "requests": requests, "errors": requests / 100, "reasons": {},
                "latency": [0, 0, requests, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            }}});
            let body = json!({"health": {"cpu_percent": 1}, "traffic": traffic});
            let before = world.store.rows_written();
            let beat = world.post(&path, &world.node_key, body).await;
            assert_eq!(beat.status, StatusCode::OK, "{}", beat.body);
            world.store.rows_written() - before
        };
        let started = world.app.now();
        beat(1_000).await;
        for requests in [1_100, 1_250, 1_300] {
            let rows = beat(requests).await;
            assert_eq!(rows, 1, "its node's row, as without counting");
        }
        let before = world.store.rows_written();
        world.app.write_traffic(started).await.unwrap();
        assert_eq!(world.store.rows_written(), before, "the step is not over");
        let later = world.app.now() + SignedDuration::from_mins(6);
        world.app.write_traffic(later).await.unwrap();
        let mut tx = world.store.read().await.unwrap();
        let mut window = TrafficPeriod::Hour.window(later);
        window.to = later;
        let steps = tx.project_traffic(world.project, window).await.unwrap();
        let counted = steps.iter().map(|step| step.traffic().unwrap());
        let counted: Vec<StepTraffic> = counted.collect();
        let requests = counted.iter().map(|step| step.routes.total().requests);
        assert_eq!(requests.sum::<u64>(), 300);
        assert!(
            counted
                .iter()
                .all(|step| step.nodes.contains_key(&world.node))
        );
    }
}

#[tokio::test]
async fn a_period_is_shown_by_route_node_and_label_with_the_week_before() {
    for world in worlds().await {
        let key = world.full_key().await;
        let node = format!("/projects/{{project}}/nodes/{}", world.node);
        let labels = json!({"labels": {"zone": "eu"}});
        world.send(&Method::PATCH, &node, &key, &labels, &[]).await;
        let empty = world.get(TRAFFIC, &key).await;
        assert_eq!(empty.status, StatusCode::OK, "{}", empty.body);
        assert_eq!(empty.body["step_secs"], 300);
        assert_eq!(empty.body["steps"].as_array().unwrap().len(), 12);
        assert_eq!(empty.body["total"]["week_before"], Value::Null);
        let mut counted = CountedRequests::default();
        (counted.requests, counted.errors, counted.latency[2]) = (200, 3, 200);
        let mut step = StepTraffic::default();
        let routes = [("api".to_owned(), counted)].into();
        step.count(world.node, &RouteCounts { routes });
        let window = TrafficPeriod::Day.window(world.app.now());
        let mut tx = world.store.begin().await.unwrap();
        for at in [window.from, window.week_before().from] {
            tx.add_traffic(world.project, at, &step).await.unwrap();
        }
        tx.commit().await.unwrap();
        let day = world
            .get(&format!("{TRAFFIC}?period=day&by=zone"), &key)
            .await;
        let figures = json!({"requests": 200, "errors": 3, "p99_ms": 4});
        let figures = json!({"counted": figures, "week_before": figures});
        assert_eq!(day.body["total"], figures, "{}", day.body);
        assert_eq!(day.body["steps"][0]["counted"], figures["counted"]);
        assert_eq!(day.body["steps"][0]["week_before"], figures["counted"]);
        assert_eq!(day.body["steps"][1]["counted"], Value::Null);
        for (list, name) in [("routes", "api"), ("groups", "eu")] {
            let expected = json!([{"name": name, "figures": figures}]);
            assert_eq!(day.body[list], expected, "{list}");
        }
        assert_eq!(day.body["nodes"][0]["id"], json!(world.node));
        assert_eq!(day.body["nodes"][0]["figures"], figures);
        for query in ["period=year", "since=1"] {
            let wrong = world.get(&format!("{TRAFFIC}?{query}"), &key).await;
            assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{query}");
        }
    }
}

#[tokio::test]
async fn traffic_past_its_retention_is_deleted_by_housekeeping() {
    for world in worlds().await {
        let mut counted = CountedRequests::default();
        (counted.requests, counted.latency[0]) = (1, 1);
        let mut step = StepTraffic::default();
        let routes = [("api".to_owned(), counted)].into();
        step.count(world.node, &RouteCounts { routes });
        let now = world.app.now();
        let mut tx = world.store.begin().await.unwrap();
        for days in [1, 10, 16] {
            let at = now - SignedDuration::from_hours(24 * days);
            tx.add_traffic(world.project, at, &step).await.unwrap();
        }
        tx.commit().await.unwrap();
        world.app.clean_up(Uuid::nil(), now).await.unwrap();
        let mut tx = world.store.read().await.unwrap();
        let rows = tx.count_rows().await.unwrap();
        let left = rows.iter().find(|(table, _)| *table == "project_traffic");
        // Kept: an hour and six hours of the day before, and six hours of ten days before.
        assert_eq!(left.unwrap().1, 3);
    }
}
