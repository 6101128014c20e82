//! Harmful and harmless bundles on six real nodes, with real upstreams and clients that check every answer.
//!
//! A small part runs with all tests; `cargo xtask fleet --real` runs the rest and prints the table of
//! `docs/operate/change-validation-battery.md`.

mod clients;
mod market;
mod scene;
mod shop;
mod site;
mod table;

use scene::Case;
use shop::{HARMFUL, HARMLESS};
use site::{Guards, Site, print_progress};
use std::{env, thread};
use table::Row;

/// `harmful|harmless`, `all|node` guards, the first case, the number of cases, and of sites at once.
const CASES: &str = "PROXYD_BATTERY";

/// The cases, one after the other on a site of their own; each scene has one.
fn run(cases: &[Case], guards: Guards) -> Vec<Row> {
    let scenes = cases.chunk_by(|one, other| one.scene.name == other.scene.name);
    let rows = scenes.flat_map(|cases| {
        let site = Site::start(cases[0].scene, guards);
        let rows = cases.iter().map(move |case| {
            let row = site.run(case);
            // A run that is ended early keeps the rows before.
            print_progress(format_args!("{row}"));
            row
        });
        rows.collect::<Vec<Row>>()
    });
    rows.collect()
}

#[test]
fn harmful_bundles_stop_before_the_second_batch_and_a_harmless_one_does_not() {
    let case = |cases: &[Case], name: &str| {
        let mut cases = cases.iter();
        *cases.find(|case| case.name == name).unwrap()
    };
    let cases = [
        case(HARMFUL, "a route to a wrong upstream that answers 200"),
        case(HARMFUL, "an upstream that answers 500"),
        case(HARMFUL, "reports that answer nothing"),
        case(HARMLESS, "a comment"),
    ];
    let rows = run(&cases, Guards::OfNodes);
    let [wrong, failing, empty, comment] = rows.as_slice() else {
        panic!("four rows");
    };
    for (row, guard, reason) in [
        (wrong, "live test", "live test \"the API answers\" fails"),
        (failing, "gate", "end with 5xx"),
        (empty, "gate", "route reports: answers are smaller"),
    ] {
        assert_eq!(row.guard, guard, "{row:?}");
        assert!(row.reason.contains(reason), "{row:?}");
        assert_eq!(row.wrong_outside, 0, "{row:?}");
    }
    assert_eq!(
        wrong.wrong_inside, 0,
        "a live test is sent before: {wrong:?}"
    );
    assert_eq!(comment.guard, "", "{comment:?}");
    assert_eq!(
        (comment.wrong_inside, comment.wrong_outside),
        (0, 0),
        "{comment:?}"
    );
}

/// Runs the parts selected by the environment, and prints their table; without it, none.
#[test]
fn bundles_that_are_asked_for() {
    let Ok(asked) = env::var(CASES) else {
        return;
    };
    let words: Vec<&str> = asked.split_whitespace().collect();
    let [kind, guards, first, count, sites] = words.as_slice() else {
        panic!("{CASES}: harmful|harmless all|node FIRST COUNT SITES");
    };
    let cases = if *kind == "harmful" {
        [HARMFUL, market::HARMFUL].concat()
    } else {
        [HARMLESS, market::HARMLESS].concat()
    };
    let guards = if *guards == "all" {
        Guards::All
    } else {
        Guards::OfNodes
    };
    let first: usize = first.parse().unwrap();
    let count: usize = count.parse().unwrap();
    let sites: usize = sites.parse().unwrap();
    let cases: Vec<Case> = cases.iter().skip(first).take(count).copied().collect();
    let parts = cases.chunks(cases.len().div_ceil(sites).max(1));
    let rows = thread::scope(|scope| {
        let running: Vec<_> = parts
            .map(|part| scope.spawn(move || run(part, guards)))
            .collect();
        let ended = running.into_iter().map(|site| site.join().unwrap());
        ended.flatten().collect::<Vec<Row>>()
    });
    for row in rows {
        println!("{row}");
    }
}
