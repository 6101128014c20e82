//! Rollouts of bundles that rename routes.

use crate::fleet::Fleet;
use crate::world::worlds;
use serde_json::{Value, json};

const BUNDLES: &str = "/projects/{project}/bundles";

/// Creates counters of two routes: a busy one that refuses half of its requests, and another.
fn served(busy: &str, times: u64, refused: u64) -> Value {
    let counts = |requests: u64, refused: u64| {
        let mut latency = [0; 12];
        latency[3] = requests;
        json!({
            "requests": requests, "errors": 0, "reasons": {}, "latency": latency,
            "statuses": {"200": requests - refused, "403": refused},
        })
    };
    json!({"routes": {
        busy: counts(400 * times, refused * times), "site": counts(1_600 * times, 0),
    }})
}

async fn bundle(fleet: &Fleet<'_>, busy: &str, upstream: &str) -> String {
    let text = format!(
        r#"
        listeners {{ listener "a" {{ address "127.0.0.1:8081" }} }}
        upstreams {{ upstream "back" {{ target "10.0.0.1:80" }}; upstream "front" {{ target "10.0.0.2:80" }} }}
        routes {{
            route "{busy}" {{
                matches {{ path-prefix "/office" }}
                upstream "{upstream}"
                policies {{ allow "192.0.2.0/24" }}
            }}
            route "site" {{ upstream "front" }}
        }}
        "#
    );
    let body = json!({"name": busy, "files": {"proxy.kdl": text}});
    let made = fleet.world.post(BUNDLES, &fleet.operator, body).await;
    assert_eq!(made.text("state"), "signed", "{}", made.body);
    made.text("id")
}

/// Returns the rollout after the first batch has served requests.
async fn first_batch(fleet: &mut Fleet<'_>, upstream: &str, refused: u64) -> Value {
    let old = bundle(fleet, "office", "back").await;
    let new = bundle(fleet, "bureau", upstream).await;
    for node in &mut fleet.nodes {
        node.traffic = served("office", 1, 200);
    }
    fleet.run(&old).await;
    let id = fleet.start(&new, json!({})).await;
    fleet.tick(0).await;
    for index in 0..2 {
        fleet.nodes[index].traffic = served("bureau", 1, refused);
        fleet.follow_order(index).await;
    }
    for index in 2..5 {
        fleet.nodes[index].traffic = served("office", 2, 200);
        fleet.beat(index).await;
    }
    fleet.tick(0).await;
    // The gate uses reports from after the switch.
    for index in 0..2 {
        fleet.nodes[index].traffic = served("bureau", 2, refused);
        fleet.beat(index).await;
    }
    fleet.tick(0).await;
    fleet.view(&id).await
}

#[tokio::test]
async fn a_busy_route_of_another_name_is_compared_with_the_former_one() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 5).await;
        let view = first_batch(&mut fleet, "back", 200).await;
        assert_eq!(
            (&view["state"], &view["batch"]),
            (&json!("running"), &json!(2)),
            "{view}"
        );
        // The same route with another name, and other responses.
        let mut fleet = Fleet::new(&world, 5).await;
        let view = first_batch(&mut fleet, "back", 400).await;
        assert_eq!(view["state"], "rolling_back", "{view}");
        let reason = view["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("route bureau + office: 1000 of 1000"),
            "{reason}"
        );
        // With another upstream, it counts as another route.
        let mut fleet = Fleet::new(&world, 5).await;
        let view = first_batch(&mut fleet, "front", 200).await;
        assert_eq!(view["state"], "rolling_back", "{view}");
        let reason = view["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("route bureau serves 200 of 1000"),
            "{reason}"
        );
    }
}
