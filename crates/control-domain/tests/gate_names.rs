//! The gate of a bundle that renames, splits or joins routes.

use control_domain::{BatchNode, Comparison, Figures, Gate, GateVerdict, RouteNames};
use control_wire::{NodeId, RouteTraffic, Traffic};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

fn route(requests: u64, refused: u64) -> RouteTraffic {
    let mut latency = [0; 12];
    latency[2] = requests;
    RouteTraffic {
        requests,
        latency,
        latency_us: Some(requests * 4_000),
        bytes_out: Some(requests * 100),
        statuses: BTreeMap::from([(200, requests - refused), (403, refused)]),
        sizes: BTreeMap::from([(8, requests)]),
        ..RouteTraffic::default()
    }
}

fn traffic(routes: &[(&str, u64, u64)]) -> Traffic {
    let routes = routes.iter().map(|(name, requests, refused)| {
        let counts = route(*requests, *refused);
        ((*name).to_owned(), counts)
    });
    Traffic {
        routes: routes.collect(),
        ..Traffic::default()
    }
}

/// Compares three nodes with the previous bundle, and two that have switched.
fn compared(before: &[(&str, u64, u64)], after: &[(&str, u64, u64)]) -> Comparison {
    let (mut batch, mut rest) = (Figures::default(), Figures::default());
    for _ in 0..3 {
        rest.add(10.0, Some(traffic(before)), None);
    }
    for number in 0..2 {
        batch.add_switched(BatchNode {
            node: NodeId(Uuid::from_u128(number)),
            cpu_percent: 10.0,
            traffic: Some(traffic(after)),
            sample: Some((10.0, Some(traffic(before)))),
            same_bundle: false,
            has_reported: true,
        });
    }
    Comparison { batch, rest }
}

fn names(pairs: &[(&str, &str)]) -> RouteNames {
    let pairs = pairs
        .iter()
        .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()));
    RouteNames::new(&pairs.collect::<BTreeSet<_>>())
}

const BEFORE: [(&str, u64, u64); 2] = [("office", 2_000, 1_000), ("site", 8_000, 0)];

#[test]
fn renamed_routes_do_not_change_the_mix() {
    let cases = [
        (
            vec![("bureau", 2_000, 1_000), ("site", 8_000, 0)],
            vec![("office", "bureau")],
        ),
        (
            vec![
                ("office", 900, 450),
                ("part", 1_100, 550),
                ("site", 8_000, 0),
            ],
            vec![("office", "part")],
        ),
        (
            vec![("all", 10_000, 1_000)],
            vec![("office", "all"), ("site", "all")],
        ),
    ];
    for (after, pairs) in cases {
        let found = compared(&BEFORE, &after);
        let GateVerdict::Failed(failure) = Gate::DEFAULT.judge(&found) else {
            panic!("the mix differs: {after:?}");
        };
        assert!(failure.to_string().contains("serves"), "{failure}");
        let joined = found.joining(&names(&pairs));
        assert_eq!(
            Gate::DEFAULT.judge(&joined),
            GateVerdict::Passed,
            "{after:?}"
        );
    }
}

#[test]
fn a_renamed_route_is_compared_with_the_former_one() {
    let after = |requests, refused| [("bureau", requests, refused), ("site", 8_000, 0)];
    let pairs = [("office", "bureau")];
    for (after, expected) in [
        // All requests are refused.
        (after(2_000, 2_000), "route bureau + office: 1000 of 1000"),
        // No request is refused.
        (after(2_000, 0), "route bureau + office: 0 of 1000"),
        // No route of the group answers most requests.
        (after(300, 150), "route bureau + office serves 36 of 1000"),
    ] {
        let joined = compared(&BEFORE, &after).joining(&names(&pairs));
        let GateVerdict::Failed(failure) = Gate::DEFAULT.judge(&joined) else {
            panic!("it passes: {after:?}");
        };
        assert!(failure.to_string().starts_with(expected), "{failure}");
    }
}

#[test]
fn routes_without_common_requests_are_not_joined() {
    let pairs = [("a", "b"), ("c", "d"), ("d", "e"), ("x", "y")];
    let mut before: Vec<(&str, u64, u64)> = ["a", "c", "x"].map(|name| (name, 1_000, 0)).to_vec();
    before.push(("z", 1_000, 0));
    let after = ["b", "e", "y", "z"].map(|name| (name, 1_000, 0));
    let joined = compared(&before, &after).joining(&names(&pairs));
    assert_eq!(Gate::DEFAULT.judge(&joined), GateVerdict::Passed);
    let fewer = [
        ("b", 1_000, 0),
        ("e", 10, 0),
        ("y", 1_000, 0),
        ("z", 1_000, 0),
    ];
    let joined = compared(&before, &fewer).joining(&names(&pairs));
    let GateVerdict::Failed(failure) = Gate::DEFAULT.judge(&joined) else {
        panic!("it passes");
    };
    assert!(failure.to_string().contains("c + d + e"), "{failure}");
    assert!(names(&[]).is_empty());
}
