//! Verdicts of the gate: figures that pass, figures that fail, and missing data, which fails.
#![expect(clippy::indexing_slicing, reason = "a test may stop")]

#[path = "support/strict_gate.rs"]
mod strict_gate;

use control_domain::{BatchNode, Comparison, Figures, Gate, GateVerdict, Trim, p99_ms};
use control_wire::{NodeId, RouteTraffic, Traffic};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use strict_gate::GATE;
use uuid::Uuid;

fn route(requests: u64, errors: u64, bucket: usize) -> RouteTraffic {
    let mut latency = [0; 12];
    latency[bucket] = requests;
    RouteTraffic {
        requests,
        errors,
        latency,
        ..RouteTraffic::default()
    }
}

fn failing(reason: &str, failures: u64) -> RouteTraffic {
    RouteTraffic {
        reasons: BTreeMap::from([(reason.to_owned(), failures)]),
        ..route(1_000, 0, 2)
    }
}

fn traffic(routes: &[(&str, RouteTraffic)]) -> Traffic {
    let routes = routes.iter().cloned();
    Traffic {
        routes: routes
            .map(|(name, route)| (name.to_owned(), route))
            .collect(),
        ..Traffic::default()
    }
}

fn node(cpu_percent: f64, routes: &[(&str, RouteTraffic)]) -> Figures {
    let mut figures = Figures::default();
    figures.add(cpu_percent, Some(traffic(routes)), None);
    figures
}

fn verdict(batch: Figures, rest: Figures) -> &'static str {
    match GATE.judge(&Comparison { batch, rest }) {
        GateVerdict::Passed => "passed",
        GateVerdict::NoData(_) => "no data",
        GateVerdict::Failed(failure) => match failure {
            control_domain::GateFailure::Errors(_) => "errors",
            control_domain::GateFailure::NewReason(_) => "reason",
            control_domain::GateFailure::Latency(_) => "latency",
            control_domain::GateFailure::Cpu(_) => "cpu",
            control_domain::GateFailure::Statuses(_) => "statuses",
            control_domain::GateFailure::Handshakes(_) => "handshakes",
            control_domain::GateFailure::Mix(_) => "mix",
            control_domain::GateFailure::Size(_) => "size",
            control_domain::GateFailure::Metric(_) => "metric",
        },
    }
}

#[test]
fn a_batch_passes_only_with_proof() {
    let good = || node(10.0, &[("api", route(1_000, 0, 2))]);
    let one = |route: RouteTraffic| node(10.0, &[("api", route)]);
    let silent = || {
        let mut figures = good();
        figures.add(10.0, None, None);
        figures
    };
    let rare = ("rare", route(150, 150, 2));
    let cases = [
        (good(), good(), "passed"),
        (one(route(1_000, 5, 2)), good(), "passed"),
        (one(route(1_000, 20, 2)), good(), "passed"),
        (one(route(1_000, 30, 2)), good(), "errors"),
        (one(route(1_000, 0, 3)), good(), "latency"),
        (one(route(99, 0, 2)), good(), "no data"),
        (good(), one(route(99, 0, 2)), "no data"),
        (Figures::default(), good(), "no data"),
        (good(), Figures::default(), "no data"),
        (silent(), good(), "no data"),
        (node(30.0, &[("api", route(1_000, 0, 2))]), good(), "passed"),
        (node(31.0, &[("api", route(1_000, 0, 2))]), good(), "cpu"),
        (one(failing("connect_refused", 3)), good(), "passed"),
        (one(failing("connect_refused", 30)), good(), "reason"),
        (
            one(failing("connect_refused", 30)),
            one(failing("connect_refused", 30)),
            "passed",
        ),
        // A common reason does not excuse the number of the remaining failures.
        (
            one(failing("connect_refused", 60)),
            one(failing("connect_refused", 3)),
            "reason",
        ),
        (one(failing("route_not_found", 12)), good(), "passed"),
        (one(failing("route_not_found", 30)), good(), "reason"),
        (
            one(failing("route_not_found", 400)),
            one(failing("route_not_found", 3)),
            "reason",
        ),
        (one(failing("client_aborted", 900)), good(), "passed"),
        (one(failing("a reason of tomorrow", 30)), good(), "reason"),
        // One failing route among many requests.
        (
            node(10.0, &[("api", route(100_000, 0, 2)), rare]),
            good(),
            "errors",
        ),
    ];
    for (index, (batch, rest, expected)) in cases.into_iter().enumerate() {
        assert_eq!(verdict(batch, rest), expected, "case {index}");
    }
}

#[test]
fn only_requests_since_the_sample_count() {
    let before = traffic(&[("api", failing("timeout", 40))]);
    let mut now = failing("timeout", 41);
    now.requests += 500;
    now.latency[2] += 500;
    let mut figures = Figures::default();
    figures.add(1.0, Some(traffic(&[("api", now)])), Some(&before));
    assert_eq!(figures.weigh(Trim::Lowest).requests, 500);
    let good = node(1.0, &[("api", route(1_000, 0, 2))]);
    assert_eq!(verdict(figures, good), "passed", "1 failure and not 41");
    // After a restart, all counts of a node are new.
    let mut figures = Figures::default();
    figures.add(
        1.0,
        Some(traffic(&[("api", route(7, 0, 2))])),
        Some(&before),
    );
    assert_eq!(figures.weigh(Trim::Lowest).requests, 7);
}

#[test]
fn a_short_earlier_sample_does_not_shrink_the_standard() {
    let earlier = |requests| Some(traffic(&[("api", route(requests, 0, 2))]));
    for (requests, expected) in [(2, 2_800), (100, 200)] {
        let mut rest = node(10.0, &[("api", route(2_800, 0, 2))]);
        rest.add_earlier(10.0, earlier(requests), GATE.min_requests);
        assert_eq!(rest.weigh(Trim::Lowest).requests, expected, "{requests}");
    }
    // A single node is the whole comparison.
    let mut rest = Figures::default();
    rest.add_earlier(10.0, earlier(2), GATE.min_requests);
    assert_eq!(rest.weigh(Trim::Lowest).requests, 2);
}

#[test]
fn counters_without_sense_stop_at_their_limit() {
    let absurd = || RouteTraffic {
        requests: u64::MAX,
        errors: u64::MAX,
        reasons: BTreeMap::from([("timeout".to_owned(), u64::MAX)]),
        latency: [u64::MAX; 12],
        ..RouteTraffic::default()
    };
    let mut figures = node(f64::MAX, &[("api", absurd())]);
    figures.add(f64::MAX, Some(traffic(&[("api", absurd())])), None);
    assert_eq!(figures.weigh(Trim::Lowest).requests, u64::MAX);
    let good = node(10.0, &[("api", route(1_000, 0, 2))]);
    assert_ne!(verdict(figures, good), "passed");
}

#[test]
fn a_report_of_more_requests_than_a_node_can_serve_is_ignored() {
    let hour = SignedDuration::from_hours(1);
    for (requests, silent) in [(36_000_000_000, 0), (36_000_000_001, 1)] {
        let mut figures = Figures::covering(hour);
        figures.add(1.0, Some(traffic(&[("api", route(requests, 0, 2))])), None);
        assert_eq!(figures.silent, silent, "{requests}");
        assert_eq!(figures.serving(), usize::from(silent == 0), "{requests}");
    }
}

#[test]
fn a_percentile_lies_within_its_bucket() {
    let mut mixed = route(98, 0, 0);
    mixed.latency[4] = 2;
    for (route, expected) in [
        (route(0, 0, 0), None),
        (route(100, 0, 3), Some(9)),
        (mixed, Some(17)),
        (route(1, 0, 11), Some(9_950)),
    ] {
        assert_eq!(p99_ms(&route), expected, "{route:?}");
    }
}

/// A node of a batch that serves as it did before the switch.
fn switched(number: u128) -> BatchNode {
    let served = traffic(&[("api", route(1_000, 1, 2))]);
    BatchNode {
        node: NodeId(Uuid::from_u128(number)),
        cpu_percent: 10.0,
        traffic: Some(served.clone()),
        sample: Some((10.0, Some(served))),
        same_bundle: false,
        has_reported: true,
    }
}

/// A batch of 200 nodes, one of which is `other`.
fn batch_with(other: BatchNode) -> Figures {
    let mut figures = Figures::default();
    for number in 1..200 {
        figures.add_switched(switched(number));
    }
    figures.add_switched(other);
    figures
}

#[test]
fn one_bad_node_of_many_is_found() {
    let rest = || node(10.0, &[("api", route(10_000, 10, 2))]);
    let serving = |route: RouteTraffic| BatchNode {
        traffic: Some(traffic(&[("api", route)])),
        ..switched(200)
    };
    let cases = [
        (switched(200), "passed"),
        (serving(route(1_000, 51, 2)), "passed"),
        (serving(route(1_000, 52, 2)), "errors"),
        (serving(route(99, 99, 2)), "passed"),
        (serving(route(1_000, 1, 3)), "latency"),
        (
            BatchNode {
                cpu_percent: 51.0,
                ..switched(200)
            },
            "cpu",
        ),
        // A node that was equally busy before the bundle was activated.
        (
            BatchNode {
                cpu_percent: 51.0,
                sample: Some((45.0, None)),
                ..switched(200)
            },
            "passed",
        ),
        (serving(route(10, 0, 2)), "no data"),
        // A node that was equally idle before.
        (
            BatchNode {
                sample: Some((10.0, Some(traffic(&[("api", route(200, 0, 2))])))),
                ..serving(route(10, 0, 2))
            },
            "passed",
        ),
        (
            BatchNode {
                has_reported: false,
                ..switched(200)
            },
            "no data",
        ),
        (
            BatchNode {
                traffic: None,
                ..switched(200)
            },
            "no data",
        ),
    ];
    for (index, (other, expected)) in cases.into_iter().enumerate() {
        assert_eq!(verdict(batch_with(other), rest()), expected, "case {index}");
    }
}

#[test]
fn a_bad_node_is_named() {
    let bad = BatchNode {
        traffic: Some(traffic(&[("api", route(1_000, 900, 2))])),
        ..switched(200)
    };
    let id = bad.node;
    let rest = node(10.0, &[("api", route(10_000, 10, 2))]);
    let compared = Comparison {
        batch: batch_with(bad),
        rest,
    };
    let GateVerdict::Failed(failure) = GATE.judge(&compared) else {
        panic!("it passes");
    };
    let text = failure.to_string();
    assert!(
        text.starts_with(&format!("node {id}: 900 of 1000")),
        "{text}"
    );
}

#[test]
fn more_errors_than_requests_are_no_more_than_all_of_them() {
    let gate = Gate {
        min_requests: 1,
        ..GATE
    };
    let liar = || node(10.0, &[("api", route(1, u64::MAX, 2))]);
    let compared = Comparison {
        batch: liar(),
        rest: liar(),
    };
    assert_eq!(gate.judge(&compared), GateVerdict::Passed);
}

/// Creates figures of nodes with responses on one route, in these size classes.
fn sized(nodes: usize, sizes: &[(u8, u64)]) -> Figures {
    let requests = sizes.iter().map(|(_, count)| count).sum();
    let served = RouteTraffic {
        sizes: sizes.iter().copied().collect(),
        ..route(requests, 0, 2)
    };
    let mut figures = Figures::default();
    for _ in 0..nodes {
        figures.add(10.0, Some(traffic(&[("api", served.clone())])), None);
    }
    figures
}

#[test]
fn few_answers_of_another_size_stop_a_batch_and_a_factor_of_four_does_not() {
    let usual = [(3, 120), (9, 120)];
    for (batch, rest, expected) in [
        // Empty responses.
        (vec![(0, 240)], &usual, "size"),
        (vec![(3, 120), (9, 120)], &[(0, 120), (1, 120)], "size"),
        (vec![(9, 240)], &usual, "size"),
        (vec![(3, 240)], &usual, "size"),
        (vec![(6, 240)], &usual, "size"),
        // Responses of 5 and of 7 bytes are in the same class.
        (vec![(3, 124), (9, 116)], &usual, "passed"),
        // Compressed to a quarter or more.
        (vec![(1, 120), (7, 120)], &usual, "passed"),
        (vec![(5, 120), (11, 120)], &usual, "passed"),
        // Slightly more empty responses.
        (vec![(0, 60), (3, 90), (9, 90)], &usual, "passed"),
        // Nodes of an earlier release do not count sizes.
        (vec![], &usual, "no data"),
    ] {
        let verdict = verdict(sized(2, &batch), sized(4, rest));
        assert_eq!(verdict, expected, "{batch:?} beside {rest:?}");
    }
    let earlier = Comparison {
        batch: node(10.0, &[("api", route(120, 0, 2))]),
        rest: sized(4, &usual),
    };
    assert_eq!(GATE.judge(&earlier), GateVerdict::Passed);
}

/// Few requests of a route give no verdict, and a reason to wait for more of them.
#[test]
fn a_difference_that_is_not_sure_is_a_suspicion() {
    let compared = |requests: u64| {
        let by_name = |nodes: usize, class: u8, count: u64| {
            let rare = RouteTraffic {
                sizes: BTreeMap::from([(class, count)]),
                ..route(count, 0, 2)
            };
            let mut figures = Figures::default();
            for _ in 0..nodes {
                let routes = [("api", route(900, 0, 2)), ("rare", rare.clone())];
                figures.add(10.0, Some(traffic(&routes)), None);
            }
            figures
        };
        Comparison {
            batch: by_name(2, 0, requests),
            rest: by_name(4, 3, requests),
        }
    };
    let suspected = compared(40);
    assert_eq!(GATE.judge(&suspected), GateVerdict::Passed);
    let text = GATE.explain(&suspected);
    let expected = "too few requests to be sure: route rare: answers are smaller";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(GATE.suspicion(&compared(12)), None, "a dozen is none");
    assert!(matches!(GATE.judge(&compared(120)), GateVerdict::Failed(_)));
}

#[test]
fn a_verdict_about_sizes_names_them() {
    let empty = Comparison {
        batch: sized(2, &[(0, 120)]),
        rest: sized(4, &[(3, 120)]),
    };
    let text = GATE.explain(&empty);
    assert_eq!(
        text,
        "route api: answers are smaller: 1000 of 1000 among 120 requests of the batch, 0 of 1000 among 240 on the \
         others have 0 bytes, or up to four times as many on the others; up to 300 of 1000 pass"
    );
}
