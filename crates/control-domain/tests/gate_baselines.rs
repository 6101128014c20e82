//! Sides with few requests, and batches that were unlike the other nodes before their rollout.
#![expect(clippy::indexing_slicing, reason = "a test may stop")]

use control_domain::{BatchNode, Comparison, Figures, Gate, GateVerdict};
use control_wire::{NodeId, RouteTraffic, Traffic};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Counters of a node with one route; all requests take between 5 and 10 ms.
fn served(requests: u64, not_found: u64) -> Traffic {
    timed(requests, not_found, 3)
}

/// Like [`served`], with requests in this bucket of durations.
fn timed(requests: u64, not_found: u64, bucket: usize) -> Traffic {
    let mut latency = [0; 12];
    latency[bucket] = requests;
    let route = RouteTraffic {
        requests,
        latency,
        statuses: BTreeMap::from([(200, requests - not_found), (404, not_found)]),
        ..RouteTraffic::default()
    };
    Traffic {
        routes: BTreeMap::from([("api".to_owned(), route)]),
        ..Traffic::default()
    }
}

/// A side of nodes with these counters.
fn side(nodes: &[Traffic]) -> Figures {
    let mut figures = Figures::default();
    for node in nodes {
        figures.add(10.0, Some(node.clone()), None);
    }
    figures
}

/// CPU use and counters of a node.
type State = (f64, Traffic);

/// A batch of one node, before and after the switch.
fn switched(before: State, after: State) -> Figures {
    batch(&[(before, after)])
}

/// A batch of nodes, each before and after the switch.
fn batch(nodes: &[(State, State)]) -> Figures {
    let mut figures = Figures::default();
    for (number, (before, after)) in (1..).zip(nodes) {
        figures.add_switched(BatchNode {
            node: NodeId(Uuid::from_u128(number)),
            cpu_percent: after.0,
            traffic: Some(after.1.clone()),
            sample: Some((before.0, Some(before.1.clone()))),
            same_bundle: false,
            has_reported: true,
        });
    }
    figures
}

#[test]
fn a_batch_that_no_comparison_covers_does_not_pass() {
    let broken = || served(1_000, 600);
    let good = || served(1_000, 0);
    let cases: [(&[Traffic], &[Traffic]); 5] = [
        // The minimum is 100. Without the extreme nodes, 60 requests of the rest are left.
        (&[broken()], &[served(60, 0), served(60, 0), served(60, 0)]),
        (&[broken()], &[served(99, 0), served(99, 0)]),
        // Each of two nodes weighs as the one with fewer requests, and one of them is left out.
        (&[served(50, 50), served(5_000, 5_000)], &[good(), good()]),
        (&[served(99, 99), served(99, 99)], &[good(), good()]),
        (
            &[served(5, 0), served(5, 0), served(9_000, 9_000)],
            &[good()],
        ),
    ];
    for (index, (batch, rest)) in cases.into_iter().enumerate() {
        let compared = Comparison {
            batch: side(batch),
            rest: side(rest),
        };
        let verdict = Gate::DEFAULT.judge(&compared);
        let is_missing = matches!(verdict, GateVerdict::NoData(_));
        assert!(is_missing, "case {index}: {verdict:?}");
    }
    let compared = Comparison {
        batch: side(&[broken()]),
        rest: side(&[served(60, 0), served(60, 0), served(60, 0)]),
    };
    assert_eq!(
        Gate::DEFAULT.explain(&compared),
        "too little data: 1000 requests of the batch and 60 of the others count: the gate needs 100 of each"
    );
}

/// Which of two nodes a comparison leaves out depends on its figure.
#[test]
fn a_side_has_enough_requests_whichever_node_is_left_out() {
    for batch in [[40, 50, 70], [70, 50, 40], [50, 70, 40]] {
        let compared = Comparison {
            batch: side(&batch.map(|requests| served(requests, 0))),
            rest: side(&[served(1_000, 0)]),
        };
        let text = Gate::DEFAULT.explain(&compared);
        let expected = "too little data: 90 requests of the batch and 1000 of the others";
        assert!(text.starts_with(expected), "{text}");
    }
}

/// A route is named as not judged by the requests that count.
#[test]
fn a_route_that_no_comparison_covers_is_named() {
    let with_rare = |requests| {
        let mut node = served(1_000, 0);
        let rare = served(requests, 0).routes.remove("api").unwrap_or_default();
        node.routes.insert("rare".to_owned(), rare);
        node
    };
    let compared = Comparison {
        batch: side(&[with_rare(80), with_rare(80)]),
        rest: side(&[with_rare(400), with_rare(400)]),
    };
    let text = Gate::DEFAULT.explain(&compared);
    let expected = "; too few requests on route rare: not judged (80 of 100)";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_node_that_was_as_slow_before_is_not_slower() {
    let rest = || side(&[served(1_000, 0), served(1_000, 0), served(1_000, 0)]);
    let verdict = |before: Traffic, after: Traffic| {
        Gate::DEFAULT.judge(&Comparison {
            batch: switched((10.0, before), (10.0, after)),
            rest: rest(),
        })
    };
    let far = || timed(1_000, 0, 6);
    assert_eq!(verdict(far(), far()), GateVerdict::Passed, "a distant zone");
    for (before, after) in [
        (served(1_000, 0), far()),
        (far(), timed(1_000, 0, 8)),
        // Before, it served too few requests.
        (timed(99, 0, 6), far()),
    ] {
        let verdict = verdict(before.clone(), after);
        let is_slower = matches!(verdict, GateVerdict::Failed(_));
        assert!(is_slower, "{before:?}: {verdict:?}");
    }
}

/// The 99th percentile alone: the mean differs by less than its limit.
#[test]
fn a_tail_that_was_as_long_before_is_not_longer() {
    let tail = |slow: u64| {
        let mut node = served(10_000, 0);
        if let Some(route) = node.routes.get_mut("api") {
            route.latency[3] = 10_000 - slow;
            route.latency[6] = slow;
            route.latency_us = Some(10_000 * 8_000);
        }
        node
    };
    let rest = || side(&[tail(10), tail(10), tail(10)]);
    let verdict = |before: u64| {
        Gate::DEFAULT.judge(&Comparison {
            batch: switched((10.0, tail(before)), (10.0, tail(300))),
            rest: rest(),
        })
    };
    assert_eq!(verdict(300), GateVerdict::Passed);
    assert!(matches!(verdict(10), GateVerdict::Failed(_)));
}

#[test]
fn a_node_that_was_as_busy_before_uses_no_more_cpu() {
    let verdict = |before: f64, after: f64| {
        Gate::DEFAULT.judge(&Comparison {
            batch: switched((before, served(1_000, 0)), (after, served(1_000, 0))),
            rest: side(&[served(1_000, 0), served(1_000, 0), served(1_000, 0)]),
        })
    };
    // Up to 50 % more than the greater of 10 % on the rest and the node's own use before.
    for (before, after, passes) in [
        (200.0, 200.0, true),
        (200.0, 250.0, true),
        (200.0, 251.0, false),
        (10.0, 61.0, false),
        (0.0, 60.0, true),
    ] {
        let verdict = verdict(before, after);
        let has_passed = verdict == GateVerdict::Passed;
        assert_eq!(has_passed, passes, "{before} to {after}: {verdict:?}");
    }
}

/// A side that differs from the rest in any case is compared with its own time before, where
/// chance has to be excluded as well.
#[test]
fn a_node_with_other_clients_is_not_stopped_by_chance() {
    let usual = served(3_000, 0);
    let verdict = |before: Traffic, after: Traffic| {
        Gate::DEFAULT.judge(&Comparison {
            batch: switched((10.0, before), (10.0, after)),
            rest: side(&[usual.clone(), usual.clone(), usual.clone()]),
        })
    };
    // Bots request missing paths of this node: 7 of 100 before, 15 of 100 after the switch.
    let passed = verdict(served(100, 7), served(100, 15));
    assert_eq!(passed, GateVerdict::Passed);
    let failed = verdict(served(1_000, 70), served(1_000, 200));
    assert!(matches!(failed, GateVerdict::Failed(_)), "{failed:?}");
}

/// The batch's best node is left out now, and must be left out before as well.
#[test]
fn unlike_nodes_of_a_batch_are_compared_with_themselves() {
    let near = || (10.0, served(1_000, 0));
    let far = || (150.0, timed(1_000, 200, 6));
    let middle = || (80.0, timed(1_000, 90, 5));
    for nodes in [
        vec![near(), far()],
        vec![far(), near(), near()],
        vec![near(), middle(), far()],
    ] {
        let same = nodes.iter().map(|node| (node.clone(), node.clone()));
        let same: Vec<_> = same.collect();
        let alone = Comparison {
            rest: batch(&same),
            batch: batch(&same),
        };
        let beside_others = Comparison {
            rest: side(&[near().1, near().1, near().1]),
            batch: batch(&same),
        };
        for compared in [alone, beside_others] {
            assert_eq!(Gate::DEFAULT.judge(&compared), GateVerdict::Passed);
        }
    }
}

/// A false report of one node from before the switch changes no more than the node's absence.
#[test]
fn the_past_of_one_node_excuses_no_other_node() {
    let good = || (10.0, served(1_000, 0));
    let worst = || (1_000.0, timed(1_000, 1_000, 9));
    for bad in [
        (10.0, served(1_000, 600)),
        (10.0, timed(1_000, 0, 6)),
        (100.0, served(1_000, 0)),
    ] {
        for liar in [good(), worst()] {
            let nodes = [(good(), bad.clone()), (worst(), liar.clone())];
            let compared = Comparison {
                batch: batch(&nodes),
                rest: side(&[good().1, good().1, good().1]),
            };
            let verdict = Gate::DEFAULT.judge(&compared);
            let is_stopped = matches!(verdict, GateVerdict::Failed(_));
            assert!(is_stopped, "{bad:?} beside {liar:?}: {verdict:?}");
        }
    }
}

#[test]
fn a_standby_beside_a_busy_batch_is_no_baseline() {
    let gate = Gate::DEFAULT;
    let batch = |requests| side(&[served(requests, 0)]);
    let cases: [(u64, &[u64], bool); 9] = [
        (1_000, &[0], true),
        (1_000, &[5], true),
        (1_000, &[60, 60, 60], true),
        (1_000, &[1_000, 5, 5], true),
        // As many requests as the batch: enough of them will follow.
        (100, &[60, 60, 60], false),
        (100, &[30], false),
        // The batch itself has too few.
        (99, &[0], false),
        // Enough together.
        (1_000, &[60, 60, 60, 60], false),
        (1_000, &[100], false),
    ];
    for (own, others, expected) in cases {
        let others: Vec<Traffic> = others.iter().map(|count| served(*count, 0)).collect();
        let found = gate.has_idle_rest(&batch(own), &side(&others));
        assert_eq!(found, expected, "{own} beside {others:?}");
    }
    assert!(!gate.has_idle_rest(&batch(1_000), &Figures::default()));
    let mut rest = Figures::default().without_idle_nodes(gate.min_requests);
    for requests in [0, 5, 99] {
        rest.add(10.0, Some(served(requests, 0)), None);
    }
    rest.add(10.0, None, None);
    assert_eq!((rest.nodes, rest.serving()), (0, 0));
    rest.add(10.0, Some(served(100, 0)), None);
    assert_eq!((rest.nodes, rest.serving()), (1, 1));
}
