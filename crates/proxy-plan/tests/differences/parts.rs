//! Settings, parts and connections.

use crate::support::{around, diff, route_diff};
use proxy_plan::render;

#[test]
fn a_changed_setting_names_the_routes_that_it_applies_to() {
    let routes =
        r#"route "all" { upstream "u" }; route "b" { matches { path "/b" }; upstream "v" }"#;
    let before = around(routes);
    let after = before.replace(
        r#"upstream "u" { target "10.0.0.1:80" }"#,
        r#"upstream "u" { target "10.0.0.1:80"; load-balancing "least_connections" }"#,
    );
    let diff = diff(&before, &after);
    assert_eq!(diff.regions.len(), 0);
    let [change] = diff.settings.as_slice() else {
        panic!("{:?}", diff.settings);
    };
    assert_eq!(change.path, "upstreams.upstream[\"u\"].load-balancing");
    assert_eq!(change.routes, ["all"]);
    let text = render::diff_text(&diff);
    assert!(text.contains("round_robin -> least_connections"), "{text}");
}

#[test]
fn another_secret_is_a_change_although_it_is_shown_redacted() {
    let with = |secret: &str| {
        format!(
            r#"route "all" {{ upstream "u"; policies {{ request-headers {{ set "X-Api-Key" "{secret}" }} }} }}"#
        )
    };
    let diff = route_diff(&with("one"), &with("two"));
    let [change] = diff.settings.as_slice() else {
        panic!("{:?}", diff.settings);
    };
    assert_eq!(change.before, change.after);
    assert!(!render::diff_json(&diff).to_string().contains("two"));
    assert!(!diff.risks.is_empty());
}

#[test]
fn added_and_removed_parts_are_listed() {
    let before = around(
        r#"route "all" { upstream "u" }; route "old" { matches { path "/o" }; upstream "u" }"#,
    );
    let after = around(r#"route "all" { upstream "u" }"#).replace("10.0.0.1:80", "10.0.0.9:80");
    let found = diff(&before, &after);
    let parts = found
        .parts
        .iter()
        .map(|one| format!("{} {}", one.change.name(), one.part));
    assert_eq!(
        parts.collect::<Vec<_>>(),
        [
            "removed route old",
            "removed target 10.0.0.1:80 of upstream u",
            "added target 10.0.0.9:80 of upstream u"
        ]
    );
    let drained: Vec<_> = found
        .drained
        .iter()
        .map(|one| one.connections.to_string())
        .collect();
    assert_eq!(
        drained,
        [
            "streams of route old, after the drain time",
            "streams to 10.0.0.1:80 of upstream u, after the drain time"
        ]
    );
}

#[test]
fn connections_of_a_listener_end_by_its_own_settings_and_by_limits_of_heads() {
    let before = around(r#"route "all" { upstream "u" }"#);
    let with = |listener: &str, limits: &str| {
        let own = format!("address \"127.0.0.1:80\"; {listener}");
        let after = before.replace("address \"127.0.0.1:80\"", &own);
        let found = diff(&before, &format!("{after} limits {{ {limits} }}"));
        found
            .drained
            .iter()
            .flat_map(|one| one.settings.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(with("", "max-in-flight-requests 5"), [""; 0]);
    assert_eq!(with("via #true", ""), [""; 0]);
    assert_eq!(with("h2c #true", ""), ["listeners.listener[\"main\"].h2c"]);
    assert_eq!(
        with("timeouts { header-secs 3 }", ""),
        ["listeners.listener[\"main\"].timeouts.header-secs"]
    );
    assert_eq!(with("", "max-header-count 50"), ["limits.max-header-count"]);
}
