//! Requests for paths that do not exist, in addition to normal traffic or instead of it.
#![expect(clippy::indexing_slicing, reason = "a test may stop")]

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
    timed(routes, 3, 8_000)
}

/// Counters of a node with requests of so many microseconds, within this bucket.
fn timed(routes: Routes<'_>, bucket: usize, us: u64) -> Traffic {
    let routes = routes.iter().map(|(name, requests, not_found)| {
        let mut latency = [0; 12];
        latency[bucket] = *requests;
        let route = RouteTraffic {
            requests: *requests,
            latency,
            statuses: BTreeMap::from([(200, requests - not_found), (404, *not_found)]),
            sizes: BTreeMap::from([(12, requests - not_found), (4, *not_found)]),
            latency_us: Some(requests * us),
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
    compare(traffic(batch), &traffic(USUAL))
}

/// Compares a batch of one node with four nodes and a time before that have the usual counters.
fn compare(batch: Traffic, usual: &Traffic) -> Comparison {
    let mut own = Figures::default();
    own.add_switched(BatchNode {
        node: NodeId(Uuid::from_u128(1)),
        cpu_percent: 10.0,
        traffic: Some(batch),
        sample: Some((10.0, Some(usual.clone()))),
        same_bundle: false,
        has_reported: true,
    });
    let mut rest = Figures::default();
    for _ in 0..4 {
        rest.add(10.0, Some(usual.clone()), None);
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

/// Clients that repeat their requests of a small route add many 404s for each missing response.
#[test]
fn clients_that_retry_a_broken_route_are_no_scanner() {
    let usual: Routes<'_> = &[("site", 3_000, 30), ("item", 1_800, 0), ("docs", 200, 2)];
    for (requests, not_found) in [(201, 201), (600, 600), (2_000, 2_000), (700, 620)] {
        let batch: Routes<'_> = &[
            ("site", 3_000, 30),
            ("item", 1_800, 0),
            ("docs", requests, not_found),
        ];
        let compared = compare(traffic(batch), &traffic(usual));
        let verdict = Gate::DEFAULT.judge(&compared);
        let is_stopped = matches!(verdict, GateVerdict::Failed(_));
        assert!(is_stopped, "{not_found} of {requests}: {verdict:?}");
    }
}

/// The durations of additional requests are not known apart from the rest.
#[test]
fn durations_of_a_scanner_stop_no_batch() {
    let scanned: Routes<'_> = &[
        ("site", 1_000, 30),
        ("docs", 1_950, 1_852),
        ("item", 200, 0),
        ("office", 300, 0),
    ];
    // Within a bucket from 25 to 50 ms, with its middle at 37.5 ms.
    let usual = timed(USUAL, 5, 27_000);
    let as_quick = timed(scanned, 5, 27_000);
    assert_eq!(
        Gate::DEFAULT.judge(&compare(as_quick.clone(), &usual)),
        GateVerdict::Passed
    );
    let mut slow_scanner = as_quick.clone();
    if let Some(docs) = slow_scanner.routes.get_mut("docs") {
        docs.latency = [0; 12];
        docs.latency[5] = 100;
        docs.latency[8] = 1_850;
        docs.latency_us = Some(100 * 27_000 + 1_850 * 400_000);
    }
    assert_eq!(
        Gate::DEFAULT.judge(&compare(slow_scanner, &usual)),
        GateVerdict::Passed
    );
    // Other routes are compared as before, and so is their sum.
    for name in ["site", "item", "office"] {
        let mut slower = as_quick.clone();
        if let Some(route) = slower.routes.get_mut(name) {
            route.latency_us = Some(route.requests * 45_000);
        }
        let verdict = Gate::DEFAULT.judge(&compare(slower, &usual));
        let is_slower = matches!(verdict, GateVerdict::Failed(_));
        assert!(is_slower, "{name}: {verdict:?}");
    }
}
