//! Limits on header fields, bodies, requests in flight and connections.

use crate::installed::Installed;
use crate::support::{
    BINARY, Config, METRICS, admin, metric, pause, post, reason, refusal, request, target,
};
use proxy_testkit::{End, Gate, Launch, Proxyd, Response, Upstream, get};
use serde_json::json;
use std::fs;

fn limited(upstream: &Upstream, limits: &str) -> Config {
    Config::to(upstream).top(&format!("limits {{ {limits} }}"))
}

/// Field lines that each exceed one limit, with the expected reason.
fn oversized() -> Vec<(String, &'static str, &'static str)> {
    let many: String = (0..20).map(|n| format!("X-{n}: 1\r\n")).collect();
    let large: String = (0..8)
        .map(|n| format!("X-{n}: {}\r\n", "v".repeat(90)))
        .collect();
    vec![
        (large, "header_size_limit", "header_size"),
        (many, "header_count_limit", "header_count"),
        (
            format!("{}: 1\r\n", "n".repeat(40)),
            "header_name_limit",
            "header_size",
        ),
        (
            format!("X: {}\r\n", "v".repeat(200)),
            "header_value_limit",
            "header_size",
        ),
    ]
}

const SMALL_HEADS: &str = "max-header-size-bytes 512; max-header-count 10; \
    max-header-name-bytes 32; max-header-value-bytes 100";

#[test]
fn a_process_may_open_all_the_files_that_it_is_granted() {
    let installed = Installed::new();
    installed.replace(&format!("ulimit -Sn 64; exec {BINARY} \"$@\""));
    let upstream = Upstream::saying("");
    let proxyd = Launch::new(installed.path(), &Config::to(&upstream).kdl()).start();

    let limits = fs::read_to_string(format!("/proc/{}/limits", proxyd.id())).unwrap();

    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut words = files.unwrap().split_whitespace().skip(3);
    assert_eq!(words.next(), words.next(), "{limits}");
}

#[test]
fn too_large_heads_are_answered_429_and_logged_as_limits() {
    let upstream = Upstream::saying("");
    let proxyd = limited(&upstream, SMALL_HEADS).start();

    for (fields, reported, limit_type) in oversized() {
        let mut client = proxyd.connect();
        let response = client.ask(request("GET /", &fields, ""));

        let message = refusal(&response, 429, "LIMIT_EXCEEDED");
        assert!(
            message.starts_with(&format!("Limit exceeded: {limit_type} - ")),
            "{message}"
        );
        assert_eq!(reason(&proxyd, &response), reported);
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(record.text("level"), "WARN");
        assert_eq!(record.text("limit_type"), limit_type);
        assert_eq!(record.text("client_ip"), "127.0.0.1");
        assert!(
            record.number("limit") < record.number("actual"),
            "{record:?}"
        );
        let _ = client.end();
    }
    assert!(upstream.requests().is_empty());
}

/// Returns the message for a value above the limit of 100 bytes: `first` bytes arrive with the
/// head, and `later` after the limit was exceeded.
fn message_for_value(first: usize, later: &str) -> String {
    let upstream = Upstream::saying("");
    let proxyd = limited(&upstream, SMALL_HEADS).start();
    let mut client = proxyd.connect();
    let begun = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {}", "v".repeat(first));
    client.send(begun);
    pause(&mut client, 200);
    client.send(later);
    let response = client.response();
    let record = proxyd.limit_record(&response.correlation_id());
    let message = refusal(&response, 429, "LIMIT_EXCEEDED");
    assert!(message.contains(&format!("{}", record.number("actual").unwrap())));
    message
}

#[test]
fn the_size_of_a_header_in_pieces_is_its_total() {
    let whole = "Limit exceeded: header_size - Current value 150 exceeds limit 100";
    assert_eq!(
        message_for_value(110, &"v".repeat(40)[..]),
        whole.replace("value 150", "value at least 150")
    );
    assert_eq!(
        message_for_value(110, &format!("{}\r\n\r\n", "v".repeat(40))),
        whole
    );
}

#[test]
fn no_more_than_four_times_the_limit_of_a_header_is_counted() {
    let reported = message_for_value(110, &"v".repeat(900));
    assert_eq!(
        reported,
        "Limit exceeded: header_size - Current value at least 400 exceeds limit 100"
    );
}

#[test]
fn the_size_of_too_large_trailers_is_reported_as_far_as_they_arrived() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.end();
    });
    let proxyd = limited(&upstream, SMALL_HEADS).start();
    let body = format!("2\r\nhi\r\n0\r\nX: {}\r\n\r\n", "v".repeat(150));
    let text = request("POST /", "Transfer-Encoding: chunked\r\n", &body);
    let response = proxyd.connect().ask(text);
    assert_eq!(
        refusal(&response, 429, "LIMIT_EXCEEDED"),
        "Limit exceeded: header_size - Current value 150 exceeds limit 100"
    );
    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.number("actual"), Some(150.0));
}

#[test]
fn standard_statuses_answer_431() {
    let upstream = Upstream::saying("");
    let proxyd = limited(
        &upstream,
        &format!("{SMALL_HEADS}; standard-statuses #true"),
    )
    .start();

    for (fields, reported, _) in oversized() {
        let response = proxyd.connect().ask(request("GET /", &fields, ""));

        refusal(&response, 431, "LIMIT_EXCEEDED");
        assert_eq!(reason(&proxyd, &response), reported);
    }
}

#[test]
fn heads_at_the_default_limits_pass() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    // With `Host`, these are 100 fields.
    let many: String = (0..99).map(|n| format!("X-{n}: 1\r\n")).collect();
    let name = format!("{}: 1\r\n", "n".repeat(256));
    let value = format!("X: {}\r\n", "v".repeat(4096));
    for fields in [many, name, value] {
        let response = proxyd.connect().ask(request("GET /", &fields, ""));
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let one_more: String = (0..100).map(|n| format!("X-{n}: 1\r\n")).collect();
    let response = proxyd.connect().ask(request("GET /", &one_more, ""));
    refusal(&response, 429, "LIMIT_EXCEEDED");
}

#[test]
fn a_body_with_a_too_large_content_length_is_refused_unread() {
    let upstream = Upstream::echo();
    let proxyd = limited(&upstream, "max-body-size-bytes 10").start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(post("/", "ten bytes!")).text(), "ten bytes!");
    let head = "Content-Length: 11\r\nExpect: 100-continue\r\n";
    let response = client.ask(request("POST /", head, ""));

    let message = refusal(&response, 413, "LIMIT_EXCEEDED");
    assert_eq!(
        message,
        "Limit exceeded: body_size - Current value 11 exceeds limit 10"
    );
    assert_eq!(reason(&proxyd, &response), "body_size_limit");
    assert_eq!(upstream.requests().len(), 1);
    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.number("limit"), Some(10.0));
}

#[test]
fn a_body_is_refused_as_soon_as_it_exceeds_the_limit() {
    let upstream = Upstream::start(|served| {
        if served.head().is_some() {
            served.end();
        }
    });
    let proxyd = limited(&upstream, "max-body-size-bytes 10").start();

    let text = request(
        "POST /",
        "Transfer-Encoding: chunked\r\n",
        "8\r\n12345678\r\n",
    );
    let mut client = proxyd.connect();
    client.send(text);
    upstream.wait_for_requests(1);
    client.send("8\r\n12345678\r\n");
    let response = client.response();

    refusal(&response, 413, "LIMIT_EXCEEDED");
    assert_eq!(reason(&proxyd, &response), "body_size_limit");
    // The upstream receives an incomplete request, not a complete one.
    upstream.wait_for_ends(1);
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("error_type"), "LimitExceeded");
}

#[test]
fn a_route_has_its_own_body_limit() {
    let upstream = Upstream::echo();
    let proxyd = Config::new()
        .route(
            "small",
            r#"upstream "u"; matches { path "/small" }; max-body-size "4B""#,
        )
        .route(
            "large",
            r#"upstream "u"; matches { path "/large" }; max-body-size "1KB""#,
        )
        .route("rest", r#"upstream "u""#)
        .upstream("u", &target(&upstream))
        .top("limits { max-body-size-bytes 10 }")
        .start();
    let body = |length: usize| "x".repeat(length);

    for (path, length, status) in [
        ("/small", 4, 200),
        ("/small", 5, 413),
        ("/rest", 10, 200),
        ("/rest", 11, 413),
        ("/large", 1000, 200),
        ("/large", 1001, 413),
    ] {
        let response = proxyd.connect().ask(post(path, &body(length)));
        assert_eq!(response.status, status, "{path} {length}");
    }
}

#[test]
fn requests_over_the_limit_are_answered_503_until_there_is_room() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = limited(&upstream, "max-in-flight-requests 1; max-queued-requests 0")
        .route("metrics", &format!("priority 100; {METRICS}"))
        .start();
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    upstream.wait_for_requests(1);

    let mut second = proxyd.connect();
    let response = second.ask(get("/", &[]));

    let message = refusal(&response, 503, "LIMIT_EXCEEDED");
    assert!(message.contains("in_flight_requests"), "{message}");
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(reason(&proxyd, &response), "in_flight_limit");
    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.text("limit_type"), "in_flight_requests");
    gate.open();
    assert_eq!(first.response().status, 200);
    // The same connection is served again when a permit is free.
    assert_eq!(second.ask(get("/", &[])).status, 200);
    let name = "proxy_limit_exceeded_total{limit=\"in_flight_requests\"}";
    assert!((metric(&mut second, name) - 1.0).abs() < f64::EPSILON);
}

#[test]
fn a_client_that_leaves_releases_its_place() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = limited(&upstream, "max-in-flight-requests 1").start();
    let mut first = proxyd.connect();
    first.send(get("/", &[("X-Correlation-Id", "left")]));
    upstream.wait_for_requests(1);

    drop(first);
    let record = proxyd.access_record("left");

    assert_eq!(record.number("status"), Some(499.0));
    gate.open();
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
}

#[test]
fn connections_over_the_limit_are_answered_503_and_closed() {
    let upstream = Upstream::saying("");
    let proxyd = limited(&upstream, "max-total-connections 1").start();
    let mut first = proxyd.connect();
    assert_eq!(first.ask(get("/", &[])).status, 200);

    let mut second = proxyd.connect();
    let response = second.response();

    refusal(&response, 503, "LIMIT_EXCEEDED");
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(response.fields.get("connection"), Some("close"));
    assert_eq!(reason(&proxyd, &response), "connection_limit");
    second.finish();
    assert_eq!(second.end(), End::Closed);
    first.finish();
    assert_eq!(first.end(), End::Closed);
    // The permit is released when the proxy has closed the first connection.
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
}

#[test]
fn a_too_large_body_after_an_early_answer_is_not_the_upstreams_fault() {
    let upstream = Upstream::start(|served| {
        if served.head().is_some() {
            served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
            served.end();
        }
    });
    let proxyd = limited(&upstream, "max-body-size-bytes 10")
        .route("metrics", &format!("priority 100; {METRICS}"))
        .start();
    let mut client = proxyd.connect();
    client.send(request(
        "POST /",
        "Transfer-Encoding: chunked\r\n",
        "4\r\n1234\r\n",
    ));
    let head = client.head();
    assert_eq!(head.status, 200);

    client.send("8\r\n12345678\r\n");
    let _ = client.rest();

    assert_eq!(reason(&proxyd, &head), "body_size_limit");
    let record = proxyd.error_record(&head.correlation_id());
    assert_eq!(record.text("error_type"), "LimitExceeded");
    let record = proxyd.limit_record(&head.correlation_id());
    assert_eq!(record.number("limit"), Some(10.0));
    let page = proxyd.connect().ask(request("GET /metrics", "", "")).text();
    let blamed = page
        .lines()
        .any(|line| line.starts_with("proxy_upstream_failures_total{"));
    assert!(!blamed, "{page}");
}

#[test]
fn a_head_over_a_limit_is_recorded_with_its_request_its_field_and_the_setting() {
    let upstream = Upstream::saying("");
    let proxyd = limited(&upstream, SMALL_HEADS).start();
    let value = format!("X-Long: {}\r\n", "v".repeat(200));
    let name = format!("{}: 1\r\n", "n".repeat(40));
    let many: String = (0..20).map(|n| format!("X-{n}: 1\r\n")).collect();
    for (fields, field, setting) in [
        (value, Some("X-Long".to_owned()), "max-header-value-bytes"),
        (name, Some("n".repeat(32)), "max-header-name-bytes"),
        (many, None, "max-header-count"),
    ] {
        let response = proxyd.connect().ask(request("PUT /a/b?c=d", &fields, ""));
        assert_eq!(response.status, 429);

        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("method"), "PUT");
        assert_eq!(record.text("path"), "/a/b?c=d");
        assert_eq!(record.text("host"), "a.test");
        let record = proxyd.error_record(&response.correlation_id());
        assert_eq!(record.text("setting"), format!("limits.{setting}"));
        let named = field.unwrap_or_default();
        assert!(record.text("field").starts_with(&named), "{record:?}");
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(record.text("setting"), format!("limits.{setting}"));
    }
}

#[test]
fn a_malformed_head_is_recorded_with_its_request_and_its_field() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    for (text, reported, field) in [
        (
            "GET /x HTTP/1.1\r\nHost: a.test\r\nX-Bad : 1\r\n\r\n",
            "space_before_colon",
            Some("X-Bad"),
        ),
        (
            "GET /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "conflicting_content_length",
            Some("Content-Length"),
        ),
        (
            "GET /x HTTP/1.1\r\nHost: a.test\r\nX-Zero: a\0b\r\n\r\n",
            "nul_byte",
            Some("X-Zero"),
        ),
        ("GET /x HTTP/1.1\r\nX: 1\r\n\r\n", "missing_host", None),
        (
            "GET /x HTTP/3.0\r\nHost: a.test\r\n\r\n",
            "bad_request_line",
            None,
        ),
    ] {
        let response = proxyd.connect().ask(text);
        assert_eq!(response.status, 400);

        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("reason"), reported);
        assert_eq!((record.text("method"), record.text("path")), ("GET", "/x"));
        let record = proxyd.error_record(&response.correlation_id());
        assert_eq!(record.has("field"), field.is_some(), "{record:?}");
        if let Some(field) = field {
            assert_eq!(record.text("field"), field);
        }
    }
}

#[test]
fn an_invalid_request_is_recorded_as_far_as_it_is_readable() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .listener("timeouts { header-ms 300 }")
        .top(r#"observability { redact-query "token" }"#)
        .start();
    let nothing = proxyd.connect().ask("\x16\x03\x01\r\n\r\n");
    let record = proxyd.access_record(&nothing.correlation_id());
    assert_eq!((record.text("method"), record.text("path")), ("-", ""));

    let late = proxyd
        .connect()
        .ask("GET /late?token=s3cret HTTP/1.1\r\nHost: a.test\r\nX: ");
    assert_eq!(late.status, 408);
    let record = proxyd.access_record(&late.correlation_id());
    assert_eq!(
        (record.text("method"), record.text("host")),
        ("GET", "a.test")
    );
    assert!(record.text("path").starts_with("/late?"), "{record:?}");
    for line in proxyd.stdout().lines() {
        assert!(!line.contains("s3cret"), "{line}");
    }
}

/// Starts a proxy that admits one request at a time, and has a route with its own limit.
fn listing_limits(upstream: &Upstream) -> Proxyd {
    let own = r#"matches { path "/own" }; upstream "u"; policies { max-body-size 5 }"#;
    let limits = "max-body-size-bytes 3; max-header-count 9; max-queued-requests 0
        max-in-flight-requests-per-worker 1; max-memory-percent 99.5";
    limited(upstream, limits)
        .route("own", &format!("priority 90; {own}"))
        .route("metrics", &format!("priority 100; {METRICS}"))
        .top("admin { address \"127.0.0.1:0\" }")
        .start()
}

fn setting(proxyd: &Proxyd, response: &Response) -> String {
    let record = proxyd.limit_record(&response.correlation_id());
    record.text("setting").to_owned()
}

#[test]
fn every_limit_is_listed_with_its_use() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = listing_limits(&upstream);
    let mut held = proxyd.connect();
    held.send(get("/", &[]));
    upstream.wait_for_requests(1);

    let refused = proxyd.connect().ask(get("/", &[]));

    let in_flight = "limits.max-in-flight-requests-per-worker";
    assert_eq!(setting(&proxyd, &refused), in_flight);
    let listed = || admin(&proxyd, "/admin/stats")["limits"].clone();
    // The worker's value at its last tick.
    while listed()["max-in-flight-requests-per-worker"]["current"] != 1 {}
    let limits = listed();
    let names: Vec<_> = limits.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 27, "{names:?}");
    for (name, limit, rejected) in [
        ("max-header-count", json!(9), 0),
        ("max-header-size-bytes", json!(8192), 0),
        ("max-in-flight-requests-per-worker", json!(1), 1),
        ("max-queued-requests", json!(0), 0),
        ("max-decompression-ratio", json!(100.0), 0),
        ("max-requests-per-second-global", json!(null), 0),
        ("max-memory-percent", json!(99.5), 0),
        ("rate-limit", json!(null), 0),
        ("connection-pool.max-connections", json!(null), 0),
    ] {
        assert_eq!(limits[name]["limit"], limit, "{name}");
        assert_eq!(limits[name]["rejected"], rejected, "{name}");
    }
    assert_eq!(limits["max-in-flight-requests"]["current"], 1);
    assert_eq!(limits["max-connections-per-route"]["current"], 1);
    assert_eq!(limits["max-body-size-bytes"]["current"], json!(null));
    assert!(limits["max-memory-bytes"]["current"].as_u64() > Some(1 << 20));
    let mut client = proxyd.connect();
    let setting = |name: &str, setting: &str| format!("{name}{{setting=\"{setting}\"}}");
    for (name, value) in [
        (setting("proxy_limit_maximum", "max-memory-percent"), 99.5),
        (setting("proxy_limit_use", "max-in-flight-requests"), 1.0),
    ] {
        let reported = metric(&mut client, &name);
        assert!((reported - value).abs() < f64::EPSILON, "{name} {reported}");
    }
    gate.open();
    assert_eq!(held.response().status, 200);
}

#[test]
fn every_refusal_is_counted_for_its_setting_which_its_record_names() {
    let upstream = Upstream::echo();
    let proxyd = listing_limits(&upstream);
    let fields: String = (0..20).map(|n| format!("X-{n}: 1\r\n")).collect();
    let chunks = "Transfer-Encoding: chunked\r\n";
    let grown = request("POST /", chunks, "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n");
    for (request, path) in [
        (post("/", "four"), "limits.max-body-size-bytes"),
        (grown, "limits.max-body-size-bytes"),
        (
            post("/own", "sixsix"),
            "routes.route.policies.max-body-size",
        ),
        (request("GET /", &fields, ""), "limits.max-header-count"),
    ] {
        let response = proxyd.connect().ask(request);
        assert_eq!(setting(&proxyd, &response), path);
    }

    let limits = admin(&proxyd, "/admin/stats")["limits"].clone();
    assert_eq!(limits["max-body-size-bytes"]["rejected"], 2);
    assert_eq!(limits["max-header-count"]["rejected"], 1);
    assert_eq!(limits["max-body-size"]["rejected"], 1);
    for (name, count) in [
        (
            "proxy_limit_rejections_total{setting=\"max-body-size-bytes\"}",
            2.0,
        ),
        (
            "proxy_blocked_requests_total{reason=\"body_size_limit\"}",
            3.0,
        ),
    ] {
        let reported = metric(&mut proxyd.connect(), name);
        assert!((reported - count).abs() < f64::EPSILON, "{name} {reported}");
    }
}
