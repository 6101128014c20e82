//! Number of requests by time step, on both databases.

use crate::stores::{NOW, TestStore, node, org, project, stores};
use control_domain::{CountedRequests, RouteCounts, StepTraffic, TrafficStep, TrafficWindow};
use control_store::{Transaction, WrittenHeartbeat};
use control_wire::{BundleId, Health, HeartbeatRequest, NodeId, NodeStatus, ProjectId, Traffic};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

async fn project_with_node(store: &TestStore) -> (Transaction, ProjectId, NodeId) {
    let mut tx = store.begin().await.unwrap();
    let project = project(&org("a"), "edge");
    tx.insert_org(&org("a")).await.unwrap();
    tx.insert_project(&project).await.unwrap();
    let node = node(&project, "n");
    tx.insert_node(&node, "n").await.unwrap();
    (tx, project.id, node.id)
}

/// Creates counts of one node and route.
fn requests(node: NodeId, route: &str, requests: u64) -> StepTraffic {
    let counted = CountedRequests {
        requests,
        ..CountedRequests::default()
    };
    let mut step = StepTraffic::default();
    let routes = RouteCounts {
        routes: [(route.to_owned(), counted)].into(),
    };
    step.count(node, &routes);
    step
}

async fn sums(tx: &mut Transaction, project: ProjectId, window: TrafficWindow) -> Vec<u64> {
    let steps = tx.project_traffic(project, window).await.unwrap();
    let traffic = steps.iter().map(|step| step.traffic().unwrap());
    traffic.map(|step| step.routes.total().requests).collect()
}

#[tokio::test]
async fn requests_are_added_to_the_steps_of_every_length() {
    for store in stores().await {
        let (mut tx, project, node) = project_with_node(&store).await;
        let begin = TrafficStep::SixHours.begin(NOW);
        let at = |secs: i64| begin + SignedDuration::from_secs(secs);
        for (secs, route, count) in [(10, "a", 1), (290, "b", 2), (300, "a", 4), (3_600, "a", 8)] {
            let traffic = requests(node, route, count);
            tx.add_traffic(project, at(secs), &traffic).await.unwrap();
        }
        for (step, expected) in [
            (TrafficStep::FiveMinutes, vec![3, 4, 8]),
            (TrafficStep::Hour, vec![7, 8]),
            (TrafficStep::SixHours, vec![15]),
        ] {
            let window = TrafficWindow {
                step,
                from: begin,
                to: at(7_200),
            };
            assert_eq!(sums(&mut tx, project, window).await, expected, "{step:?}");
            let totals = tx.project_traffic_totals(project, window).await.unwrap();
            let requests = totals
                .iter()
                .map(|total| total.requests().unwrap().requests);
            assert_eq!(requests.collect::<Vec<_>>(), expected, "{step:?}");
        }
        let gone = ProjectId(Uuid::from_u128(99));
        let traffic = requests(node, "a", 1);
        tx.add_traffic(gone, begin, &traffic).await.unwrap();
    }
}

#[tokio::test]
async fn steps_past_their_time_are_deleted_in_pieces() {
    for store in stores().await {
        let (mut tx, project, node) = project_with_node(&store).await;
        let begin = TrafficStep::SixHours.begin(NOW);
        for step in 0..4 {
            let at = begin + SignedDuration::from_secs(300 * step);
            let traffic = requests(node, "a", 1);
            tx.add_traffic(project, at, &traffic).await.unwrap();
        }
        let bytes = tx.traffic_bytes().await.unwrap();
        assert!(0 < bytes);
        let before = begin + SignedDuration::from_secs(900);
        let (mut deleted, step) = (Vec::new(), TrafficStep::FiveMinutes);
        for _ in 0..3 {
            deleted.push(tx.purge_traffic(step, before, 2).await.unwrap());
        }
        assert_eq!(deleted, [2, 1, 0]);
        assert!(tx.traffic_bytes().await.unwrap() < bytes);
        let window = TrafficWindow {
            step: TrafficStep::Hour,
            from: begin,
            to: before,
        };
        assert_eq!(sums(&mut tx, project, window).await, [4], "hours stay");
    }
}

/// Creates a heartbeat with this number of requests since the bundle became active.
fn serving(bundle: u128, requests: u64) -> HeartbeatRequest {
    let traffic = json!({"routes": {"api": {
        "requests": requests, "errors": requests / 10, "reasons": {},
        "latency": [0, requests, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    }}});
    HeartbeatRequest {
        health: Health { cpu_percent: 12.5 },
        version: None,
        status: Some(NodeStatus {
            active: Some(BundleId(Uuid::from_u128(bundle))),
            ..NodeStatus::default()
        }),
        traffic: Some(serde_json::from_value(traffic).unwrap()),
        instance: None,
    }
}

/// Returns the number of requests that a heartbeat adds.
fn counted(written: Option<WrittenHeartbeat>, heartbeat: &HeartbeatRequest) -> u64 {
    let Some(replaced) = written.unwrap().replaced else {
        return 0;
    };
    let reported = RouteCounts::from(heartbeat.traffic.as_ref().unwrap_or(&Traffic::default()));
    let counted = replaced.requests_until(&reported).unwrap();
    counted.total().requests
}

#[tokio::test]
async fn requests_of_a_heartbeat_count_from_the_previous_counters() {
    for store in stores().await {
        let (mut tx, _, node) = project_with_node(&store).await;
        let at = |secs: i64| -> Timestamp { NOW + SignedDuration::from_secs(secs) };
        for (secs, bundle, requests, expected, why) in [
            (10, 1, 1_000, 0, "the first one: older counters"),
            (40, 1, 1_100, 100, "since the last one"),
            (70, 1, 1_100, 0, "none"),
            (100, 2, 7, 7, "another bundle begins at zero"),
            (130, 2, 3, 3, "counters that are lower began again"),
            (2_000, 2, 900, 0, "the node was silent"),
            (2_030, 2, 901, 1, "the silence is over"),
        ] {
            let heartbeat = serving(bundle, requests);
            let written = tx
                .write_heartbeat(node, &heartbeat, at(secs))
                .await
                .unwrap();
            assert_eq!(counted(written, &heartbeat), expected, "{secs}: {why}");
        }
    }
}
