//! A false report of one node changes the verdict of a gate no more than the node's absence, or a
//! copy of another node's report.
#![expect(clippy::indexing_slicing, reason = "a test may stop")]

use control_domain::{Comparison, Figures, Gate, GateVerdict};
use control_wire::{RouteTraffic, Traffic};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest};
use std::collections::BTreeMap;

/// Report of a node.
#[derive(Clone, Debug)]
struct Word {
    cpu_percent: f64,
    route: RouteTraffic,
}

impl Word {
    fn new(requests: u64, errors: u64, bucket: usize) -> Self {
        let mut latency = [0; 12];
        latency[bucket] = requests;
        let route = RouteTraffic {
            requests,
            errors,
            latency,
            ..RouteTraffic::default()
        };
        Self {
            cpu_percent: 10.0,
            route,
        }
    }

    fn failing(mut self, reason: &str) -> Self {
        self.route.reasons.insert(reason.to_owned(), 100);
        self
    }
}

fn figures(words: &[Word]) -> Figures {
    let mut figures = Figures::default();
    for Word { cpu_percent, route } in words {
        let routes = BTreeMap::from([("api".to_owned(), route.clone())]);
        let traffic = Traffic {
            routes,
            ..Traffic::default()
        };
        figures.add(*cpu_percent, Some(traffic), None);
    }
    figures
}

fn passes(batch: &[Word], rest: &[Word]) -> bool {
    let compared = Comparison {
        batch: figures(batch),
        rest: figures(rest),
    };
    Gate::DEFAULT.judge(&compared) == GateVerdict::Passed
}

#[test]
fn one_node_of_the_rest_cannot_disarm_the_gate() {
    let good = || Word::new(1_000, 0, 2);
    let liar = Word {
        cpu_percent: 100_000.0,
        ..Word::new(10_000_000_000_000, 10_000_000_000_000, 11).failing("connect_refused")
    };
    let rest = [good(), good(), good(), liar];
    assert!(passes(&[good()], &rest));
    let hot = Word {
        cpu_percent: 90.0,
        ..good()
    };
    let bad = [
        Word::new(1_000, 500, 2),
        Word::new(1_000, 0, 8),
        good().failing("connect_refused"),
        hot,
    ];
    for bad in bad {
        assert!(!passes(std::slice::from_ref(&bad), &rest), "{bad:?}");
    }
}

#[test]
fn one_node_of_a_batch_cannot_hide_the_others() {
    let liar = || Word::new(10_000_000_000_000, 0, 0);
    let good = || Word::new(1_000, 0, 2);
    let rest = [good(), good(), good()];
    assert!(passes(&[good(), good(), liar()], &rest));
    // If clients can cause the reason, a few more failures per thousand requests pass.
    let lost = || good().failing("route_not_found");
    for bad in [Word::new(1_000, 90, 2), Word::new(1_000, 0, 4), lost()] {
        assert!(!passes(&[bad.clone(), liar()], &rest), "{bad:?}");
        assert!(
            !passes(&[bad.clone(), bad.clone(), liar()], &rest),
            "{bad:?}"
        );
    }
}

/// Generates reports of honest nodes, which are equal except for one figure. With several different
/// figures, a copied report could change each of them.
fn honest(figure: u8) -> impl Strategy<Value = Word> {
    (0_u64..60, 2_usize..5, 1_u8..90, any::<bool>()).prop_map(
        move |(errors, bucket, cpu, fails)| match figure {
            0 => Word::new(1_000, errors, 2),
            1 => Word::new(1_000, 0, bucket),
            2 => Word {
                cpu_percent: cpu.into(),
                ..Word::new(1_000, 0, 2)
            },
            _ if fails => Word::new(1_000, 0, 2).failing("connect_refused"),
            _ => Word::new(1_000, 0, 2),
        },
    )
}

fn lie() -> impl Strategy<Value = Word> {
    let count = || {
        prop_oneof![
            Just(0),
            0_u64..2_000,
            Just(10_000_000_000_000),
            Just(u64::MAX)
        ]
    };
    (count(), count(), 0_usize..12, 0.0..100_000.0, any::<bool>()).prop_map(
        |(requests, errors, bucket, cpu_percent, fails)| {
            let word = Word::new(requests, errors, bucket);
            let word = Word {
                cpu_percent,
                ..word
            };
            if fails {
                word.failing("connect_refused")
            } else {
                word
            }
        },
    )
}

fn sides() -> impl Strategy<Value = (Vec<Word>, Vec<Word>)> {
    let nodes = |figure, nodes| proptest::collection::vec(honest(figure), nodes);
    (0_u8..4).prop_flat_map(move |figure| (nodes(figure, 1..6), nodes(figure, 3..12)))
}

/// Returns the reports without the node, and with a copy of each other node's report in its place.
fn without(others: &[Word]) -> impl Iterator<Item = Vec<Word>> {
    let copies = others
        .iter()
        .map(move |word| [others, std::slice::from_ref(word)].concat());
    std::iter::once(others.to_vec()).chain(copies)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lies_of_one_node_of_the_rest_move_the_verdict_no_more_than_dropping_it(
        (batch, others) in sides(),
        lie in lie(),
    ) {
        let verdict = passes(&batch, &[others.clone(), vec![lie]].concat());
        let mut honest = without(&others).map(|rest| passes(&batch, &rest));
        prop_assert!(honest.any(|honest| honest == verdict));
    }

    #[test]
    fn no_lie_of_one_node_of_a_batch_makes_the_others_pass(
        (others, rest) in sides(),
        lie in lie(),
    ) {
        let passed = passes(&[others.clone(), vec![lie]].concat(), &rest);
        let mut honest = without(&others).map(|batch| passes(&batch, &rest));
        prop_assert!(!passed || honest.any(|honest| honest));
    }
}
