//! The memory and time that a plan needs do not grow with the product of two lists of a text.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_config::{DiagnosticCode, Files, load_from, parse};
use std::fmt::Write;

const LISTENER: &str = "listeners { listener \"a\" { address \"127.0.0.1:8080\" } }\n";
const UPSTREAM: &str = "upstreams { upstream \"u\" { target \"127.0.0.1:3000\" } }\n";

/// A configuration with a route for each of these contents of `matches`, and with `tests` tests.
fn config(matches: impl Iterator<Item = String>, tests: usize) -> String {
    let mut text = format!("{LISTENER}{UPSTREAM}routes {{\n");
    for (number, matches) in matches.enumerate() {
        writeln!(
            text,
            "route \"r{number}\" {{ matches {{ {matches} }}; upstream \"u\" }}"
        )
        .unwrap();
    }
    text.push_str("}\ntests {\n");
    for number in 0..tests {
        writeln!(
            text,
            "test \"t{number}\" {{ request \"GET\" \"/\"; expect {{ status 404 }} }}"
        )
        .unwrap();
    }
    text.push('}');
    text
}

fn errors(text: &str) -> Vec<DiagnosticCode> {
    let report = parse(text, "x.kdl").unwrap_err();
    report.faults().iter().map(|fault| fault.code).collect()
}

#[test]
fn regexes_that_are_large_together_are_one_fault() {
    // 700 KiB each when compiled, 6 GB together.
    let large = (0..6_000).map(|number| format!("path-regex \"^/r{number}/[a-z]{{3000}}$\""));
    assert_eq!(errors(&config(large, 0)), [DiagnosticCode::RegexesTooLarge]);
    // Regexes that are too large on their own must not take much time either.
    let too_large =
        (0..2_000).map(|number| format!("path-regex \"^/{number}[a-z]{{1000}}{{99}}\""));
    let found = errors(&config(too_large, 0));
    assert_eq!(found.last(), Some(&DiagnosticCode::RegexesTooLarge));
    assert!(found.len() < 100, "{}", found.len());
    let plain = (0..4_000).map(|number| format!("path-regex \"^/users/[0-9]+/r{number}$\""));
    parse(&config(plain, 0), "x.kdl").unwrap();
}

#[test]
fn names_and_values_of_all_files_together_are_bounded() {
    let files = |included: &str, times: usize| {
        let main = "include \"more.kdl\"\n".repeat(times);
        let files = [("main.kdl", main.as_str()), ("more.kdl", included)];
        files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
    };
    let nodes = "a\n".repeat(700_000);
    let values = format!("a{}", " 1".repeat(2_000_001));
    for (included, times) in [(&nodes, 3), (&values, 1)] {
        let files = files(included, times).into();
        let report = load_from(Files::Memory(&files), "main.kdl").unwrap_err();
        let codes = report.faults().iter().map(|fault| fault.code);
        assert!(codes.eq([DiagnosticCode::FileTooLarge]), "{times}");
    }
}

#[test]
fn tests_that_take_long_together_are_a_fault() {
    let plain = |routes: usize| (0..routes).map(|number| format!("path \"/r{number}\""));
    assert_eq!(
        errors(&config(plain(5_000), 5_000)),
        [DiagnosticCode::TooManyTests]
    );
    parse(&config(plain(2_000), 2_000), "x.kdl").unwrap();
}

#[test]
fn hosts_and_paths_that_make_too_many_pairs_are_a_fault() {
    let list = |count: usize| {
        let hosts = (0..count).map(|number| format!("host \"h{number}\""));
        let paths = (0..count).map(|number| format!("path \"/p{number}\""));
        hosts.chain(paths).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(
        errors(&config([list(1_000)].into_iter(), 0)),
        [DiagnosticCode::TooManyConditions]
    );
    parse(&config([list(300)].into_iter(), 0), "x.kdl").unwrap();
}
