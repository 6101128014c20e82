//! Regions of requests that move.

use crate::support::{around, diff, lines, plan, route_diff};
use proxy_plan::diff::{DiffLimit, RiskClass};
use proxy_plan::{AssumeHealthy, render};
use std::fmt::Write;

const TWO: &str = r#"
    route "api" { matches { host "shop.test"; path-prefix "/api" }; upstream "u" }
    route "site" { matches { path-prefix "/" }; upstream "v" }
"#;

#[test]
fn the_same_configuration_has_no_difference() {
    let diff = route_diff(TWO, TWO);
    assert!(diff.is_same());
    assert_eq!(diff.risks, []);
    assert!(render::diff_text(&diff).contains("answered the same"));
}

#[test]
fn comments_and_written_defaults_make_no_difference() {
    let written = TWO.replace(
        "route \"api\" {",
        "// the shop\nroute \"api\" { priority 50;",
    );
    assert!(route_diff(TWO, &written).is_same());
}

#[test]
fn an_order_that_moves_no_request_makes_no_difference() {
    let other = r#"
        route "site" { matches { path-prefix "/" }; upstream "v" }
        route "api" { matches { host "shop.test"; path-prefix "/api" }; upstream "u" }
    "#;
    assert!(route_diff(TWO, other).is_same());
}

#[test]
fn a_prefix_that_moves_is_one_region_with_an_example() {
    let after = TWO.replace("/api", "/v2");
    let diff = route_diff(TWO, &after);
    assert_eq!(
        lines(&diff),
        [
            "shop.test /api/…: api (upstream u) -> site (upstream v)",
            "shop.test /v2/…: site (upstream v) -> api (upstream u)",
        ]
    );
    let (old, new) = (plan(&around(TWO)), plan(&around(&after)));
    for region in &diff.regions {
        let before = region.example.ask(&old, &AssumeHealthy::new(&old)).unwrap();
        let after = region.example.ask(&new, &AssumeHealthy::new(&new)).unwrap();
        assert_ne!(before.answerer, after.answerer);
    }
    assert_eq!(diff.regions[0].example.url, "http://shop.test/api");
}

#[test]
fn a_route_for_all_hosts_moves_every_host() {
    let before = r#"route "all" { upstream "u" }"#;
    let after = r#"route "all" { upstream "v" }"#;
    assert_eq!(
        lines(&route_diff(before, after)),
        ["* *: all (upstream u) -> all (upstream v)"]
    );
}

#[test]
fn conditions_on_methods_headers_and_queries_limit_a_region() {
    let before = r#"route "all" { upstream "u" }"#;
    let with = |conditions: &str| {
        let after =
            format!(r#"route "new" {{ matches {{ {conditions} }}; upstream "v" }}; {before}"#);
        lines(&route_diff(before, &after))
    };
    let moved = "all (upstream u) -> new (upstream v)";
    assert_eq!(
        with(r#"method "PUT""#),
        [format!("* * [method PUT]: {moved}")]
    );
    assert_eq!(
        with(r#"header "X-Env: beta""#),
        [format!("* * [header x-env: beta]: {moved}")]
    );
    assert_eq!(
        with(r#"header "X-Env""#),
        [format!("* * [header x-env with any value]: {moved}")]
    );
    assert_eq!(
        with(r#"query-param "v=2""#),
        [format!("* * [query-param v=2]: {moved}")]
    );
    assert_eq!(
        with(r#"header "Authorization: s3cret""#),
        [format!("* * [header authorization: (redacted)]: {moved}")]
    );
}

#[test]
fn secrets_of_conditions_are_not_in_the_output() {
    let before = r#"route "all" { upstream "u" }"#;
    let after = format!(
        r#"route "new" {{
            matches {{ header "X-Api-Key: s3cret"; query-param "token=s3cret" }}
            upstream "v"
        }}; {before}"#
    );
    let diff = route_diff(before, &after);
    assert_eq!(diff.regions.len(), 1);
    for output in [
        render::diff_text(&diff),
        render::diff_json(&diff).to_string(),
    ] {
        assert!(!output.contains("s3cret"), "{output}");
    }
}

#[test]
fn a_default_route_is_part_of_its_listener() {
    let routes = r#"routes { route "api" { matches { path "/api" }; upstream "u" } }"#;
    let upstream = r#"upstreams { upstream "u" { target "10.0.0.1:80" } }"#;
    let with = |more: &str| {
        format!(
            r#"listeners {{
                listener "plain" {{ address "127.0.0.1:80" }}
                listener "inner" {{ address "127.0.0.1:81"; {more} }}
            }}; {routes}; {upstream}"#
        )
    };
    let diff = diff(&with(""), &with(r#"default-route "api""#));
    assert_eq!(diff.regions.len(), 1, "{:?}", lines(&diff));
    assert_eq!(diff.regions[0].listeners, ["inner"]);
    assert_eq!(diff.regions[0].before.to_string(), "404 route_not_found");
}

#[test]
fn regexes_are_compared_by_samples_and_reported_as_such() {
    let before = r#"
        route "images" { matches { path-regex "\\.(png|jpe?g)$" }; upstream "u" }
        route "site" { matches { path-prefix "/" }; upstream "v" }
    "#;
    let after = before.replace("jpe?g", "gif");
    let diff = route_diff(before, &after);
    assert_eq!(diff.sampled_regexes.len(), 2);
    let found = lines(&diff);
    let has = |text: &str| found.iter().any(|line| line.contains(text));
    assert!(has("images (upstream u) -> site (upstream v)"), "{found:?}");
    assert!(has("site (upstream v) -> images (upstream u)"), "{found:?}");
    assert!(diff.regions.iter().any(|region| region.paths[0].is_sampled));
}

#[test]
fn a_route_that_other_routes_cover_is_unreachable() {
    let after = format!(
        r#"{TWO} route "new" {{ priority 90; matches {{ host "shop.test" }}; upstream "v" }}"#
    );
    let diff = route_diff(TWO, &after);
    assert_eq!(diff.unreachable, ["api"]);
    // Covered by two routes together.
    let after = format!(
        r#"{TWO} route "all" {{ priority 90; matches {{ path-prefix "/api/" }}; upstream "v" }}
           route "one" {{ priority 90; matches {{ path "/api" }}; upstream "v" }}"#
    );
    assert_eq!(route_diff(TWO, &after).unreachable, ["api"]);
}

#[test]
fn a_limit_of_the_comparison_that_is_reached_is_named() {
    let mut conditions = String::new();
    for number in 0..14 {
        _ = write!(conditions, r#"header "X-{number}"; "#);
    }
    let before = r#"route "all" { upstream "u" }"#;
    let after = format!(r#"route "new" {{ matches {{ {conditions} }}; upstream "v" }}; {before}"#);
    let diff = route_diff(before, &after);
    assert_eq!(diff.limits, [DiffLimit::Combinations]);
    assert!(!diff.is_same());
    assert!(!diff.regions.is_empty());
}

#[test]
fn hundreds_of_hosts_that_move_alike_are_one_region() {
    let hosts = |upstream: &str| -> String {
        let route = |number: u32| {
            format!(
                r#"route "r{number}" {{ matches {{ host "h{number}.test"; path-prefix "/p{number}" }}; upstream "u" }}
                "#
            )
        };
        let own: String = (0..300).map(route).collect();
        format!(
            r#"{own} route "login" {{ priority 90; matches {{ path "/login" }}; upstream "{upstream}" }}"#
        )
    };
    let diff = route_diff(&hosts("u"), &hosts("v"));
    assert_eq!(
        lines(&diff),
        ["* /login: login (upstream u) -> login (upstream v)"]
    );
}

#[test]
fn a_route_that_is_bound_to_a_listener_moves_requests_of_the_others() {
    let config = |listeners: &str| {
        format!(
            r#"
            listeners {{
                listener "plain" {{ address "127.0.0.1:80" }}
                listener "inner" {{ address "127.0.0.1:81" }}
            }}
            routes {{ route "site" {{ respond 200 "x"; {listeners} }} }}
            "#
        )
    };
    let diff = diff(&config(""), &config(r#"listeners "inner""#));
    let [region] = diff.regions.as_slice() else {
        panic!("{:?}", diff.regions);
    };
    assert_eq!(region.listeners, ["plain"]);
    assert_eq!(region.after.to_string(), "404 route_not_found");
    let classes: Vec<_> = diff.risks.iter().map(|risk| risk.class).collect();
    assert!(classes.contains(&RiskClass::RequestsRefused), "{classes:?}");
}
