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
fn defaults_of_a_new_target_and_of_a_removed_one_are_not_listed() {
    let routes = r#"route "all" { upstream "u" }"#;
    let before = around(routes);
    let target = r#"target "10.0.0.1:80""#;
    let paths = |new_target: &str| {
        let found = diff(&before, &before.replace(target, new_target));
        let paths = found.settings.into_iter().map(|change| change.path);
        paths.collect::<Vec<_>>()
    };
    let own = |target: &str, name: &str| {
        format!("upstreams.upstream[\"u\"].targets.target[\"{target}\"].{name}")
    };
    let (old, new) = ("10.0.0.1:80", "10.0.0.9:80");
    let addresses = [own(old, "address"), own(new, "address")];
    assert_eq!(paths(r#"target "10.0.0.9:80""#), addresses);
    let [removed, added] = addresses;
    let written = [removed, added, own(new, "weight")];
    assert_eq!(paths(r#"target "10.0.0.9:80" weight=1"#), written);
    // A default that takes effect in a target that stays is a change.
    assert_eq!(
        paths(r#"target "10.0.0.1:80" weight=2"#),
        [own(old, "weight")]
    );
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
fn listeners_and_their_certificates_are_parts() {
    let with = |listeners: &str| {
        format!(
            r#"listeners {{ {listeners} }}
               routes {{ route "all" {{ respond 200 "ok" }} }}"#
        )
    };
    let tls = |second: &str| {
        format!(
            r#"listener "main" {{
                 address "127.0.0.1:443"
                 protocol "https"
                 tls {{
                   certificate {{ cert-file "a.pem"; key-file "a.key" }}
                   certificate {{ cert-file "{second}.pem"; key-file "{second}.key" }}
                 }}
               }}"#
        )
    };
    let plain = |name: &str| format!(r#"listener "{name}" {{ address "127.0.0.1:80" }}"#);
    let before = with(&[tls("b"), plain("old")].join("\n"));
    let after = with(&[tls("c"), plain("new")].join("\n"));
    let found = diff(&before, &after);
    let parts = found.parts.iter();
    let parts = parts.map(|one| format!("{} {}", one.change.name(), one.part));
    assert_eq!(
        parts.collect::<Vec<_>>(),
        [
            "added listener new",
            "removed listener old",
            "removed certificate b.pem of listener main",
            "added certificate c.pem of listener main",
        ]
    );
}

#[test]
fn a_preset_names_each_field_that_comes_and_goes() {
    let with = |edits: &str| {
        format!(r#"route "all" {{ upstream "u"; policies {{ response-headers {{ {edits} }} }} }}"#)
    };
    let [none, basic, strict] = [
        r#"remove "Server""#,
        r#"preset "basic""#,
        r#"preset "strict""#,
    ]
    .map(with);
    let text = |before: &str, after: &str| render::diff_text(&route_diff(before, after));
    let (new, stricter, laxer) = (
        text(&none, &basic),
        text(&basic, &strict),
        text(&strict, &basic),
    );
    assert!(new.contains("x-content-type-options"), "{new}");
    let hsts = "strict-transport-security";
    assert!(!new.contains(hsts), "{new}");
    assert!(stricter.contains(hsts), "{stricter}");
    assert!(laxer.contains(hsts), "{laxer}");
    assert!(laxer.contains("header-edit-removed"), "{laxer}");
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
