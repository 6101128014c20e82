//! The registry is complete and consistent, and has the defaults of the interface contract.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_model::registry::{self, Presence, Proof, SettingSpec, Shape};
use std::collections::HashSet;

/// The defaults in the contract's table of limits.
const PROMISED_LIMITS: [(&str, Option<&str>); 24] = [
    ("max-header-size-bytes", Some("8192")),
    ("max-header-count", Some("100")),
    ("max-header-name-bytes", Some("256")),
    ("max-header-value-bytes", Some("4096")),
    ("max-body-size-bytes", Some("10485760")),
    ("max-body-buffer-bytes", Some("1048576")),
    ("max-body-inspection-bytes", Some("1048576")),
    ("max-decompression-ratio", Some("100.0")),
    ("max-decompressed-size-bytes", Some("104857600")),
    ("max-connections-per-client", Some("100")),
    ("max-connections-per-route", Some("1000")),
    ("max-total-connections", Some("10000")),
    ("max-idle-connections-per-upstream", Some("100")),
    ("max-in-flight-requests", Some("10000")),
    ("max-in-flight-requests-per-worker", Some("1000")),
    ("max-queued-requests", Some("1000")),
    ("max-agent-queue-depth", Some("100")),
    ("max-agent-body-bytes", Some("1048576")),
    ("max-agent-response-bytes", Some("10240")),
    ("max-requests-per-second-global", None),
    ("max-requests-per-second-per-client", None),
    ("max-requests-per-second-per-route", None),
    ("max-memory-bytes", None),
    ("max-memory-percent", None),
];

/// Other defaults in the contract.
const PROMISED: [(&str, &str); 19] = [
    ("system.worker-threads", "0"),
    ("system.graceful-shutdown-timeout-secs", "30"),
    ("admin.address", "\"127.0.0.1:9090\""),
    ("listeners.listener.timeouts.body-idle-secs", "30"),
    ("routes.route.priority", "50"),
    ("routes.route.circuit-breaker.success-threshold", "1"),
    ("routes.route.circuit-breaker.half-open-max-requests", "1"),
    ("routes.route.policies.retry.attempts", "1"),
    ("routes.route.policies.retry.budget-percent", "20"),
    ("upstreams.upstream.load-balancing", "\"round_robin\""),
    ("upstreams.upstream.timeouts.connect-secs", "5"),
    ("upstreams.upstream.timeouts.request-secs", "60"),
    ("upstreams.upstream.timeouts.read-secs", "60"),
    ("upstreams.upstream.health-check.interval-secs", "10"),
    ("upstreams.upstream.health-check.timeout-secs", "5"),
    ("upstreams.upstream.health-check.healthy-threshold", "2"),
    ("upstreams.upstream.health-check.unhealthy-threshold", "3"),
    ("limits.standard-statuses", "#false"),
    ("listeners.listener.expose-reasons", "#false"),
];

fn find(path: &str) -> SettingSpec {
    let found = registry::all().into_iter().find(|spec| spec.path == path);
    found.unwrap()
}

#[test]
fn the_promised_defaults_hold() {
    for (name, default) in PROMISED_LIMITS {
        let spec = find(&format!("limits.{name}"));
        match default {
            Some(default) => assert_eq!(spec.presence, Presence::Default(default.to_owned())),
            None => assert_eq!(spec.presence, Presence::Unset("no limit"), "{name}"),
        }
    }
    for (path, default) in PROMISED {
        let promised = Presence::Default(default.to_owned());
        assert_eq!(find(path).presence, promised, "{path}");
    }
}

#[test]
fn no_two_settings_of_a_block_have_the_same_name() {
    let mut seen = HashSet::new();
    for spec in registry::all() {
        let names = spec.aliases.iter().map(String::as_str).chain([spec.name()]);
        for name in names {
            for block in spec.also.iter().chain([&spec.block()]) {
                assert!(seen.insert((*block, name.to_owned())), "{block} {name}");
            }
        }
    }
}

#[test]
fn every_setting_is_in_a_block_of_the_registry() {
    let all = registry::all();
    let paths: HashSet<&str> = all.iter().map(|spec| spec.path).collect();
    for spec in &all {
        for block in spec.also.iter().chain([&spec.block()]) {
            assert!(block.is_empty() || paths.contains(block), "{}", spec.path);
        }
    }
}

#[test]
fn every_setting_has_a_meaning_and_a_crate_that_enforces_it() {
    for spec in registry::all() {
        let says = spec.doc.ends_with('.') && spec.doc.starts_with(char::is_uppercase);
        assert!(
            says || spec.doc.starts_with('`'),
            "{}: {}",
            spec.path,
            spec.doc
        );
        let Proof { by, test } = spec.proof;
        assert!(
            (by.starts_with("proxy-") || ["proxyd", "control-client"].contains(&by))
                && !test.is_empty(),
            "{}",
            spec.path
        );
    }
}

#[test]
fn every_example_and_every_word_of_a_choice_is_distinct_and_not_empty() {
    for spec in registry::all() {
        match &spec.shape {
            Shape::Choice(words) => {
                let names: HashSet<&str> = words.iter().map(|word| word.name).collect();
                assert_eq!(names.len(), words.len(), "{}", spec.path);
                assert!(
                    words.iter().all(|word| !word.doc.is_empty()),
                    "{}",
                    spec.path
                );
            }
            Shape::Text { what, example, .. } | Shape::Pair { what, example } => {
                assert!(!what.is_empty() && !example.is_empty(), "{}", spec.path);
            }
            Shape::Flag
            | Shape::Integer { .. }
            | Shape::Decimal { .. }
            | Shape::Size { .. }
            | Shape::Time { .. }
            | Shape::Block { .. } => {}
        }
    }
}
