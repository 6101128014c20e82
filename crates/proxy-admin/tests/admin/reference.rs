//! Checks that the reference page agrees with the interface.

use crate::support::Admin;
use proxy_telemetry::Outcome;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

const PAGE: &str = include_str!("../../../../docs/reference/admin.md");

/// Members with objects keyed by names in the configuration.
const BY_NAME: [&str; 8] = [
    "agents",
    "failures",
    "upstreams",
    "by_status",
    "by_route",
    "by_reason",
    "matches",
    "policies",
];

/// Returns the documented paths with their examples.
fn documented() -> Vec<(&'static str, Option<Value>)> {
    let sections = PAGE.split("\n## `GET ").skip(1);
    let sections = sections.map(|section| {
        let (path, text) = section.split_once("`\n").unwrap();
        let example = text.split_once("```json\n").map(|(_, rest)| {
            let (json, _) = rest.split_once("```").unwrap();
            serde_json::from_str(json).unwrap_or_else(|fault| panic!("{path}: {fault}"))
        });
        (path, example)
    });
    sections.collect()
}

#[tokio::test]
async fn every_documented_path_answers_with_the_documented_fields() {
    let admin = Admin::open();
    admin.sources.lifecycle.serves(1);
    admin.sources.registry.route(0, "shop").record(&Outcome {
        status: 200,
        took: Duration::from_millis(20),
        bytes_in: 0,
        bytes_out: 10,
        failed: false,
        aborted: false,
    });
    let changed = &admin.plan.upstreams()[0].targets[0].state;
    changed.override_weight(Some(0));
    admin.sources.recording.resize(1_024);
    let documented = documented();
    assert_eq!(documented.len(), 13);
    for (path, example) in documented {
        let answer = admin.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        if let Some(example) = example {
            let (reported, shown) = (fields(&answer.json()), fields(&example));
            let optional = ["last_error", "unhealthy_since"].map(str::to_owned);
            let missing: Vec<_> = reported.difference(&shown).collect();
            let gone: Vec<_> = shown.difference(&reported).collect();
            let gone: Vec<_> = gone
                .into_iter()
                .filter(|field| !optional.contains(field))
                .collect();
            assert!(missing.is_empty(), "{path}: not documented: {missing:?}");
            assert!(
                gone.is_empty(),
                "{path}: documented and not served: {gone:?}"
            );
        }
    }
}

#[test]
fn every_documented_configuration_is_right() {
    let blocks = PAGE.split("```kdl\n").skip(1);
    let blocks: Vec<_> = blocks
        .filter_map(|block| block.split("```").next())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let read = proxy_config::parse(block, "admin.md");
        assert!(read.is_ok(), "{}", read.unwrap_err());
    }
}

/// Returns the names of all fields, at any depth.
fn fields(value: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(value, &mut names);
    names
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(members) => members.iter().for_each(|member| collect(member, names)),
        Value::Object(members) => {
            for (name, member) in members {
                names.insert(name.clone());
                if !BY_NAME.contains(&name.as_str()) {
                    collect(member, names);
                } else if let Value::Object(named) = member {
                    let inner = named.values().filter(|inner| inner.is_object());
                    inner.for_each(|inner| collect(inner, names));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
