//! Tests inside a configuration.

use proxy_model::FailedTest;
use proxy_plan::failed_tests;
use std::fmt::Write;
use std::time::{Duration, Instant};

const SHOP: &str = r#"
    listeners {
        listener "plain" { address "127.0.0.1:80" }
        listener "inner" { address "127.0.0.1:81"; default-route "status" }
    }
    routes {
        route "beta" { priority 100; matches { header "X-Env" "beta" }; upstream "beta" }
        route "api" { matches { path-prefix "/api"; method "GET" }; upstream "api"; agents "waf" "jwt" }
        route "status" {
            matches { path "/status" }
            service-type "builtin"; builtin-handler "status"
        }
    }
    upstreams {
        upstream "api" { target "127.0.0.1:8080" }
        upstream "beta" { target "127.0.0.1:8081" }
    }
    agents {
        agent "waf" { unix-socket "/run/waf.sock"; failure-mode "closed" }
        agent "jwt" { unix-socket "/run/jwt.sock"; failure-mode "closed" }
    }
"#;

/// The tests of [`SHOP`] with `tests` that fail.
fn failed(tests: &str) -> Vec<FailedTest> {
    let text = format!("{SHOP}tests {{\n{tests}\n}}");
    let loaded = proxy_config::parse(&text, "shop.kdl").unwrap_or_else(|report| panic!("{report}"));
    failed_tests(&loaded.model)
}

/// How the only expectation of the only test differs from the decision.
fn difference(tests: &str) -> String {
    let failed = failed(tests);
    let [failure] = failed.as_slice() else {
        panic!("one test fails: {failed:?}");
    };
    failure.difference.clone()
}

#[test]
fn a_test_whose_expectation_holds_passes() {
    let tests = r#"
        test "the API has an upstream of its own" {
            request "GET" "/api/users?page=2"
            expect { route "api"; upstream "api" }
        }
        test "the status page is ours" {
            request "GET" "http://example.com/status"
            expect { route "status"; builtin-handler "status" }
        }
    "#;
    assert_eq!(failed(tests), []);
}

#[test]
fn a_test_whose_expectation_fails_says_what_was_decided() {
    let with = |expected: &str| {
        difference(&format!(
            r#"test "a page" {{ request "GET" "/api"; expect {{ {expected} }} }}"#
        ))
    };
    assert_eq!(with(r#"route "beta""#), "the route is `api`, not `beta`");
    assert_eq!(
        with(r#"upstream "beta""#),
        "the upstream is `api`, not `beta`"
    );
    assert_eq!(
        with(r#"builtin-handler "ready""#),
        "there is no built-in handler; the request goes to upstream `api`"
    );
    assert_eq!(
        with("status 404"),
        "there is no status of a refusal; the request goes to upstream `api`"
    );
}

#[test]
fn each_expectation_that_fails_is_told() {
    let tests = r#"test "both" {
        request "GET" "/status"
        header "Accept" "text/html"
        client-ip "192.0.2.7"
        expect { route "api"; upstream "api" }
    }"#;
    let failed = failed(tests);
    let differences: Vec<_> = failed.iter().map(|one| one.difference.as_str()).collect();
    assert_eq!(
        differences,
        [
            "the route is `status`, not `api`",
            "there is no upstream; `status` answers"
        ]
    );
    assert!(failed[0].place < failed[1].place);
    assert_eq!(
        failed[0].explain,
        "proxyd explain --config 'shop.kdl' -H 'Accept: text/html' --client-ip 192.0.2.7 GET '/status'"
    );
}

#[test]
fn the_tests_on_the_page_about_the_order_of_routes_pass() {
    let page = include_str!("../../../../docs/operate/route-order.md");
    let blocks: Vec<&str> = page.split("```kdl\n").skip(1).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        let text = block.split("```").next().unwrap_or_default();
        let loaded = proxy_config::parse(text, "route-order.md");
        let loaded = loaded.unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(failed_tests(&loaded.model), [], "{text}");
    }
}

#[test]
fn a_test_gives_headers_listener_and_client() {
    let tests = r#"
        test "testers see the next version" {
            request "GET" "/api"
            header "X-Env" "beta"
            expect { route "beta" }
        }
        test "of two fields of a name the route's is found" {
            request "GET" "/api"
            header "X-Env" "alpha"
            header "X-Env" "beta"
            expect { route "beta" }
        }
        test "the inner listener has a default route" {
            request "GET" "/nowhere"
            listener "inner"
            client-ip "192.0.2.1"
            expect { route "status" }
        }
        test "and the plain one has none" {
            request "GET" "/nowhere"
            listener "plain"
            expect { status 404 }
        }
    "#;
    assert_eq!(failed(tests), []);
}

#[test]
fn a_test_names_the_agents_that_are_asked() {
    let with = |agents: &str| {
        format!(r#"test "a page" {{ request "GET" "/api"; expect {{ agents {agents} }} }}"#)
    };
    assert_eq!(failed(&with(r#""waf" "jwt""#)), []);
    assert_eq!(
        difference(&with(r#""jwt" "waf""#)),
        "the list of agents is `waf jwt`, not `jwt waf`"
    );
    let nobody = r#"test "a page" { request "GET" "/status"; expect { agents "waf" } }"#;
    assert_eq!(
        difference(nobody),
        "there is no list of agents; `status` answers"
    );
}

#[test]
fn a_test_expects_a_refusal() {
    let with = |expected: &str| {
        format!(r#"test "a page" {{ request "POST" "/api"; expect {{ {expected} }} }}"#)
    };
    assert_eq!(failed(&with(r#"status 404; reason "route_not_found""#)), []);
    assert_eq!(
        difference(&with("status 403")),
        "the status of a refusal is `404`, not `403`"
    );
    assert_eq!(
        difference(&with(r#"reason "ambiguous_path""#)),
        "the reason of a refusal is `route_not_found`, not `ambiguous_path`"
    );
    assert_eq!(
        difference(&with(r#"upstream "api""#)),
        "there is no upstream; the request is refused with 404 (route_not_found)"
    );
}

#[test]
fn a_request_that_no_client_could_send_fails_its_test() {
    let tests = r#"test "a page" { request "GET" "no path"; expect { status 404 } }"#;
    assert_eq!(
        difference(tests),
        "`no path` is neither a path that begins with `/` nor an http or https URL"
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the time itself is tested")]
fn tests_do_not_explain_every_route_that_loses() {
    // The reasons of 2 000 routes for each of 2 000 tests took minutes, and a gigabyte.
    let mut text =
        String::from("listeners { listener \"a\" { address \"127.0.0.1:80\" } }\nroutes {\n");
    for number in 0..2_000 {
        writeln!(
            text,
            "route \"r{number}\" {{ matches {{ host \"h{number}\"; query-param \"q{number}\" }}; service-type \"builtin\"; builtin-handler \"health\" }}"
        )
        .unwrap();
    }
    text.push_str("}\ntests {\n");
    for number in 0..2_000 {
        writeln!(
            text,
            "test \"t{number}\" {{ request \"GET\" \"http://h{number}/?q{number}\"; expect {{ route \"r{number}\" }} }}"
        )
        .unwrap();
    }
    text.push('}');
    let loaded = proxy_config::parse(&text, "x.kdl").unwrap_or_else(|report| panic!("{report}"));
    let begin = Instant::now();
    assert_eq!(failed_tests(&loaded.model), []);
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
}
