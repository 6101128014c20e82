//! Classes of risk.

use crate::support::{around, classes, diff, route_diff};
use proxy_plan::diff::{RiskClass, risks_page};
use proxy_plan::render;

const GUARDED: &str = r#"
    route "api" {
        matches { path-prefix "/api" }
        upstream "u"
        agents "waf" "jwt"
        policies {
            rate-limit { requests-per-second 100 }
            max-body-size "1MB"
            request-headers { set "X-Tenant" "a" }
            response-headers { set "X-Frame-Options" "DENY"; remove "X-Inner" }
        }
    }
    route "site" { upstream "v" }
"#;

const PINNED: &str =
    r#"tls { sni "v.test"; pin-sha256 "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM=" }"#;

/// The classes of a change of [`GUARDED`] by replacing a text.
fn by_replacing(from: &str, to: &str) -> Vec<RiskClass> {
    assert!(GUARDED.contains(from), "{from}");
    classes(&route_diff(GUARDED, &GUARDED.replace(from, to)))
}

#[test]
fn each_loss_of_a_guard_has_its_class() {
    let cases = [
        (
            r#"agents "waf" "jwt""#,
            r#"agents "waf""#,
            RiskClass::AgentRemoved,
        ),
        (r#"remove "X-Inner""#, "", RiskClass::InnerHeaderExposed),
        (
            r#"set "X-Frame-Options" "DENY";"#,
            "",
            RiskClass::HeaderEditRemoved,
        ),
        (r#"set "X-Tenant" "a""#, "", RiskClass::HeaderEditRemoved),
        (
            "rate-limit { requests-per-second 100 }",
            "",
            RiskClass::LimitRemoved,
        ),
        (
            "requests-per-second 100",
            "requests-per-second 10",
            RiskClass::LimitTightened,
        ),
        ("\"1MB\"", "\"10KB\"", RiskClass::LimitTightened),
        (
            "max-body-size",
            "buffer-responses #true; max-body-size",
            RiskClass::BodyHeld,
        ),
        (
            r#"route "site" { upstream "v" }"#,
            "",
            RiskClass::RequestsRefused,
        ),
        (
            r#"upstream "u""#,
            r#"upstream "v""#,
            RiskClass::RequestsMoved,
        ),
        (
            "path-prefix \"/api\"",
            "path-prefix \"/api/\"",
            RiskClass::FewerGuards,
        ),
    ];
    for (from, to, class) in cases {
        let found = by_replacing(from, to);
        assert!(found.contains(&class), "{from} -> {to}: {found:?}");
    }
}

#[test]
fn responses_that_more_requests_share_have_their_class() {
    let site = |cache: &str| format!("route \"site\" {{ upstream \"v\"; {cache} }}");
    let cached = "cache { ttl-secs 60; key-headers \"x-device\"; ignore-query \"a\" }";
    let shares = |before: &str, after: &str| {
        let found = classes(&route_diff(&site(before), &site(after)));
        found.contains(&RiskClass::ResponsesShared)
    };
    for (before, after) in [
        ("", "cache"),
        ("cache", cached),
        (
            cached,
            "cache { ttl-secs 61; key-headers \"x-device\"; ignore-query \"a\" }",
        ),
        (cached, "cache { ttl-secs 60; ignore-query \"a\" }"),
        (
            cached,
            "cache { ttl-secs 60; key-headers \"x-device\"; ignore-query \"a\" \"b\" }",
        ),
        ("cache { statuses 200 }", "cache { statuses 200 302 }"),
    ] {
        assert!(shares(before, after), "{before} -> {after}");
    }
    for (before, after) in [
        ("cache", ""),
        (cached, "cache { ttl-secs 60; key-headers \"x-device\" }"),
        ("cache { statuses 200 302 }", "cache { statuses 200 }"),
        ("cache", "cache { cache-status #true; collapse-secs 1 }"),
    ] {
        assert!(!shares(before, after), "{before} -> {after}");
    }
}

#[test]
fn changes_of_agents_listeners_and_upstreams_have_their_classes() {
    let before = r#"
        listeners { listener "main" { address "127.0.0.1:80" }; listener "two" { address "127.0.0.1:81" } }
        upstreams { upstream "u" { target "10.0.0.1:443"; tls { sni "u.test" } } }
        upstreams { upstream "v" { target "10.0.0.9:443"; PINNED } }
        agents { agent "waf" { unix-socket "/run/waf.sock"; failure-mode "closed" } }
        routes { route "all" { matches { path "/" }; upstream "u"; agents "waf" } }
        routes { route "pinned" { matches { path "/pinned" }; upstream "v" } }
    "#
    .replace("PINNED", PINNED);
    let before = before.as_str();
    let cases = [
        ("\"closed\"", "\"open\"", RiskClass::AgentFailsOpen),
        (
            "listener \"two\" { address \"127.0.0.1:81\" }",
            "",
            RiskClass::ListenerRemoved,
        ),
        ("127.0.0.1:81", "127.0.0.1:82", RiskClass::ListenerRemoved),
        (
            "tls { sni \"u.test\" }",
            "",
            RiskClass::VerificationWeakened,
        ),
        ("u.test", "w.test", RiskClass::VerificationWeakened),
        (
            PINNED,
            "tls { sni \"v.test\" }",
            RiskClass::VerificationWeakened,
        ),
        (
            "pin-sha256 \"d6qz",
            "pin-sha256 \"e6qz",
            RiskClass::VerificationWeakened,
        ),
        (
            "sni \"v.test\"",
            "sni \"v.test\"; verify #false",
            RiskClass::VerificationWeakened,
        ),
        (
            "address \"127.0.0.1:81\"",
            "address \"127.0.0.1:81\"; default-route \"all\"",
            RiskClass::DefaultRouteChanged,
        ),
        (
            "failure-mode \"closed\"",
            "failure-mode \"closed\"; events \"request-body\"",
            RiskClass::BodyHeld,
        ),
        ("10.0.0.1:443", "10.0.0.2:443", RiskClass::TargetsChanged),
    ];
    for (from, to, class) in cases {
        assert!(before.contains(from), "{from}");
        let found = classes(&diff(before, &before.replace(from, to)));
        assert!(found.contains(&class), "{from} -> {to}: {found:?}");
    }
}

#[test]
fn harmless_changes_have_no_risk() {
    let before = around(GUARDED);
    let cases = [
        format!("// a comment\n{before}"),
        format!("{before}\nupstreams {{ upstream \"w\" {{ target \"10.0.0.3:80\" }} }}"),
        format!(
            "{before}\ntests {{ test \"t\" {{ request \"GET\" \"/api\"; expect {{ route \"api\" }} }} }}"
        ),
        before.replace("route \"site\" {", "route \"site\" { priority 50;"),
    ];
    for after in cases {
        assert_eq!(diff(&before, &after).risks, [], "{after}");
    }
}

#[test]
fn a_wider_limit_is_of_no_class_but_is_not_known_to_be_harmless() {
    assert_eq!(by_replacing("\"1MB\"", "\"2MB\""), [RiskClass::Unlisted]);
}

#[test]
fn every_class_is_on_the_page() {
    let page = risks_page();
    for class in RiskClass::ALL {
        assert!(page.contains(&format!("| `{class}` |")), "{class}");
    }
}

#[test]
fn the_wrong_order_of_the_page_on_changes_is_a_risk() {
    let page = include_str!("../../../../docs/operate/change-validation.md");
    let block = page.split("```kdl\n").nth(1).unwrap();
    let after = block.split("```").next().unwrap_or_default();
    let before = after.replace("priority \"high\"; ", "");
    let found = diff(&before, after);
    let shown = render::diff_text(&found);
    let story = page.split("```text\n").nth(1).unwrap().split("```").next();
    for line in story.unwrap().lines() {
        assert!(shown.contains(line.trim()), "{line} is not in:\n{shown}");
    }
}

#[test]
fn redirects_and_responses_are_answers_of_their_own() {
    let moved = |after: &str| {
        let before = r#"route "site" { upstream "u" }"#;
        classes(&route_diff(
            before,
            &format!("route \"site\" {{ {after} }}"),
        ))
    };
    assert!(moved(r#"redirect "https""#).contains(&RiskClass::RequestsMoved));
    assert!(moved(r#"respond 200 "x""#).contains(&RiskClass::RequestsMoved));
    assert!(moved("respond 410").contains(&RiskClass::RequestsRefused));
    assert!(moved(r#"respond 503 "x""#).contains(&RiskClass::RequestsRefused));
    let before = r#"route "site" { redirect "https://a.test" }"#;
    let diff = route_diff(before, &before.replace("a.test", "b.test"));
    let text = render::diff_text(&diff);
    assert!(text.contains("redirect 302 https://b.test"), "{text}");
    let same = route_diff(before, before);
    assert!(same.is_same());
}

#[test]
fn networks_of_clients_are_guards() {
    let config = |access: &str| format!(r#"route "site" {{ upstream "u"; {access} }}"#);
    let changed = |before: &str, after: &str| classes(&route_diff(&config(before), &config(after)));
    let (wider, refused) = (RiskClass::AccessWidened, RiskClass::RequestsRefused);
    let one = r#"allow "10.0.0.0/8""#;
    let two = r#"allow "10.0.0.0/8" "192.0.2.0/24""#;
    let deny = r#"deny "192.0.0.0/16""#;
    for (before, after, class) in [
        (one, two, wider),
        (one, "", wider),
        (deny, "", wider),
        (two, one, refused),
        ("", one, refused),
        ("", deny, refused),
    ] {
        let found = changed(before, after);
        assert_eq!(found, [class], "{before} -> {after}");
    }
    assert_eq!(changed(one, one), []);
    let copied = format!(
        r#"{}; route "open" {{ matches {{ path "/a" }}; upstream "u" }}"#,
        config(one)
    );
    let classes = classes(&route_diff(&config(one), &copied));
    assert!(classes.contains(&RiskClass::FewerGuards), "{classes:?}");
}

#[test]
fn another_path_for_the_upstream_is_a_move() {
    let config = |rewrite: &str| format!(r#"route "site" {{ upstream "u"; {rewrite} }}"#);
    let found = classes(&route_diff(
        &config(""),
        &config(r#"rewrite { strip-prefix "/a" }"#),
    ));
    assert!(found.contains(&RiskClass::RequestsMoved), "{found:?}");
    assert!(!found.contains(&RiskClass::Unlisted), "{found:?}");
}

#[test]
fn rules_of_tokens_are_guards() {
    let keys = "jwks-url \"http://id.test/keys\"; jwks-upstream \"u\"";
    let jwt = |rest: &str| {
        format!(
            "route \"site\" {{ upstream \"u\"; jwt {{ issuer \"https://id.test\"; {keys}; {rest} }} }}"
        )
    };
    let none = "route \"site\" { upstream \"u\" }".to_owned();
    let (wider, refused) = (RiskClass::AccessWidened, RiskClass::RequestsRefused);
    let one = jwt("audience \"api\"");
    for (before, after, class) in [
        (&none, &one, refused),
        (&one, &none, wider),
        (&one, &jwt("audience \"api\" \"web\""), wider),
        (&jwt("audience \"api\" \"web\""), &one, refused),
        (
            &one,
            &one.replace("https://id.test", "https://other.test"),
            wider,
        ),
        (
            &one,
            &one.replace("http://id.test", "http://keys.test"),
            wider,
        ),
        (&one, &jwt("audience \"api\"; require-scope \"a\""), refused),
        (&jwt("audience \"api\"; require-scope \"a\""), &one, wider),
        (
            &one,
            &jwt("audience \"api\"; require-claim \"a\" \"b\""),
            refused,
        ),
        (
            &jwt("audience \"api\"; require-claim \"a\" \"b\""),
            &one,
            wider,
        ),
        (
            &one,
            &jwt("audience \"api\"; algorithms \"ES256\""),
            refused,
        ),
        (&jwt("audience \"api\"; algorithms \"ES256\""), &one, wider),
        (&one, &jwt("audience \"api\"; clock-skew-secs 600"), wider),
        (&one, &jwt("audience \"api\"; clock-skew-secs 1"), refused),
    ] {
        let found = classes(&route_diff(before, after));
        assert!(found.contains(&class), "{before} -> {after}: {found:?}");
        let opposite = if class == wider { refused } else { wider };
        assert!(!found.contains(&opposite), "{before} -> {after}: {found:?}");
    }
    let open = format!("{one}; route \"open\" {{ matches {{ path \"/a\" }}; upstream \"u\" }}");
    let found = classes(&route_diff(&one, &open));
    assert!(found.contains(&RiskClass::FewerGuards), "{found:?}");
}
