//! Selection of the route.

use crate::support::{Config, Proxy, refusal, request, target};
use proxy_testkit::{RawClient, Reload, Upstream, get};

/// Routes by id and matches, all to one upstream; each sets its id in the response.
fn routes(upstream: &Upstream, routes: &[(&str, &str)]) -> Config {
    let mut config = Config::new().upstream("u", &target(upstream));
    for (id, matches) in routes {
        let settings =
            format!("upstream \"u\"\n{matches}\nresponse-headers {{ set \"X-Route\" \"{id}\" }}");
        config = config.route(id, &settings);
    }
    config
}

/// The id of the route for a request with this line and these fields; `-` without one.
#[track_caller]
fn route_of(proxyd: &Proxy, line: &str, host: &str, fields: &str) -> String {
    let text = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
    let response = proxyd.connect().ask(text);
    let route = response.fields.get("x-route");
    if route.is_none() {
        assert_eq!(response.error_code(), "ROUTE_NOT_FOUND");
    }
    route.unwrap_or("-").to_owned()
}

#[track_caller]
fn paths_lead_to(proxyd: &Proxy, cases: &[(&str, &str)]) {
    for (path, route) in cases {
        let line = format!("GET {path}");
        assert_eq!(route_of(proxyd, &line, "a.test", ""), *route, "{path}");
    }
}

#[track_caller]
fn hosts_lead_to(proxyd: &Proxy, cases: &[(&str, &str)]) {
    for (host, route) in cases {
        assert_eq!(route_of(proxyd, "GET /", host, ""), *route, "{host}");
    }
}

#[test]
fn an_exact_path_matches_only_itself() {
    let upstream = Upstream::saying("");
    let proxyd = routes(
        &upstream,
        &[("exact", r#"matches { path "/favicon.ico" }"#)],
    )
    .start();

    paths_lead_to(
        &proxyd,
        &[
            ("/favicon.ico", "exact"),
            ("/favicon.ico?v=2", "exact"),
            ("/favicon.ico/", "-"),
            ("/favicon.icon", "-"),
            ("/Favicon.ico", "-"),
        ],
    );
}

#[test]
fn a_prefix_ends_at_a_segment_unless_it_ends_in_a_slash() {
    let upstream = Upstream::saying("");
    let proxyd = routes(
        &upstream,
        &[
            ("segment", r#"matches { path-prefix "/api" }"#),
            ("plain", r#"matches { path-prefix "/files/" }"#),
        ],
    )
    .start();

    paths_lead_to(
        &proxyd,
        &[
            ("/api", "segment"),
            ("/api/", "segment"),
            ("/api/users", "segment"),
            ("/api?x=1", "segment"),
            ("/apix", "-"),
            ("/files/", "plain"),
            ("/files/a/b", "plain"),
            ("/files", "-"),
        ],
    );
}

#[test]
fn a_regex_is_found_in_the_path() {
    let upstream = Upstream::saying("");
    let proxyd = routes(
        &upstream,
        &[
            ("anchored", r##"matches { path-regex #"^/users/\d+$"# }"##),
            ("anywhere", r#"matches { path-regex "secret" }"#),
        ],
    )
    .start();

    paths_lead_to(
        &proxyd,
        &[
            ("/users/17", "anchored"),
            ("/users/x", "-"),
            ("/users/17/posts", "-"),
            ("/a/secret/b", "anywhere"),
            ("/?secret", "-"),
        ],
    );
}

#[test]
fn hosts_compare_without_case_and_port() {
    let upstream = Upstream::saying("");
    let proxyd = routes(&upstream, &[("host", r#"matches { host "Example.com" }"#)]).start();

    hosts_lead_to(
        &proxyd,
        &[
            ("example.com", "host"),
            ("EXAMPLE.COM", "host"),
            ("example.com:8080", "host"),
            ("www.example.com", "-"),
            ("example.org", "-"),
        ],
    );
}

#[test]
fn a_wildcard_host_stands_for_one_or_more_labels() {
    let upstream = Upstream::saying("");
    let proxyd = routes(
        &upstream,
        &[("wild", r#"matches { host "*.example.com" }"#)],
    )
    .start();

    hosts_lead_to(
        &proxyd,
        &[
            ("a.example.com", "wild"),
            ("a.b.example.com:80", "wild"),
            ("A.Example.Com", "wild"),
            ("example.com", "-"),
            ("notexample.com", "-"),
        ],
    );
}

#[test]
fn headers_methods_and_query_parameters_are_compared() {
    let upstream = Upstream::saying("");
    let proxyd = routes(
        &upstream,
        &[
            ("value", r#"matches { header "X-Env" "beta" }"#),
            ("there", r#"matches { header "X-Any" }"#),
            ("method", r#"matches { method "PUT" }"#),
            ("param", r#"matches { query-param "v" "2" }"#),
            ("flag", r#"matches { query-param "debug" }"#),
        ],
    )
    .start();

    for (line, fields, route) in [
        ("GET /", "x-env: beta\r\n", "value"),
        ("GET /", "X-Env: gamma\r\n", "-"),
        ("GET /", "x-any:\r\n", "there"),
        ("PUT /", "Content-Length: 0\r\n", "method"),
        ("PATCH /", "Content-Length: 0\r\n", "-"),
        ("GET /?v=2", "", "param"),
        ("GET /?a=b&v=2", "", "param"),
        ("GET /?v=22", "", "-"),
        ("GET /?debug", "", "flag"),
        ("GET /?debug=1", "", "flag"),
        ("GET /", "", "-"),
    ] {
        assert_eq!(
            route_of(&proxyd, line, "a.test", fields),
            route,
            "{line} {fields}"
        );
    }
}

#[test]
fn conditions_of_one_kind_are_alternatives_and_kinds_must_all_hold() {
    let upstream = Upstream::saying("");
    let matches = r#"matches {
        host "a.test"; host "b.test"
        path "/one"; path-prefix "/two"
        method "GET"; method "HEAD"
    }"#;
    let proxyd = routes(&upstream, &[("both", matches)]).start();

    for (line, host, route) in [
        ("GET /one", "a.test", "both"),
        ("GET /two/x", "b.test", "both"),
        ("GET /three", "a.test", "-"),
        ("GET /one", "c.test", "-"),
        ("DELETE /one", "a.test", "-"),
    ] {
        assert_eq!(route_of(&proxyd, line, host, ""), route, "{line} {host}");
    }
}

#[test]
fn the_higher_priority_wins_whatever_the_order_and_the_path() {
    let upstream = Upstream::saying("");
    let proxyd = routes(
        &upstream,
        &[
            ("exact", r#"matches { path "/a" }"#),
            ("high", r#"priority "high"; matches { header "X-High" }"#),
            (
                "critical",
                r#"priority "critical"; matches { header "X-Critical" }"#,
            ),
            ("low", r#"priority "low""#),
            ("fiftyone", r#"priority 51; matches { header "X-More" }"#),
        ],
    )
    .start();

    for (path, fields, route) in [
        ("/a", "", "exact"),
        ("/b", "", "low"),
        ("/a", "X-More: 1\r\n", "fiftyone"),
        ("/a", "X-More: 1\r\nX-High: 1\r\n", "high"),
        ("/a", "X-Critical: 1\r\nX-High: 1\r\n", "critical"),
    ] {
        let line = format!("GET {path}");
        assert_eq!(
            route_of(&proxyd, &line, "a.test", fields),
            route,
            "{path} {fields}"
        );
    }
}

#[test]
fn among_equals_the_more_specific_route_wins_then_the_order_of_the_file() {
    let upstream = Upstream::saying("");
    let proxyd = routes(
        &upstream,
        &[
            ("none", ""),
            ("regex", r#"matches { path-regex "^/ax|\\.php$" }"#),
            ("short", r#"matches { path-prefix "/a" }"#),
            ("long", r#"matches { path-prefix "/a/b" }"#),
            ("exact", r#"matches { path "/a/b/c" }"#),
            ("second", r#"matches { path "/a/b/c" }"#),
            ("method", r#"matches { path "/m"; method "GET" "PUT" }"#),
            ("methodless", r#"matches { path "/m" }"#),
            ("wild", r#"matches { path "/h"; host "*.test" }"#),
            ("host", r#"matches { path "/h"; host "a.test" }"#),
            ("hostless", r#"matches { path "/h" }"#),
            ("one", r#"matches { path "/n"; header "X-A" }"#),
            (
                "two",
                r#"matches { path "/n"; header "X-A"; header "X-B" "b" }"#,
            ),
        ],
    )
    .start();

    paths_lead_to(
        &proxyd,
        &[
            ("/x", "none"),
            ("/ax", "regex"),
            ("/a/b/x.php", "regex"),
            ("/a/x", "short"),
            ("/a/b/x", "long"),
            ("/a/b/c", "exact"),
            ("/m", "method"),
            ("/h", "host"),
        ],
    );
    assert_eq!(route_of(&proxyd, "GET /h", "b.test", ""), "wild");
    assert_eq!(route_of(&proxyd, "GET /h", "b.org", ""), "hostless");
    assert_eq!(route_of(&proxyd, "GET /n", "a.test", "X-A: 1\r\n"), "one");
}

#[test]
fn unmatched_requests_take_the_default_route() {
    let upstream = Upstream::saying("");
    let config = routes(
        &upstream,
        &[
            ("special", r#"matches { path "/special" }"#),
            ("fallback", r#"matches { host "never.test" }"#),
        ],
    );
    let proxyd = config.listener(r#"default-route "fallback""#).start();

    paths_lead_to(&proxyd, &[("/special", "special"), ("/other", "fallback")]);
}

#[test]
fn a_request_without_a_route_is_answered_404() {
    let upstream = Upstream::saying("");
    let proxyd = routes(&upstream, &[("only", r#"matches { path "/only" }"#)]).start();

    let response = proxyd.connect().ask(request("GET /other", "", ""));

    refusal(&response, 404, "ROUTE_NOT_FOUND");
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("reason"), "route_not_found");
    assert!(!record.has("route") && !record.has("upstream"));
    assert!(upstream.requests().is_empty());
}

#[test]
fn the_error_log_names_the_nearest_route_of_a_request_that_has_none() {
    let upstream = Upstream::saying("");
    let config = routes(
        &upstream,
        &[
            (
                "other",
                r#"matches { path-prefix "/other"; host "b.test" }"#,
            ),
            ("near", r#"matches { path-prefix "/near"; method "POST" }"#),
            (
                "key",
                r#"matches { path "/key"; header "X-Api-Key" "s3cret" }"#,
            ),
        ],
    );
    let proxyd = config.start();

    for (path, reported) in [
        ("/near/by", "\"near\", which requires method POST"),
        ("/nearby", "\"near\", which requires path-prefix \"/near\""),
        (
            "/key",
            "\"key\", which requires header x-api-key: (redacted)",
        ),
    ] {
        let response = proxyd.connect().ask(get(path, &[]));
        let report = refusal(&response, 404, "ROUTE_NOT_FOUND");
        assert_eq!(
            report, "Not found: no route matches",
            "a client learns no route"
        );
        let record = proxyd.error_record(&response.correlation_id());
        assert_eq!(
            record.text("message"),
            format!("Not found: no route matches; nearest is {reported}")
        );
    }
}

#[test]
fn each_listener_has_its_own_default_route() {
    let upstream = Upstream::saying("");
    let config = routes(
        &upstream,
        &[
            ("one", r#"matches { host "one.test" }"#),
            ("two", r#"matches { host "two.test" }"#),
        ],
    );
    let second =
        r#"listeners { listener "second" { address "127.0.0.1:0"; default-route "two" } }"#;
    let proxyd = config
        .listener(r#"default-route "one""#)
        .top(second)
        .start();

    for (listener, route) in ["one", "two"].into_iter().enumerate() {
        let response = proxyd.connect_to(listener).ask(request("GET /", "", ""));
        assert_eq!(response.fields.get("x-route"), Some(route));
    }
}

#[test]
fn the_host_of_an_absolute_target_is_routed_and_forwarded() {
    let upstream = Upstream::saying("");
    let proxyd = routes(&upstream, &[("target", r#"matches { host "real.test" }"#)]).start();

    let line = "GET http://real.test:81/a?b HTTP/1.1\r\nHost: other.test\r\n\r\n";
    let response = proxyd.connect().ask(line);

    assert_eq!(response.fields.get("x-route"), Some("target"));
    let seen = upstream.last_request();
    assert_eq!(seen.target, "/a?b");
    assert_eq!(seen.fields.get("host"), Some("real.test:81"));
    assert_eq!(seen.fields.get("x-forwarded-host"), Some("real.test:81"));
}

const TWO_LISTENERS: &str = r#"listeners { listener "second" { address "127.0.0.1:0" } }"#;

#[test]
fn a_route_takes_requests_of_its_listeners_only() {
    let proxyd = Config::new()
        .top(TWO_LISTENERS)
        .route(
            "moved",
            r#"priority "high"; listeners "main"; redirect "https""#,
        )
        .route(
            "inner",
            r#"matches { path "/inner" }; listeners "second"; respond 200 "inner""#,
        )
        .route("page", r#"respond 200 "page""#)
        .start();

    let moved = proxyd.connect_to(0).ask(get("/inner", &[]));
    assert_eq!(moved.status, 302);
    let inner = proxyd.connect_to(1).ask(get("/inner", &[]));
    assert_eq!(inner.text(), "inner");
    let page = proxyd.connect_to(1).ask(get("/", &[]));
    assert_eq!(page.text(), "page");
}

#[test]
fn a_reload_moves_a_route_to_another_listener() {
    let config = |listener: &str| {
        let route = format!(r#"listeners "{listener}"; respond 200 "x""#);
        Config::new().top(TWO_LISTENERS).route("own", &route)
    };
    let proxyd = config("main").start();
    let (mut main, mut second) = (proxyd.connect_to(0), proxyd.connect_to(1));
    let ask = |client: &mut RawClient| client.ask(get("/", &[])).status;
    assert_eq!((ask(&mut main), ask(&mut second)), (200, 404));

    assert_eq!(proxyd.reload(&config("second").kdl()), Reload::Applied);

    assert_eq!((ask(&mut main), ask(&mut second)), (404, 200));
}
