//! Requests that the other server refuses, checks or strips of header fields: after the migration none
//! of them reaches content without that, and a note says so.
#![expect(clippy::panic, reason = "tests may fail loudly")]

mod caddy;
mod haproxy;
mod nginx;
mod traefik;

use proxy_config::parse;
use proxy_migrate::{Language, Migrated, Source, migrate};
use proxy_plan::failed_tests;

pub(crate) fn migrated(language: Language, text: &str) -> Migrated {
    let source = Source {
        name: "x".to_owned(),
        text: text.to_owned(),
    };
    let migrated = migrate(language, &source, &|_| None);
    migrated.unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Checks how a request is answered: by a status such as `403`, or by a target such as `a:1`.
#[track_caller]
pub(crate) fn answers(migrated: &Migrated, request: &str, answer: &str) {
    let (method, url) = request.split_once(' ').unwrap_or(("GET", request));
    let expected = if answer.contains(':') {
        format!("targets \"{answer}\"")
    } else {
        format!("status {answer}")
    };
    let settings = migrated.text.split("\ntests {").next().unwrap_or_default();
    let probe = format!(
        "tests {{ test \"probe\" {{ request \"{method}\" \"{url}\"; expect {{ {expected} }} }} }}"
    );
    let loaded = parse(&format!("{settings}\n{probe}"), "out.kdl");
    let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
    let failed = failed_tests(&loaded.model);
    assert!(
        failed.is_empty(),
        "{request}\n{}\n{failed:?}",
        migrated.text
    );
}

/// Checks the answers to several requests, that the tests of the result pass, and that a note has a
/// text.
#[track_caller]
pub(crate) fn becomes(language: Language, text: &str, expected: &[(&str, &str)], note: &str) {
    let migrated = migrated(language, text);
    let loaded = parse(&migrated.text, "out.kdl");
    let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
    let failed = failed_tests(&loaded.model);
    assert!(failed.is_empty(), "{}\n{failed:?}", migrated.text);
    for (request, answer) in expected {
        answers(&migrated, request, answer);
    }
    let mut notes = migrated.notes.iter().map(ToString::to_string);
    assert!(
        notes.any(|it| it.contains(note)),
        "{note}\n{}",
        migrated.text
    );
}
