//! Risks of changes that move no answered request: pages in place of refusals, and requests that
//! nodes send without a client's request.

use crate::support::{around, classes, diff, route_diff};
use proxy_plan::diff::{Risk, RiskClass};

const SITE: &str = r#"
    route "site" { matches { host "shop.test"; path-prefix "/app" }; upstream "u" }
    route "gone" { matches { host "shop.test"; path "/gone" }; respond 404 "gone" }
    route "none" { matches { host "shop.test"; path "/none" }; service-type "builtin"; builtin-handler "not-found" }
"#;
const PAGE: &str =
    r#"{ body "<script src=https://other.test></script>"; content-type "text/html" }"#;

#[test]
fn a_page_in_place_of_a_refusal_is_unlisted() {
    let new = |route: &str| format!("{SITE} {route}");
    let login = r#"matches { host "shop.test"; path "/login" }"#;
    let cases = [
        new(&format!("route \"x\" {{ {login}; respond 404 {PAGE} }}")),
        new(&format!("route \"x\" {{ {login}; respond 401 {PAGE} }}")),
        // The response to every host that no route names.
        new(&format!("route \"x\" {{ respond 503 {PAGE} }}")),
        SITE.replace("route \"gone\"", "route \"gone2\"")
            .replace("respond 404 \"gone\"", &format!("respond 410 {PAGE}")),
        SITE.replace("route \"none\"", "route \"none2\"").replace(
            "service-type \"builtin\"; builtin-handler \"not-found\"",
            &format!("respond 404 {PAGE}"),
        ),
        new(&format!(
            "route \"x\" {{ {login}; service-type \"builtin\"; builtin-handler \"not-found\"; \
             policies {{ response-headers {{ set \"Set-Cookie\" \"a=b\" }} }} }}"
        )),
    ];
    for after in cases {
        let found = classes(&route_diff(SITE, &after));
        assert_eq!(found, [RiskClass::Unlisted], "{after}");
    }
    let page = SITE.replace("respond 404 \"gone\"", &format!("respond 404 {PAGE}"));
    assert_eq!(
        classes(&route_diff(SITE, &page)),
        [RiskClass::AnswerChanged]
    );
}

/// The risks of one more block of tests.
fn test_risks(before: &str, after: &str) -> Vec<Risk> {
    let config = |tests: &str| match tests {
        "" => around(SITE),
        tests => format!("{} tests {{ {tests} }}", around(SITE)),
    };
    diff(&config(before), &config(after)).risks
}

/// A live test of a route that stays, with the flag that an unsafe method requires.
fn live(name: &str, request: &str) -> String {
    let is_safe = ["GET", "HEAD", "OPTIONS"]
        .iter()
        .any(|method| request.contains(&format!("request \"{method}\"")));
    let unsafe_too = if is_safe { "" } else { "; live-unsafe #true" };
    format!(r#"test "{name}" {{ {request}; live #true{unsafe_too}; expect {{ upstream "u" }} }}"#)
}

#[test]
fn a_live_test_is_a_risk_by_its_request() {
    let request = |method: &str, rest: &str| {
        live(
            "a",
            &format!(r#"request "{method}" "http://shop.test/app/1{rest}""#),
        )
    };
    let unsafe_test = RiskClass::UnsafeLiveTest;
    let header = |field: &str| {
        live(
            "a",
            &format!(r#"request "GET" "http://shop.test/app/1"; header {field}"#),
        )
    };
    let cases = [
        (request("GET", ""), RiskClass::Unlisted),
        (request("HEAD", "?page=2"), RiskClass::Unlisted),
        (request("DELETE", ""), unsafe_test),
        (request("POST", ""), unsafe_test),
        (request("get", ""), unsafe_test),
        (request("GET", "?access_token=1"), unsafe_test),
        (header(r#""X-Version" "2""#), RiskClass::Unlisted),
        (header(r#""Authorization" "Bearer x""#), unsafe_test),
        (header(r#""Cookie" "a=b""#), unsafe_test),
        (header(r#""X-Api-Key" "1""#), unsafe_test),
    ];
    for (test, class) in cases {
        let risks = test_risks("", &test);
        let [risk] = risks.as_slice() else {
            panic!("{test}: {risks:?}");
        };
        assert_eq!(
            (risk.class, risk.subject.as_str()),
            (class, "live test a"),
            "{test}"
        );
        assert!(!risk.change.contains("access_token=1"), "{risk:?}");
        assert_eq!(test_risks(&test, &test), [], "{test}");
        let gone = test_risks(&test, "");
        let gone: Vec<RiskClass> = gone.iter().map(|risk| risk.class).collect();
        assert_eq!(gone, [RiskClass::TestsRemoved], "{test}");
    }
}

#[test]
fn a_live_test_that_differs_is_a_risk_and_another_name_is_none() {
    let one = live(
        "a",
        r#"request "POST" "http://shop.test/app/1"; upload-bytes 10"#,
    );
    assert_eq!(
        test_risks(&one, &one.replace("test \"a\"", "test \"b\"")),
        []
    );
    for (from, to) in [
        ("/app/1", "/app/2"),
        ("\"POST\"", "\"DELETE\""),
        ("upload-bytes 10", "upload-bytes 11"),
        ("; live #true", "; header \"x-a\" \"1\"; live #true"),
        ("upstream \"u\"", "upstream \"u\"; answer-status 500"),
    ] {
        assert!(one.contains(from), "{from}");
        let risks = test_risks(&one, &one.replace(from, to));
        assert_eq!(risks.len(), 1, "{from} -> {to}: {risks:?}");
    }
    // The copy of a live test is sent, too.
    let twice = format!("{one}\n{}", one.replace("test \"a\"", "test \"b\""));
    assert_eq!(test_risks(&one, &twice).len(), 1);
    // The test was not a live test before.
    let still = r#"test "a" { request "GET" "http://shop.test/app/1"; expect { upstream "u" } }"#;
    let sent = still.replace("; expect", "; live #true; expect");
    assert_eq!(test_risks(still, &sent).len(), 1);
    assert_eq!(test_risks("", still), []);
}

#[test]
fn a_new_upstream_that_is_asked_is_unlisted_though_no_route_names_it() {
    let before = around(SITE);
    let upstream = |rest: &str| {
        format!("{before} upstreams {{ upstream \"w\" {{ target \"10.9.9.9:80\"; {rest} }} }}")
    };
    let asked = [
        r#"health-check { type "http" { path "/admin/restart?now=1" }; interval-secs 2; timeout-secs 1 }"#,
        r#"health-check { type "tcp"; interval-secs 5 }"#,
    ];
    for check in asked {
        let found = diff(&before, &upstream(check)).risks;
        let [risk] = found.as_slice() else {
            panic!("{check}: {found:?}");
        };
        assert_eq!(risk.class, RiskClass::Unlisted);
        assert_eq!(risk.subject, "upstream w");
    }
    assert_eq!(diff(&before, &upstream("")).risks, []);
}
