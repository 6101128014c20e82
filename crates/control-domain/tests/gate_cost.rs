//! Cost of evaluating a gate with many nodes.
#![expect(clippy::disallowed_methods, reason = "a test measures time")]

use control_domain::{BatchNode, Comparison, Figures, Gate, GateVerdict, RouteNames};
use control_wire::{ConnectionTraffic, NodeId, RouteTraffic, Traffic};
use std::time::{Duration, Instant};
use uuid::Uuid;

const NODES: u32 = 2_000;
const ROUTES: u32 = 20;
/// Limit for a build without optimizations on a busy machine.
const MAX_DURATION: Duration = Duration::from_secs(10);

/// Creates counters of a node, with every kind of count.
fn traffic(number: u32) -> Traffic {
    let routes = (0..ROUTES).map(|index| {
        let requests = u64::from(1_000 + (number * 7 + index * 13) % 50);
        let mut route = RouteTraffic {
            requests,
            errors: 2,
            latency_us: Some(requests * 4_000),
            bytes_out: Some(requests * 500),
            ..RouteTraffic::default()
        };
        route.latency[2] = requests;
        route
            .statuses
            .extend([(200, requests - 22), (404, 12), (302, 8), (500, 2)]);
        route.reasons.extend([
            ("route_not_found".to_owned(), 12),
            ("timeout".to_owned(), 2),
        ]);
        route
            .sizes
            .extend((4..14).map(|class| (class, requests / 10)));
        (format!("route-{index}"), route)
    });
    Traffic {
        routes: routes.collect(),
        connections: Some(ConnectionTraffic {
            accepted: 2_000,
            handshakes_completed: 900,
            handshakes_failed: 3,
            proxy_headers_failed: 0,
        }),
    }
}

#[test]
fn a_step_with_two_thousand_nodes_is_short() {
    let reports: Vec<Traffic> = (0..NODES).map(traffic).collect();
    let (batch, rest) = reports.split_at(reports.len() / 2);
    let batch_node = |(number, now): (u128, &Traffic)| BatchNode {
        node: NodeId(Uuid::from_u128(number)),
        // Hotter than the rest, as it was before: each node is left out in turn.
        cpu_percent: 90.0,
        sample: Some((90.0, Some(now.clone()))),
        traffic: Some(now.clone()),
        same_bundle: false,
        has_reported: true,
    };
    let batch: Vec<BatchNode> = (0..).zip(batch).map(batch_node).collect();
    let rest = rest.to_vec();
    // A bundle that splits half of the routes in two.
    let pairs = (0..ROUTES / 2).map(|index| {
        let part = index + ROUTES / 2;
        (format!("route-{index}"), format!("route-{part}"))
    });
    let names = RouteNames::new(&pairs.collect());
    let began = Instant::now();
    let mut compared = Comparison {
        batch: Figures::default(),
        rest: Figures::default(),
    };
    for batch_node in batch {
        compared.batch.add_switched(batch_node);
    }
    for now in rest {
        compared.rest.add(20.0, Some(now), None);
    }
    let compared = compared.joining(&names);
    let verdict = Gate::DEFAULT.judge(&compared);
    let suspicion = Gate::DEFAULT.suspicion(&compared);
    let elapsed = began.elapsed();
    println!(
        "a step of the gate with {NODES} nodes of {ROUTES} routes: {} ms",
        elapsed.as_millis()
    );
    assert_eq!((verdict, suspicion), (GateVerdict::Passed, None));
    assert!(elapsed < MAX_DURATION, "{elapsed:?}");
}
