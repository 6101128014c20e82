//! Tests inside a configuration.

use proxy_model::FailedTest;
use proxy_plan::{Plan, TargetRegistry, draft_tests, failed_tests};
use std::fmt::Write;
use std::sync::Arc;
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

/// Difference between the only expectation of the only test and the decision.
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
fn a_failed_test_reports_the_actual_decision() {
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
        "there is no status of the proxy's own answer; the request goes to upstream `api`"
    );
}

#[test]
fn each_failed_expectation_is_reported() {
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
fn the_tests_on_the_pages_of_worked_examples_pass() {
    for page in [
        include_str!("../../../../docs/operate/answers.md"),
        include_str!("../../../../docs/operate/access.md"),
        include_str!("../../../../docs/operate/caching.md"),
        include_str!("../../../../docs/operate/headers.md"),
        include_str!("../../../../docs/operate/relays.md"),
        include_str!("../../../../docs/operate/rewrites.md"),
        include_str!("../../../../docs/operate/upstreams.md"),
    ] {
        for block in page.split("```kdl\n").skip(1) {
            let text = block.split("```").next().unwrap_or_default();
            let loaded = proxy_config::parse(text, "page.md");
            let loaded = loaded.unwrap_or_else(|report| panic!("{report}"));
            assert!(!loaded.model.tests.is_empty());
            assert_eq!(failed_tests(&loaded.model), [], "{text}");
        }
    }
}

const MOVED: &str = r#"
    listeners { listener "plain" { address "127.0.0.1:80" } }
    routes {
        route "apex" { matches { host "a.test" }; redirect "https://www.a.test" status=308 }
        route "gone" { matches { path "/gone" }; respond 410 }
        route "down" { matches { path "/down" }; respond 503 "back soon" }
        route "loop" { matches { path "/loop" }; redirect "/loop" }
    }
"#;

/// The tests of [`MOVED`] with `tests` that fail.
fn moved(tests: &str) -> Vec<String> {
    let text = format!("{MOVED}tests {{\n{tests}\n}}");
    let loaded = proxy_config::parse(&text, "moved.kdl");
    let loaded = loaded.unwrap_or_else(|report| panic!("{report}"));
    let failed = failed_tests(&loaded.model).into_iter();
    failed.map(|failure| failure.difference).collect()
}

#[test]
fn a_test_expects_a_redirect_and_a_response() {
    let passing = r#"
        test "apex" {
            request "GET" "http://a.test/b?c"
            expect { route "apex"; status 308; redirect "https://www.a.test/b?c" }
        }
        test "gone" { request "GET" "/gone"; expect { status 410; reason "respond_client_error" } }
        test "down" { request "GET" "/down"; expect { route "down"; status 503 } }
        test "loop" { request "GET" "http://b.test/loop"; expect { reason "redirect_loop" } }
    "#;
    assert_eq!(moved(passing), [""; 0]);
    let failing = r#"
        test "1" { request "GET" "http://a.test/"; expect { redirect "https://a.test/" } }
        test "2" { request "GET" "http://a.test/"; expect { status 301 } }
        test "3" { request "GET" "/down"; expect { redirect "https://a.test/" } }
        test "4" { request "GET" "http://a.test/"; expect { reason "route_not_found" } }
    "#;
    assert_eq!(
        moved(failing),
        [
            "the redirect is `https://www.a.test/`, not `https://a.test/`",
            "the status of the proxy's own answer is `308`, not `301`",
            "there is no redirect; the route responds with 503",
            "there is no reason of a refusal; the request is redirected to https://www.a.test/",
        ]
    );
}

#[test]
fn drafted_tests_of_redirects_and_responses_pass() {
    let loaded = proxy_config::parse(MOVED, "moved.kdl").unwrap();
    let plan = Plan::compile(
        1,
        Arc::new(loaded.model),
        &mut TargetRegistry::default().begin(),
    );
    let drafts = draft_tests(&plan);
    for expected in ["redirect \"https://www.a.test/", "status 410", "status 503"] {
        assert!(drafts.contains(expected), "{drafts}");
    }
    let text = format!("{MOVED}{drafts}");
    let loaded = proxy_config::parse(&text, "moved.kdl").unwrap();
    assert_eq!(failed_tests(&loaded.model), []);
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
        "the status of the proxy's own answer is `404`, not `403`"
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
        "`no path` is neither a path that begins with `/` nor an http, https, tcp or tls URL"
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the time itself is tested")]
fn tests_do_not_explain_every_route_that_loses() {
    // Listing why each of 2 000 routes does not match would take minutes for 2 000 tests.
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

/// A configuration with edits, limits and two listeners, and tests of it.
fn edge(tests: &str) -> Vec<FailedTest> {
    let text = format!(
        r#"
        listeners {{
            listener "public" {{ address "127.0.0.1:80" }}
            listener "inner" {{ address "127.0.0.1:81"; default-route "admin" }}
        }}
        routes {{
            route "admin" {{
                matches {{ path-prefix "/admin" }}
                upstream "back"
                agents "sso"
                policies {{
                    max-body-size "1MB"
                    rate-limit {{ requests-per-second 100 }}
                    timeouts {{ read-secs 5 }}
                    request-headers {{ set "X-Tenant" "a"; remove "X-Debug" }}
                    response-headers {{ set "X-Frame-Options" "DENY"; remove "X-Inner" }}
                }}
            }}
            route "app" {{ matches {{ host "shop.test"; path-prefix "/" }}; upstream "front" }}
        }}
        upstreams {{
            upstream "back" {{ target "10.0.0.2:80"; target "10.0.0.1:80" }}
            upstream "front" {{ target "10.0.0.3:80" }}
        }}
        agents {{ agent "sso" {{ unix-socket "/run/sso.sock"; failure-mode "closed" }} }}
        tests {{ {tests} }}
        "#
    );
    let loaded = proxy_config::parse(&text, "edge.kdl").unwrap_or_else(|report| panic!("{report}"));
    failed_tests(&loaded.model)
}

/// The differences of a test of `GET /admin` with an expectation each.
fn edge_differences(expected: &[&str]) -> Vec<String> {
    let expected = expected.join("; ");
    let failed = edge(&format!(
        r#"test "t" {{
            request "GET" "/admin"
            header "X-Debug" "1"
            header "X-User" "u"
            expect {{ {expected} }}
        }}"#
    ));
    failed.into_iter().map(|one| one.difference).collect()
}

#[test]
fn a_test_expects_a_listener_and_targets() {
    let holds = [
        r#"listener "public""#,
        r#"targets "10.0.0.1:80" "10.0.0.2:80""#,
    ];
    assert_eq!(edge_differences(&holds), [""; 0]);
    assert_eq!(
        edge_differences(&[r#"listener "inner""#, r#"targets "10.0.0.1:80""#]),
        [
            "the listener is `public`, not `inner`",
            "the set of targets is `10.0.0.1:80 10.0.0.2:80`, not `10.0.0.1:80`"
        ]
    );
}

#[test]
fn a_test_expects_settings_that_apply() {
    let holds = [
        r#"setting "policies.max-body-size" "1MB""#,
        r#"setting "policies.max-body-size" "1000000""#,
        r#"setting "policies.rate-limit.requests-per-second" "100""#,
        r#"setting "policies.timeouts.read-secs" "5s""#,
        r#"setting "timeouts.connect-secs" "5""#,
        r#"setting "max-header-count" "100""#,
        r#"setting "circuit-breaker.failure-threshold" "none""#,
    ];
    assert_eq!(edge_differences(&holds), [""; 0]);
    assert_eq!(
        edge_differences(&[
            r#"setting "policies.max-body-size" "2MB""#,
            r#"setting "circuit-breaker.failure-threshold" "5""#,
            r#"setting "policies.rate-limit.requests-per-second" "none""#,
        ]),
        [
            "the setting `policies.max-body-size` is `1MB`, not `2MB`",
            "no setting `circuit-breaker.failure-threshold` applies; it should be `5`",
            "the setting `policies.rate-limit.requests-per-second` is `100`, not `none`",
        ]
    );
}

#[test]
fn a_test_expects_headers_after_all_edits() {
    let holds = [
        r#"request-header "X-Tenant" "a""#,
        r#"request-header "X-User" "u""#,
        r#"no-request-header "X-Debug""#,
        r#"response-header "X-Frame-Options" "DENY""#,
        r#"no-response-header "X-Inner""#,
    ];
    assert_eq!(edge_differences(&holds), [""; 0]);
    assert_eq!(
        edge_differences(&[
            r#"request-header "X-Tenant" "b""#,
            r#"request-header "X-Debug" "1""#,
            r#"no-request-header "X-User""#,
            r#"response-header "X-Other" "1""#,
            r#"no-response-header "X-Powered-By""#,
            r#"no-response-header "X-Frame-Options""#,
        ]),
        [
            "the request header `x-tenant` is `a`, not `b`",
            "the request has no header `x-debug`; the request goes to upstream `back`",
            "the request has the header `x-user` with `u`",
            "the response has no header `x-other`; the request goes to upstream `back`",
            "no edit removes the response header `x-powered-by` of the upstream",
            "the response has the header `x-frame-options` with `DENY`",
        ]
    );
}

/// The differences of prohibitions.
fn violations(prohibition: &str) -> Vec<String> {
    let failed = edge(&format!("never \"n\" {{ {prohibition} }}"));
    failed.into_iter().map(|one| one.difference).collect()
}

#[test]
fn a_request_that_must_never_reach_an_upstream_fails_its_test() {
    let failed = edge(r#"never "admin from outside" { listener "public"; upstream "back" }"#);
    let [failure] = failed.as_slice() else {
        panic!("{failed:?}");
    };
    assert_eq!(failure.name, "admin from outside");
    assert!(
        failure
            .difference
            .ends_with("/admin reaches upstream `back` by route `admin`")
    );
    assert!(
        failure.explain.contains("--listener 'public'"),
        "{}",
        failure.explain
    );
    // The request matches the default route of the other listener.
    let inner = violations(r#"listener "inner"; host "other.test"; path "/x"; upstream "back""#);
    assert_eq!(
        inner,
        ["GET http://other.test/x reaches upstream `back` by route `admin`"]
    );
    let public = violations(r#"listener "public"; host "other.test"; path "/x"; upstream "back""#);
    assert_eq!(public, [""; 0]);
}

#[test]
fn a_prohibition_is_limited_by_hosts_and_paths() {
    assert_eq!(
        violations(r#"path-prefix "/admin"; upstream "front""#),
        ["GET http://shop.test/admin reaches upstream `front` by route `app`"]
    );
    assert_eq!(
        violations(r#"host "*.other.test"; upstream "front""#),
        [""; 0]
    );
    assert_eq!(
        violations(r#"path "/admin"; host "a.test"; upstream "front""#),
        [""; 0]
    );
}

#[test]
fn a_prohibition_allows_requests_that_an_agent_decides_on() {
    assert_eq!(
        violations(r#"upstream "back"; without-agent "sso""#),
        [""; 0]
    );
    assert_eq!(
        violations(r#"upstream "front"; without-agent "sso""#).len(),
        1
    );
}

#[test]
fn drafted_tests_pass() {
    let loaded = proxy_config::parse(SHOP, "shop.kdl").unwrap();
    let plan = Plan::compile(
        1,
        Arc::new(loaded.model),
        &mut TargetRegistry::default().begin(),
    );
    let drafts = draft_tests(&plan);
    assert!(
        drafts.contains("expect { route \"api\"; upstream \"api\"; agents \"waf\" \"jwt\" }"),
        "{drafts}"
    );
    assert_eq!(drafts.matches("test \"").count(), 3, "{drafts}");
    let text = format!("{SHOP}{drafts}");
    let loaded = proxy_config::parse(&text, "shop.kdl").unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(failed_tests(&loaded.model), []);
}

#[test]
fn a_copied_route_without_its_guards_fails_the_tests_of_the_page_on_changes() {
    let page = include_str!("../../../../docs/operate/change-validation.md");
    let blocks = page.split("```kdl\n").skip(1);
    let mut texts = blocks.map(|block| block.split("```").next().unwrap_or_default());
    let text = texts.find(|text| text.contains("never ")).unwrap();
    let tested = |text: &str| {
        let loaded = proxy_config::parse(text, "change-validation.md");
        failed_tests(&loaded.unwrap_or_else(|report| panic!("{report}")).model)
    };
    assert_eq!(tested(text), []);
    let copied = r#"route "reports" { matches { path-prefix "/reports" }; upstream "back" }"#;
    let text = text.replace("routes {", &format!("routes {{\n{copied}"));
    let failed = tested(&text);
    let [failure] = failed.as_slice() else {
        panic!("{failed:?}");
    };
    assert_eq!(
        failure.difference,
        "GET /reports reaches upstream `back` by route `reports`"
    );
    assert!(page.contains(&format!(
        "test \"{}\" fails: {}",
        failure.name, failure.difference
    )));
}

#[test]
fn networks_of_clients_take_part_in_tests_and_drafts() {
    let text = r#"
        listeners { listener "plain" { address "127.0.0.1:80"; deny "10.0.0.0/24" } }
        routes {
            route "inner" { matches { path "/inner" }; allow "10.0.0.0/8"; respond 200 }
            route "never" { matches { path "/never" }; allow "10.0.0.1"; respond 200 }
            route "site" { respond 200 }
        }
    "#;
    let tests = r#"tests {
        test "inside" { request "GET" "/inner"; client-ip "10.9.0.1"; expect { route "inner"; status 200 } }
        test "outside" { request "GET" "/inner"; expect { route "inner"; reason "access_denied" } }
        test "denied" { request "GET" "/"; client-ip "10.0.0.7"; expect { status 403 } }
    }"#;
    let loaded = proxy_config::parse(&format!("{text}{tests}"), "x.kdl").unwrap();
    assert_eq!(failed_tests(&loaded.model), []);
    let loaded = proxy_config::parse(text, "x.kdl").unwrap();
    let plan = Plan::compile(
        1,
        Arc::new(loaded.model),
        &mut TargetRegistry::default().begin(),
    );
    let drafts = draft_tests(&plan);
    assert_eq!(drafts.matches("client-ip").count(), 1, "{drafts}");
    assert!(
        drafts.contains("route \"never\" takes no request"),
        "{drafts}"
    );
    let loaded = proxy_config::parse(&format!("{text}{drafts}"), "x.kdl").unwrap();
    assert_eq!(failed_tests(&loaded.model), [], "{drafts}");
}

#[test]
fn a_test_expects_headers_with_values_of_the_request() {
    let text = r#"
        listeners { listener "plain" { address "127.0.0.1:80" } }
        routes {
            route "site" {
                upstream "u"
                request-headers { set "X-Url" "{scheme}://{host}{uri} {client_ip}"; set "X-Id" "{correlation_id}"; set "Host" "{correlation_id}" }
                response-headers { set "X-Route" "{route} {listener} {tls_version}" }
            }
        }
        upstreams { upstream "u" { target "127.0.0.1:8080" } }
        tests {
            test "values" {
                request "GET" "http://a.test/b?c=d"
                client-ip "192.0.2.7"
                expect {
                    request-header "X-Url" "http://a.test/b?c=d 192.0.2.7"
                    request-header "X-Id" "{correlation_id}"
                    request-header "Host" "{correlation_id}"
                    response-header "X-Route" "site plain "
                }
            }
        }
    "#;
    let loaded = proxy_config::parse(text, "x.kdl").unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(failed_tests(&loaded.model), []);
}

#[test]
fn a_test_expects_the_path_that_an_upstream_gets() {
    let text = r#"
        listeners { listener "plain" { address "127.0.0.1:80" } }
        routes {
            route "api" {
                matches { path-prefix "/api" }
                upstream "u"
                rewrite { strip-prefix "/api" }
            }
            route "site" { upstream "u" }
        }
        upstreams { upstream "u" { target "127.0.0.1:8080" } }
        tests {
            test "1" { request "GET" "/api/a?b"; expect { upstream-path "/a?b" } }
            test "2" { request "GET" "/a?b"; expect { route "site"; upstream-path "/a?b" } }
            test "3" { request "GET" "/api/a"; expect { upstream-path "/api/a" } }
        }
    "#;
    let loaded = proxy_config::parse(text, "x.kdl").unwrap_or_else(|report| panic!("{report}"));
    let failed = failed_tests(&loaded.model);
    let [failure] = failed.as_slice() else {
        panic!("{failed:?}");
    };
    assert_eq!(
        failure.difference,
        "the path for an upstream is `/a`, not `/api/a`"
    );
}

#[test]
fn a_test_expects_fields_for_pages_of_other_origins() {
    let text = r#"
        listeners { listener "plain" { address "127.0.0.1:80" } }
        routes { route "api" { upstream "u"; cors { allow-origins "https://app.test" } } }
        upstreams { upstream "u" { target "127.0.0.1:8080" } }
        tests {
            test "allowed" {
                request "GET" "/"; header "Origin" "https://app.test"
                expect { upstream "u"; response-header "Access-Control-Allow-Origin" "https://app.test" }
            }
            test "others" {
                request "GET" "/"; header "Origin" "https://evil.test"
                expect { no-response-header "Access-Control-Allow-Origin" }
            }
            test "preflight" {
                request "OPTIONS" "/"
                header "Origin" "https://app.test"
                header "Access-Control-Request-Method" "POST"
                expect { status 204; response-header "Access-Control-Allow-Methods" "GET, HEAD, POST" }
            }
        }
    "#;
    let loaded = proxy_config::parse(text, "x.kdl").unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(failed_tests(&loaded.model), []);
}
