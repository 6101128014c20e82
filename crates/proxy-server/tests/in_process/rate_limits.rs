//! Rate limits: of all clients, per client, per route, and by the policy of a route.
#![expect(clippy::disallowed_methods, reason = "a test reads the time of day")]

use crate::support::{Config, METRICS, Proxy, metric, pause, reason, refusal, target};
use proxy_testkit::{Gate, Response, Upstream, closed_port, get};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const BEHIND_A_BALANCER: &str = r#"trusted-proxies "127.0.0.0/8""#;

fn by_policy(upstream: &Upstream, limit: &str) -> Config {
    Config::through(upstream, &format!("rate-limit {{ {limit} }}"))
        .listener(BEHIND_A_BALANCER)
        .route("metrics", &format!("priority 100; {METRICS}"))
}

fn by_limits(upstream: &Upstream, limits: &str) -> Config {
    Config::new()
        .listener(BEHIND_A_BALANCER)
        .route("a", r#"upstream "u"; matches { path-prefix "/a" }"#)
        .route("b", r#"upstream "u"; matches { path-prefix "/b" }"#)
        .upstream("u", &target(upstream))
        .top(&format!("limits {{ {limits} }}"))
}

/// The response to a request of the client at `address`.
fn ask(proxyd: &Proxy, path: &str, address: &str) -> Response {
    proxyd
        .connect()
        .ask(get(path, &[("X-Forwarded-For", address)]))
}

/// The statuses of `count` requests.
fn statuses(proxyd: &Proxy, count: usize, path: &str, address: &str) -> Vec<u16> {
    (0..count)
        .map(|_| ask(proxyd, path, address).status)
        .collect()
}

/// The first refusal: a bucket refills while a busy machine stalls.
#[track_caller]
fn refused(proxyd: &Proxy, path: &str, address: &str) -> Response {
    let mut answers = (0..100).map(|_| ask(proxyd, path, address));
    let refused = answers.find(|answer| answer.status != 200);
    refused.unwrap()
}

/// A field of `response` that holds a number.
#[track_caller]
fn number(response: &Response, field: &str) -> u64 {
    let value = response.fields.get(field);
    value
        .unwrap_or_else(|| panic!("no {field}"))
        .parse()
        .unwrap()
}

/// Checks that `response` is a refusal by a rate limit.
#[track_caller]
fn too_fast(proxyd: &Proxy, response: &Response, word: &str, setting: &str) {
    let message = refusal(response, 429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(message, "Rate limit exceeded: too many requests");
    assert_eq!(number(response, "retry-after"), 1);
    assert_eq!(response.json()["error"]["retry_after"], 1);
    assert_eq!(number(response, "x-ratelimit-remaining"), 0);
    assert_eq!(reason(proxyd, response), word);
    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.text("level"), "WARN");
    assert_eq!(record.text("message"), message);
    assert_eq!(record.text("limit_type"), "request_rate");
    assert_eq!(record.text("setting"), setting);
    // The rate, not the burst.
    assert_eq!(
        (record.number("limit"), record.number("actual")),
        (Some(1.0), Some(2.0))
    );
    assert!(record.has("client_ip"));
}

#[test]
fn a_route_with_a_rate_limit_admits_its_burst_and_then_its_rate() {
    let upstream = Upstream::saying("");
    let proxyd = by_policy(&upstream, "requests-per-second 1; burst 3").start();
    let mut client = proxyd.connect();

    for left in [2, 1, 0] {
        let response = client.ask(get("/", &[]));
        assert_eq!(response.status, 200);
        assert_eq!(number(&response, "x-ratelimit-limit"), 3);
        assert_eq!(number(&response, "x-ratelimit-remaining"), left);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let reset = number(&response, "x-ratelimit-reset");
        assert!((now..now + 5).contains(&reset), "{reset} at {now}");
    }
    let response = client.ask(get("/", &[]));

    too_fast(
        &proxyd,
        &response,
        "policy_rate_limit",
        "routes.route.policies.rate-limit",
    );
    assert_eq!(upstream.requests().len(), 3);
    assert!((metric(&mut client, "proxy_rate_limit_exceeded_total") - 1.0).abs() < f64::EPSILON);
    let rejected = "proxy_limit_rejections_total{setting=\"rate-limit\"}";
    assert!((metric(&mut client, rejected) - 1.0).abs() < f64::EPSILON);
    let blocked = "proxy_blocked_requests_total{reason=\"policy_rate_limit\"}";
    assert!((metric(&mut client, blocked) - 1.0).abs() < f64::EPSILON);
    pause(&mut client, 1_050);
    assert_eq!(client.ask(get("/", &[])).status, 200);
}

#[test]
fn requests_without_a_route_count_against_the_rates_of_their_client_and_of_all() {
    let upstream = Upstream::saying("");
    let (mine, others) = ("192.0.2.1", "198.51.100.1");
    for (limits, word, is_of_client) in [
        (
            "max-requests-per-second-per-client 1",
            "client_rate_limit",
            true,
        ),
        (
            "max-requests-per-second-global 1",
            "global_rate_limit",
            false,
        ),
    ] {
        let proxyd = by_limits(&upstream, limits).start();
        for _ in 0..10 {
            assert_eq!(ask(&proxyd, "/none", mine).status, 404);
        }

        let mut answers = (0..100).map(|_| ask(&proxyd, "/none", mine));
        let refused = answers.find(|answer| answer.status != 404).unwrap();

        assert_eq!(reason(&proxyd, &refused), word);
        refusal(&refused, 429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(ask(&proxyd, "/a", others).status == 200, is_of_client);
        // A path refused before routing takes from the same bucket.
        let mut answers = (0..100).map(|_| ask(&proxyd, "/a%00", mine));
        assert!(answers.any(|answer| answer.status == 429), "{limits}");
    }
}

#[test]
fn a_burst_that_is_not_written_is_ten_times_the_rate() {
    let upstream = Upstream::saying("");
    let proxyd = by_policy(&upstream, "requests-per-second 1").start();

    assert_eq!(
        number(&ask(&proxyd, "/", "192.0.2.1"), "x-ratelimit-limit"),
        10
    );
}

#[test]
fn each_rate_key_has_a_bucket_for_each_of_its_values() {
    let upstream = Upstream::saying("");
    let answers = |key: &str, requests: [(&str, &str, &str); 4]| -> Vec<u16> {
        let limit = format!("requests-per-second 1; burst 1; key \"{key}\"");
        let proxyd = by_policy(&upstream, &limit).start();
        let ask = |(path, address, tenant): (&str, &str, &str)| {
            let mut fields = vec![("X-Forwarded-For", address)];
            if !tenant.is_empty() {
                fields.push(("X-Tenant", tenant));
            }
            proxyd.connect().ask(get(path, &fields)).status
        };
        requests.map(ask).to_vec()
    };
    for (key, requests) in [
        (
            "client_ip",
            [("/1", "192.0.2.1", "a"), ("/2", "192.0.2.1", "b")],
        ),
        (
            "client_ip",
            [("/1", "2001:db8::1", "a"), ("/2", "2001:db8::2", "b")],
        ),
        (
            "header:X-Tenant",
            [("/1", "192.0.2.1", "a"), ("/2", "192.0.2.2", "a")],
        ),
        (
            "header:X-Tenant",
            [("/1", "192.0.2.1", ""), ("/2", "192.0.2.2", "")],
        ),
        (
            "path",
            [("/1?a", "192.0.2.1", "a"), ("/%31?b", "192.0.2.2", "b")],
        ),
    ] {
        let [first, same] = requests;
        let other = ("/9", "192.0.2.9", "z");
        let reported = answers(key, [first, same, other, other]);
        assert_eq!(reported, [200, 429, 200, 429], "{key} {requests:?}");
    }
    let reported = answers(
        "route",
        [
            ("/1", "192.0.2.1", "a"),
            ("/2", "192.0.2.2", "b"),
            ("/3", "192.0.2.3", "c"),
            ("/metrics", "192.0.2.3", "c"),
        ],
    );
    assert_eq!(reported, [200, 429, 429, 200]);
}

#[test]
fn all_clients_together_have_a_rate() {
    let upstream = Upstream::saying("");
    let proxyd = by_limits(&upstream, "max-requests-per-second-global 1").start();

    assert_eq!(statuses(&proxyd, 5, "/a", "192.0.2.1"), [200; 5]);
    assert_eq!(statuses(&proxyd, 5, "/b", "192.0.2.2"), [200; 5]);
    let response = refused(&proxyd, "/a", "192.0.2.3");

    let setting = "limits.max-requests-per-second-global";
    too_fast(&proxyd, &response, "global_rate_limit", setting);
}

#[test]
fn each_client_has_a_rate_of_its_own() {
    let upstream = Upstream::saying("");
    let proxyd = by_limits(&upstream, "max-requests-per-second-per-client 1").start();

    assert_eq!(statuses(&proxyd, 10, "/a", "192.0.2.1"), [200; 10]);
    let response = refused(&proxyd, "/b", "192.0.2.1");

    let setting = "limits.max-requests-per-second-per-client";
    too_fast(&proxyd, &response, "client_rate_limit", setting);
    assert_eq!(statuses(&proxyd, 10, "/a", "192.0.2.2"), [200; 10]);
}

#[test]
fn each_route_has_a_rate_of_its_own() {
    let upstream = Upstream::saying("");
    let proxyd = by_limits(&upstream, "max-requests-per-second-per-route 1").start();

    assert_eq!(statuses(&proxyd, 10, "/a", "192.0.2.1"), [200; 10]);
    let response = refused(&proxyd, "/a", "192.0.2.2");

    let setting = "limits.max-requests-per-second-per-route";
    too_fast(&proxyd, &response, "route_rate_limit", setting);
    assert_eq!(statuses(&proxyd, 10, "/b", "192.0.2.1"), [200; 10]);
}

#[test]
fn a_limit_that_only_observes_serves_and_logs() {
    let upstream = Upstream::saying("");
    let limit = "requests-per-second 1; burst 1; observe-only #true";
    let proxyd = by_policy(&upstream, limit).start();
    let mut client = proxyd.connect();

    let responses = [0; 2].map(|_| client.ask(get("/", &[])));

    for response in &responses {
        assert_eq!(response.status, 200);
        assert_eq!(number(response, "x-ratelimit-remaining"), 0);
    }
    let record = proxyd.limit_record(&responses[1].correlation_id());
    assert_eq!(record.text("limit_type"), "request_rate");
    assert!(
        record
            .text("message")
            .ends_with("(served: the limit only observes)")
    );
    let observed = metric(&mut client, "proxy_rate_limit_observed_total");
    assert!((observed - 1.0).abs() < f64::EPSILON);
    assert!(metric(&mut client, "proxy_rate_limit_exceeded_total").abs() < f64::EPSILON);
}

#[test]
fn tokens_spent_stay_spent_over_a_reload_unless_the_limit_is_another() {
    let upstream = Upstream::saying("");
    let config = |limit: &str, more: &str| by_policy(&upstream, limit).top(more).kdl();
    let limit = "requests-per-second 1; burst 2";
    let proxyd = by_policy(&upstream, limit).start();
    assert_eq!(statuses(&proxyd, 2, "/", "192.0.2.1"), [200; 2]);

    proxyd.reload(&config(limit, "limits { max-header-count 50 }"));
    let remaining = number(&ask(&proxyd, "/", "192.0.2.1"), "x-ratelimit-remaining");
    assert_eq!(remaining, 0);
    proxyd.reload(&config("requests-per-second 1; burst 5", ""));
    let remaining = number(&ask(&proxyd, "/", "192.0.2.1"), "x-ratelimit-remaining");
    assert_eq!(remaining, 4);
}

#[test]
fn every_response_of_a_limited_route_names_the_limit() {
    let fields = "X-RateLimit-Limit: 999\r\nX-RateLimit-Remaining: 998\r\nX-RateLimit-Reset: 1";
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n\r\n");
    let upstream = Upstream::answering(answer);
    let limit = "rate-limit { requests-per-second 10 }";
    let proxyd = Config::new()
        .route(
            "answered",
            &format!(r#"upstream "u"; matches {{ path "/answered" }}; {limit}"#),
        )
        .route(
            "unreachable",
            &format!(r#"upstream "gone"; {limit}; max-body-size 1"#),
        )
        .upstream("u", &target(&upstream))
        .upstream("gone", &format!("target \"{}\"", closed_port()))
        .start();

    for (path, status) in [("/answered", 200), ("/", 502)] {
        let response = proxyd.connect().ask(get(path, &[]));
        assert_eq!(response.status, status);
        assert_eq!(number(&response, "x-ratelimit-limit"), 100);
        assert_eq!(number(&response, "x-ratelimit-remaining"), 99);
        assert_eq!(response.fields.all("x-ratelimit-reset").len(), 1);
        assert!(number(&response, "x-ratelimit-reset") > 1_000_000_000);
    }
    let response = proxyd.connect().ask(crate::support::post("/", "two"));
    assert_eq!(response.status, 413);
    assert_eq!(number(&response, "x-ratelimit-limit"), 100);
}

#[test]
fn a_rate_limit_holds_over_all_workers() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    gate.open();
    let limit = "requests-per-second 1; burst 20; key \"route\"";
    let proxyd = by_policy(&upstream, limit).top("worker-threads 4").start();

    let began = Instant::now();
    let reported = statuses(&proxyd, 60, "/", "192.0.2.1");

    let admitted = reported.iter().filter(|status| **status == 200).count() as u64;
    // Plus the tokens added during the test.
    let most = 20 + began.elapsed().as_secs() + 1;
    assert!((20..=most).contains(&admitted), "{admitted} of {most}");
}

#[test]
fn a_flood_over_a_limit_writes_a_few_limit_records_and_their_number() {
    let upstream = Upstream::saying("");
    let proxyd = by_policy(&upstream, "requests-per-second 1; burst 1").start();
    let mut client = proxyd.connect();
    let refused = (0..200).filter(|_| client.ask(get("/", &[])).status == 429);
    let refused = refused.count();

    let sum = proxyd.record(|record| record.has("repeated"));

    assert_eq!(sum.text("setting"), "routes.route.policies.rate-limit");
    assert_eq!(sum.text("client_ip"), "127.0.0.1");
    let records = proxyd.records();
    let of_limits = records.iter().filter(|record| record.has("limit_type"));
    // A busy machine may take longer than five seconds for the requests.
    assert!(of_limits.count() < refused / 2, "{refused} were refused");
    let failed = records.iter().filter(|record| record.has("http_status"));
    assert_eq!(failed.count(), refused, "each request has its error record");
}

#[test]
fn a_rate_may_be_below_one_a_second() {
    let proxyd = Config::new()
        .route(
            "login",
            r#"respond 200 "x"; rate-limit { rate "2/h"; key "route" }"#,
        )
        .start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask(get("/", &[]));
        assert_eq!(response.status, 200);
        assert_eq!(response.fields.get("x-ratelimit-limit"), Some("2"));
    }
    let refused = client.ask(get("/", &[]));
    refusal(&refused, 429, "RATE_LIMIT_EXCEEDED");
    let wait: u64 = refused.fields.get("retry-after").unwrap().parse().unwrap();
    // One token is added every half an hour; part of the first has accumulated.
    assert!((1_700..=1_800).contains(&wait), "{wait}");
    assert_eq!(refused.fields.get("x-ratelimit-remaining"), Some("0"));
}
