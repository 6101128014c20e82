//! Routes and upstreams of another name that answer the same requests by the same settings.

use crate::support::{around, classes, diff, route_diff};
use proxy_plan::diff::RiskClass;

const SHOP: &str = r#"route "shop" { matches { path-prefix "/shop" }; upstream "u"; agents "waf"; policies { max-body-size "1MB" } }"#;
const CATCH_ALL_ROUTE: &str = r#"route "rest" { matches { path-prefix "/" }; upstream "v" }"#;

fn successors(before: &str, after: &str) -> Vec<String> {
    let diff = route_diff(before, after);
    let pairs = diff.successors.iter();
    pairs.map(|(old, new)| format!("{old} -> {new}")).collect()
}

#[test]
fn a_renamed_split_or_joined_route_is_succeeded_by_those_of_other_names() {
    let before = format!("{SHOP}\n{CATCH_ALL_ROUTE}");
    let renamed = before.replace("\"shop\"", "\"store\"");
    assert_eq!(successors(&before, &renamed), ["shop -> store"]);
    let part = SHOP
        .replace("\"shop\"", "\"carts\"")
        .replace("\"/shop\"", "\"/shop/cart\"");
    let split = format!("{SHOP}\n{part}\n{CATCH_ALL_ROUTE}");
    assert_eq!(successors(&before, &split), ["shop -> carts"]);
    assert_eq!(successors(&split, &before), ["carts -> shop"]);
    assert_eq!(successors(&before, &before), [""; 0]);
}

#[test]
fn a_route_of_another_name_that_answers_otherwise_is_not_a_successor() {
    let before = format!("{SHOP}\n{CATCH_ALL_ROUTE}");
    let renamed = before.replace("\"shop\"", "\"store\"");
    for (from, to) in [
        ("upstream \"u\"", "upstream \"v\""),
        ("agents \"waf\"; ", ""),
        ("\"1MB\"", "\"1KB\""),
        (
            "upstream \"u\"; agents \"waf\"; policies { max-body-size \"1MB\" }",
            "respond 503",
        ),
    ] {
        let other = renamed.replacen(from, to, 1);
        assert_ne!(other, renamed);
        assert_eq!(successors(&before, &other), [""; 0], "{from} -> {to}");
    }
    // Requests with other methods have another route.
    let narrower = renamed.replace(
        "path-prefix \"/shop\"",
        "path-prefix \"/shop\"; method \"GET\"",
    );
    assert_eq!(successors(&before, &narrower), ["shop -> store"]);
}

#[test]
fn an_upstream_of_another_name_with_equal_settings_moves_no_request() {
    let routes = format!("{SHOP}\n{CATCH_ALL_ROUTE}");
    let before = around(&routes);
    let renamed = before.replace("\"u\"", "\"goods\"");
    let found = diff(&before, &renamed);
    assert_eq!(classes(&found), [RiskClass::Unlisted], "{:?}", found.risks);
    for (from, to) in [
        ("10.0.0.1:80", "10.0.0.3:80"),
        (
            "target \"10.0.0.1:80\"",
            "target \"10.0.0.1:80\"; protocol \"h2\"",
        ),
    ] {
        let other = renamed.replace(from, to);
        assert_ne!(other, renamed);
        let found = classes(&diff(&before, &other));
        assert!(found.contains(&RiskClass::RequestsMoved), "{to}: {found:?}");
    }
}
