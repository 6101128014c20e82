//! Requests for paths that do not exist, in addition to normal traffic or instead of it.

use control_domain::{BatchNode, Comparison, Figures, Gate, GateVerdict};
use control_wire::{NodeId, RouteTraffic, Traffic};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Name of each route, its number of responses, and of those with status 404.
type Routes<'r> = &'r [(&'r str, u64, u64)];

const USUAL: Routes<'_> = &[
    ("site", 1_000, 30),
    ("docs", 100, 2),
    ("item", 200, 0),
    ("office", 300, 0),
];

fn traffic(routes: Routes<'_>) -> Traffic {
    let routes = routes.iter().map(|(name, requests, not_found)| {
        let mut latency = [0; 12];
        latency[3] = *requests;
        let route = RouteTraffic {
            requests: *requests,
            latency,
            statuses: BTreeMap::from([(200, requests - not_found), (404, *not_found)]),
            sizes: BTreeMap::from([(12, requests - not_found), (4, *not_found)]),
            latency_us: Some(requests * 8_000),
            ..RouteTraffic::default()
        };
        ((*name).to_owned(), route)
    });
    Traffic {
        routes: routes.collect(),
        ..Traffic::default()
    }
}

/// Compares a batch of one node with four nodes, and with its own time before the switch.
fn compared(batch: Routes<'_>) -> Comparison {
    let mut own = Figures::default();
    own.add_switched(BatchNode {
        node: NodeId(Uuid::from_u128(1)),
        cpu_percent: 10.0,
        traffic: Some(traffic(batch)),
        sample: Some((10.0, Some(traffic(USUAL)))),
        same_bundle: false,
        has_reported: true,
    });
    let mut rest = Figures::default();
    for _ in 0..4 {
        rest.add(10.0, Some(traffic(USUAL)), None);
    }
    Comparison { batch: own, rest }
}

fn is_stopped(batch: Routes<'_>) -> bool {
    let compared = compared(batch);
    let verdict = Gate::DEFAULT.judge(&compared);
    matches!(verdict, GateVerdict::Failed(_))
}

#[test]
fn a_scanner_stops_no_batch_and_is_named() {
    let on_a_small_route: Routes<'_> = &[
        ("site", 1_000, 30),
        ("docs", 950, 852),
        ("item", 200, 0),
        ("office", 300, 0),
    ];
    let without_a_route: Routes<'_> = &[
        ("site", 990, 31),
        ("docs", 104, 2),
        ("item", 190, 0),
        ("office", 310, 0),
        ("unmatched", 400, 400),
    ];
    let on_the_largest_route: Routes<'_> = &[
        ("site", 1_600, 630),
        ("docs", 100, 2),
        ("item", 200, 0),
        ("office", 300, 0),
    ];
    for batch in [on_a_small_route, without_a_route, on_the_largest_route] {
        assert!(!is_stopped(batch), "{batch:?}");
    }
    let text = Gate::DEFAULT.explain(&compared(on_a_small_route));
    let expected =
        "850 requests on route docs were answered 404 in addition to as many others as usual";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn requests_that_are_answered_404_in_place_of_another_status_stop_a_batch() {
    let all_of_a_route: Routes<'_> = &[
        ("site", 1_000, 30),
        ("docs", 100, 2),
        ("item", 200, 0),
        ("office", 300, 300),
    ];
    let half_of_a_route: Routes<'_> = &[
        ("site", 1_000, 30),
        ("docs", 100, 2),
        ("item", 200, 0),
        ("office", 300, 150),
    ];
    let of_the_largest_route: Routes<'_> = &[
        ("site", 1_000, 230),
        ("docs", 100, 2),
        ("item", 200, 0),
        ("office", 300, 0),
    ];
    let moved_to_another_route: Routes<'_> = &[
        ("site", 1_150, 180),
        ("docs", 100, 2),
        ("item", 50, 0),
        ("office", 300, 0),
    ];
    let moved_to_none: Routes<'_> = &[
        ("site", 1_000, 30),
        ("docs", 100, 2),
        ("item", 200, 0),
        ("unmatched", 300, 300),
    ];
    let of_all_routes: Routes<'_> = &[
        ("site", 1_000, 230),
        ("docs", 100, 22),
        ("item", 200, 40),
        ("office", 300, 60),
    ];
    for batch in [
        all_of_a_route,
        half_of_a_route,
        of_the_largest_route,
        moved_to_another_route,
        moved_to_none,
        of_all_routes,
    ] {
        assert!(is_stopped(batch), "{batch:?}");
    }
}

/// If a bundle does both, the missing responses decide.
#[test]
fn a_scanner_hides_no_answers_that_are_missing() {
    let both: Routes<'_> = &[
        ("site", 1_000, 30),
        ("docs", 600, 502),
        ("item", 200, 0),
        ("office", 300, 300),
    ];
    assert!(is_stopped(both));
}
