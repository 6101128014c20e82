//! The dashboard and the alert rules of `docs/operate/monitoring`, checked by promtool.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

use proxy_telemetry::Kind;
use proxy_telemetry::names::METRICS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate/monitoring")
}

/// Runs promtool in the folder.
fn promtool(arguments: &[&str]) {
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(folder())
        .output()
        .expect("`cargo xtask setup` installs promtool");
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// The names of the project's metrics in a query.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let words = query.split(move |char| !is_name(char));
    words.filter(|word| word.starts_with("proxy_") || word.starts_with("process_"))
}

fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for metric in METRICS {
        if metric.kind == Kind::Histogram {
            known.extend(["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", metric.name)));
        } else {
            known.insert(metric.name.to_owned());
        }
    }
    known
}

/// All queries of the dashboard.
fn queries() -> Vec<String> {
    let dashboard: serde_json::Value =
        serde_json::from_str(&read("proxyd.dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let annotations = dashboard["annotations"]["list"].as_array().unwrap();
    let all = targets.chain(annotations);
    all.map(|one| one["expr"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_alert_rules_fire_and_stay_silent_as_they_should() {
    promtool(&["check", "rules", "proxyd.rules.yml"]);
    promtool(&["test", "rules", "proxyd.rules.test.yml"]);
}

#[test]
fn every_alert_rule_has_a_test() {
    let (rules, tests) = (read("proxyd.rules.yml"), read("proxyd.rules.test.yml"));
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        let firing = tests.matches(&format!("alertname: {alert}\n")).count();
        assert_eq!(firing, 2, "{alert} fires in one test and is silent in one");
    }
}

#[test]
fn rules_and_dashboard_name_metrics_that_exist() {
    let known = known();
    let rules = read("proxyd.rules.yml");
    let queries = queries();
    assert!(queries.len() > 20);
    for text in queries.iter().chain([&rules]) {
        for name in names(text) {
            assert!(known.contains(name), "there is no {name}");
        }
    }
}

#[test]
fn promtool_understands_every_query_of_the_dashboard() {
    let mut rules = String::from("groups:\n  - name: queries\n    rules:\n");
    for (number, query) in queries().iter().enumerate() {
        let query = query
            .replace("$__rate_interval", "5m")
            .replace("$__interval", "1m");
        let query = serde_json::to_string(&query).unwrap();
        let record = format!("      - record: query:{number}\n        expr: {query}\n");
        rules.push_str(&record);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rules).unwrap();
    promtool(&[
        "check",
        "rules",
        "--lint=none",
        &file.path().to_string_lossy(),
    ]);
}
