//! Limits on the size of nodes' reports per time.

use crate::world::{Answer, Credential, World, sample, worlds};
use axum::http::StatusCode;
use control_testkit::Database;
use serde_json::{Value, json};

const HEARTBEAT: &str = "/nodes/{node}/heartbeat";
const EVENTS: &str = "/nodes/{node}/events";

/// Creates a heartbeat of about 450 KiB, with the maximum number of routes.
fn largest(count: u64) -> Value {
    let name = "n".repeat(200);
    let reasons: serde_json::Map<String, Value> = (0..15)
        .map(|number| (format!("reason_{number:02}_with_a_long_name"), json!(count)))
        .collect();
    let latency = [count; 12];
    let route = json!({"requests": count, "errors": 0, "latency": latency, "reasons": reasons});
    let routes = (0..500).map(|number| (format!("{name}{number}"), route.clone()));
    let routes: serde_json::Map<String, Value> = routes.collect();
    json!({"health": {"cpu_percent": 1.0}, "traffic": {"routes": routes}})
}

/// Sends the largest heartbeats until the limit; returns their number, and the error.
async fn spend(world: &World, by: &Credential) -> (u64, Answer) {
    for count in 1..100 {
        let answer = world.post(HEARTBEAT, by, largest(count)).await;
        if answer.status != StatusCode::OK {
            return (count, answer);
        }
    }
    unreachable!("no heartbeat was refused");
}

#[tokio::test]
async fn a_node_that_sends_too_much_gets_retry_after() {
    for world in worlds().await {
        let (sent, refused) = spend(&world, &world.node_key).await;
        assert!((5..20).contains(&sent), "{sent}");
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.code(), "RATE_LIMIT_EXCEEDED");
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert_eq!(message, "Rate limit exceeded: bytes of reports of the node");
        let wait: u64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=30).contains(&wait), "{wait}");
        assert_eq!(refused.body["error"]["retry_after"], json!(wait));
        let events = world.post(EVENTS, &world.node_key, sample(EVENTS)).await;
        assert_eq!(events.status, StatusCode::TOO_MANY_REQUESTS, "one budget");
    }
}

#[tokio::test]
async fn a_node_without_bytes_leaves_the_rest_of_its_organization_theirs() {
    let mut world = World::new(Database::sqlite()).await;
    spend(&world, &world.node_key).await;
    let (node, key) = world.new_node(world.tenant()).await;
    world.node = node;
    let answer = world.post(HEARTBEAT, &key, largest(1)).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
}

#[tokio::test]
async fn the_smallest_heartbeats_end_at_the_rate_of_requests_first() {
    let world = World::new(Database::sqlite()).await;
    let mut answer = world
        .post(HEARTBEAT, &world.node_key, sample(HEARTBEAT))
        .await;
    let mut sent = 1;
    while answer.status == StatusCode::OK {
        answer = world
            .post(HEARTBEAT, &world.node_key, sample(HEARTBEAT))
            .await;
        sent += 1;
    }
    assert!(60 < sent, "{sent}");
    assert_eq!(answer.body["error"]["message"], "Rate limit exceeded");
}
