//! Short forms of the gate's reasons, for texts that the gate itself writes.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

#[path = "support/strict_gate.rs"]
mod strict_gate;

use control_domain::{
    BatchNode, Comparison, Figures, GateFailure, GateVerdict, MetricAnswer, MetricCondition,
    short_reason,
};
use control_wire::{ConnectionTraffic, NodeId, RouteTraffic, Traffic};
use std::collections::{BTreeMap, BTreeSet};
use strict_gate::GATE;
use uuid::Uuid;

/// The words of other reasons, which must not decide.
const ROUTE: &str = "carts: 3 take 5 CPU";

/// Counters of a node that serves without a fault.
fn good() -> Traffic {
    let mut buckets = [0; 12];
    buckets[2] = 1_000;
    let route = RouteTraffic {
        requests: 1_000,
        latency: buckets,
        latency_us: Some(3_000_000),
        first_byte: Some(buckets),
        statuses: BTreeMap::from([(200, 900), (401, 100)]),
        sizes: BTreeMap::from([(9, 1_000)]),
        ..RouteTraffic::default()
    };
    Traffic {
        routes: BTreeMap::from([(ROUTE.to_owned(), route.clone()), ("b".to_owned(), route)]),
        connections: Some(ConnectionTraffic {
            accepted: 1_000,
            handshakes_completed: 500,
            ..ConnectionTraffic::default()
        }),
    }
}

fn figures(cpu_percent: f64, traffic: Traffic) -> Figures {
    let mut figures = Figures::default();
    figures.add(cpu_percent, Some(traffic), None);
    figures
}

/// A batch with a first route and connections unlike those of the rest.
fn changed(change: fn(&mut RouteTraffic, &mut ConnectionTraffic)) -> Figures {
    let mut traffic = good();
    let mut connections = traffic.connections.unwrap();
    change(traffic.routes.get_mut(ROUTE).unwrap(), &mut connections);
    traffic.connections = Some(connections);
    figures(10.0, traffic)
}

/// A batch of 200 nodes, one of which differs from the rest.
fn with_one(change: fn(&mut BatchNode)) -> Figures {
    let mut figures = Figures::default();
    for number in 0..200 {
        let mut node = BatchNode {
            node: NodeId(Uuid::from_u128(number)),
            cpu_percent: 10.0,
            traffic: Some(good()),
            sample: Some((10.0, Some(good()))),
            same_bundle: false,
            has_reported: true,
        };
        // Beyond the reports that are compared by route.
        if number == 199 {
            change(&mut node);
        }
        figures.add_switched(node);
    }
    figures
}

fn routes(node: &mut BatchNode) -> impl Iterator<Item = &mut RouteTraffic> {
    node.traffic.as_mut().unwrap().routes.values_mut()
}

fn bucket(number: usize) -> [u64; 12] {
    let mut buckets = [0; 12];
    buckets[number] = 1_000;
    buckets
}

const SLOW: &str = "requests take too long";

/// Batches that fail by their answers and connections, with the short form of the reason.
fn failing_answers() -> Vec<(Figures, &'static str)> {
    let differently = "requests are answered differently";
    vec![
        (
            changed(|route, _| route.errors = 100),
            "too many requests fail",
        ),
        (
            changed(|route, _| {
                let name = "requests that take CPU end with 5xx".to_owned();
                route.reasons = BTreeMap::from([(name, 100)]);
            }),
            "requests fail for a new reason",
        ),
        (
            changed(|route, _| {
                route.statuses = BTreeMap::from([(200, 500), (401, 100), (429, 400)]);
            }),
            differently,
        ),
        (
            changed(|route, _| {
                route.statuses = BTreeMap::from([(200, 500), (401, 100), (302, 400)]);
            }),
            differently,
        ),
        (
            changed(|route, _| route.statuses = BTreeMap::from([(200, 1_000)])),
            "requests are no longer refused",
        ),
        (
            changed(|_, connections| connections.proxy_headers_failed = 400),
            "connections are closed for their PROXY header",
        ),
        (
            changed(|_, connections| connections.handshakes_failed = 400),
            "TLS handshakes fail",
        ),
        (
            changed(|_, connections| connections.handshakes_completed = 0),
            "clients connect with TLS too seldom",
        ),
        (
            changed(|route, _| {
                route.requests = 250;
                route.latency[2] = 250;
                route.statuses = BTreeMap::from([(200, 225), (401, 25)]);
            }),
            "requests go to other routes",
        ),
    ]
}

/// Batches that fail by their speed, sizes and CPU use, or by a single node.
fn failing_costs() -> Vec<(Figures, &'static str)> {
    vec![
        (changed(|route, _| route.latency = bucket(5)), SLOW),
        (changed(|route, _| route.latency_us = Some(4_900_000)), SLOW),
        (
            changed(|route, _| route.first_byte = Some(bucket(6))),
            "streams begin too late",
        ),
        (
            changed(|route, _| route.sizes = BTreeMap::from([(0, 1_000)])),
            "answers have other sizes",
        ),
        (
            changed(|route, _| route.sizes = BTreeMap::from([(20, 1_000)])),
            "answers have other sizes",
        ),
        (figures(60.0, good()), "nodes use too much CPU"),
        (
            with_one(|node| routes(node).for_each(|route| route.errors = 900)),
            "too many requests fail",
        ),
        (
            with_one(|node| {
                routes(node).for_each(|route| {
                    route.latency = bucket(8);
                    route.latency_us = None;
                });
            }),
            SLOW,
        ),
        (
            with_one(|node| node.cpu_percent = 90.0),
            "nodes use too much CPU",
        ),
    ]
}

fn kind(failure: &GateFailure) -> &'static str {
    match failure {
        GateFailure::Errors(_) => "errors",
        GateFailure::NewReason(_) => "reason",
        GateFailure::Statuses(_) => "statuses",
        GateFailure::Handshakes(_) => "handshakes",
        GateFailure::Mix(_) => "mix",
        GateFailure::Latency(_) => "latency",
        GateFailure::Size(_) => "size",
        GateFailure::Cpu(_) => "cpu",
        GateFailure::Metric(_) => "metric",
    }
}

#[test]
fn each_failure_of_the_gate_has_its_short_form() {
    let rest = || {
        let mut rest = Figures::default();
        for _ in 0..4 {
            rest.add(10.0, Some(good()), None);
        }
        rest
    };
    let mut kinds = BTreeSet::new();
    for (batch, expected) in failing_answers().into_iter().chain(failing_costs()) {
        let compared = Comparison {
            batch,
            rest: rest(),
        };
        let GateVerdict::Failed(failure) = GATE.judge(&compared) else {
            panic!("{expected}: {}", GATE.explain(&compared));
        };
        kinds.insert(kind(&failure));
        let text = failure.to_string();
        assert_eq!(short_reason(&text), Some(expected), "{text}");
        let returned = format!("{text}; 1 offline node will revert when it returns");
        assert_eq!(short_reason(&returned), Some(expected), "{returned}");
    }
    assert_eq!(kinds.len(), 8, "all but the metric: {kinds:?}");
}

#[test]
fn a_condition_on_a_metric_is_shown_as_it_is() {
    let condition = MetricCondition {
        url: "https://prometheus.example.com".to_owned(),
        query: "requests_that_take_CPU end with 5xx".to_owned(),
        min: None,
        max: Some(0.5),
    };
    let values = MetricAnswer::Values(vec![0.9]);
    let GateVerdict::Failed(failure) = condition.judge(Some(&values)) else {
        panic!("0.9 is above 0.5");
    };
    assert_eq!(short_reason(&failure.to_string()), None);
}

#[test]
fn a_lack_of_data_says_what_is_missing() {
    let condition = MetricCondition {
        url: "https://prometheus.example.com".to_owned(),
        query: "take".to_owned(),
        min: Some(1.0),
        max: None,
    };
    let silent = || {
        let mut figures = figures(10.0, good());
        figures.add(10.0, None, None);
        figures
    };
    let judge = |batch: Figures| {
        GATE.judge(&Comparison {
            batch,
            rest: figures(10.0, good()),
        })
    };
    let answered = |answer: &MetricAnswer| condition.judge(Some(answer));
    for (verdict, expected) in [
        (judge(Figures::default()), "too few requests to judge by"),
        (judge(silent()), "nodes report no traffic"),
        (
            judge(with_one(|node| {
                routes(node).for_each(|route| {
                    (route.requests, route.latency) = (0, [0; 12]);
                    route.statuses.clear();
                });
            })),
            "a node serves almost nothing",
        ),
        (condition.judge(None), "the metrics server gives no answer"),
        (
            answered(&MetricAnswer::Failed("take".to_owned())),
            "the metrics server gives no answer",
        ),
        (
            answered(&MetricAnswer::Values(Vec::new())),
            "its metric has no value",
        ),
    ] {
        let GateVerdict::NoData(why) = verdict else {
            panic!("{expected}: {verdict:?}");
        };
        let reason = format!("the gate has too little data: {why}");
        assert_eq!(short_reason(&reason), Some(expected), "{reason}");
    }
}
