//! All documented metrics with their labels, after real traffic.

use crate::support::{Config, METRICS, admin, post, request, target};
use proxy_testkit::{Gate, Proxyd, RawClient, Upstream, closed_port, get};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Documented metrics and their labels, with minimum values after the traffic below.
const INTERFACE: &[(&str, &[&str], f64)] = &[
    ("proxy_requests_total", &["route", "status"], 1.0),
    ("proxy_request_duration_seconds_count", &["route"], 1.0),
    ("proxy_request_duration_seconds_sum", &["route"], 0.0),
    (
        "proxy_request_duration_seconds_bucket",
        &["le", "route"],
        1.0,
    ),
    ("proxy_upstream_attempts_total", &["upstream"], 1.0),
    (
        "proxy_upstream_failures_total",
        &["reason", "upstream"],
        1.0,
    ),
    ("proxy_circuit_breaker_state", &["component", "route"], 1.0),
    ("proxy_connection_pool_size", &["upstream"], 1.0),
    ("proxy_connection_pool_idle", &["upstream"], 1.0),
    ("proxy_memory_usage_bytes", &[], 1_000_000.0),
    ("proxy_open_connections", &[], 2.0),
    ("proxy_active_requests", &[], 2.0),
    ("proxy_blocked_requests_total", &["reason"], 1.0),
    ("proxy_header_size_exceeded_total", &[], 1.0),
    ("proxy_body_size_exceeded_total", &[], 1.0),
    ("proxy_connection_limit_reached_total", &[], 1.0),
    ("proxy_rate_limit_exceeded_total", &[], 1.0),
    ("proxy_connections_active", &[], 2.0),
    ("proxy_requests_in_flight", &[], 2.0),
    ("process_cpu_seconds_total", &[], f64::MIN_POSITIVE),
];

/// Labels of each metric, and its highest value.
type Samples = BTreeMap<String, (BTreeSet<String>, f64)>;

fn scrape(client: &mut RawClient) -> Samples {
    let page = client.ask(request("GET /metrics", "", "")).text();
    let mut samples = Samples::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        // Here, values of labels contain no quotes or commas.
        let labels = labels.trim_end_matches('}').split(',');
        let labels = labels.filter_map(|label| label.split_once('='));
        let labels: BTreeSet<_> = labels.map(|(name, _)| name.to_owned()).collect();
        let value: f64 = value.parse().unwrap();
        let sample = samples
            .entry(name.to_owned())
            .or_insert((labels.clone(), value));
        assert_eq!(sample.0, labels, "{name}");
        sample.1 = sample.1.max(value);
    }
    samples
}

fn started(upstream: &Upstream, slow: &Upstream) -> Proxyd {
    let route = |prefix: &str, settings: &str| {
        format!("matches {{ path-prefix \"/{prefix}\" }}; {settings}")
    };
    Config::new()
        .route("metrics", &format!("priority 100; {METRICS}"))
        .route("plain", &route("plain", r#"upstream "u""#))
        .route("slow", &route("slow", r#"upstream "slow""#))
        .route(
            "gone",
            &route(
                "gone",
                r#"upstream "gone"; circuit-breaker { failure-threshold 1; timeout-seconds 600 }"#,
            ),
        )
        .route(
            "limited",
            &route(
                "limited",
                r#"upstream "u"; rate-limit { requests-per-second 1; burst 1 }"#,
            ),
        )
        .upstream("u", &target(upstream))
        .upstream("slow", &target(slow))
        .upstream("gone", &format!("target \"{}\"", closed_port()))
        .top("limits { max-connections-per-client 3; max-body-size-bytes 5 }")
        .top("admin { address \"127.0.0.1:0\" }")
        .start()
}

/// Sends requests that are answered, limited and refused. Returns an open connection.
fn reach_limits(proxyd: &Proxyd) -> RawClient {
    let mut client = proxyd.connect();
    assert_eq!(client.ask(post("/plain", "five!")).status, 200);
    assert_eq!(client.ask(post("/plain", "sixsix")).status, 413);
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/gone", &[])).status, 502);
    assert_eq!(client.ask(get("/gone", &[])).status, 503);
    let mut limited = (0..100).map(|_| client.ask(get("/limited", &[])).status);
    assert_eq!(limited.next(), Some(200));
    // The bucket refills meanwhile, so it may admit another request.
    assert_eq!(limited.find(|status| *status != 200), Some(429));
    let large = "a".repeat(9_000);
    let refused = proxyd.connect().ask(get("/plain", &[("X-Large", &large)]));
    assert_eq!(refused.status, 429);
    client
}

#[test]
fn every_metric_of_the_interface_matches_the_traffic() {
    let (upstream, gate) = (Upstream::echo(), Gate::new());
    let slow = Upstream::gated(&gate, "late");
    let proxyd = started(&upstream, &slow);
    let mut client = reach_limits(&proxyd);
    let mut waiting = proxyd.connect();
    waiting.send(get("/slow", &[]));
    slow.wait_for_requests(1);
    // The proxy may notice the end of earlier connections later than a new one.
    while scrape(&mut client)["proxy_connections_active"].1 > 2.0 {}
    let mut others: Vec<RawClient> = Vec::new();
    // Above the limit, one connection is refused.
    let over = loop {
        let mut other = proxyd.connect();
        other.send(get("/plain", &[]));
        let response = other.response();
        if response.status == 503 {
            break response;
        }
        others.push(other);
        assert!(others.len() < 5);
    };
    assert_eq!(over.error_code(), "LIMIT_EXCEEDED");
    // Idle pooled connections are reported at the next tick.
    let samples = loop {
        let samples = scrape(&mut client);
        let is_told = |name: &str| samples.get(name).is_some_and(|(_, value)| *value > 0.0);
        if is_told("proxy_connection_pool_idle") && is_told("proxy_upstream_failures_total") {
            break samples;
        }
    };

    for (name, labels, least) in INTERFACE {
        let (seen, value) = &samples.get(*name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(seen.iter().collect::<Vec<_>>(), *labels, "{name}");
        assert!(value >= least, "{name} is {value}");
    }
    check_stats(&admin(&proxyd, "/admin/stats"));
    gate.open();
    assert_eq!(waiting.response().text(), "late");
}

fn check_stats(stats: &Value) {
    assert_eq!(stats["requests_in_flight"], 1);
    assert!(stats["requests_total"].as_u64() >= Some(7));
    assert_eq!(stats["by_status"]["5xx"], 3);
    // Errors 413 and 429 are caused by the client; 502 and 503 are not.
    let errors = |route: &str| stats["by_route"][route]["errors"].as_u64();
    assert_eq!(errors("plain"), Some(0));
    assert_eq!(errors("limited"), Some(0));
    assert_eq!(errors("gone"), Some(2));
    let route = &stats["by_route"]["plain"];
    assert!(route["latency_ms"]["p99"].as_f64() > Some(0.0));
    assert_eq!(stats["limits"]["max-body-size-bytes"]["rejected"], 1);
    assert_eq!(stats["limits"]["max-header-value-bytes"]["rejected"], 1);
    assert_eq!(stats["limits"]["max-total-connections"]["current"], 3);
    assert!(stats["memory"]["rss_bytes"].as_u64() > Some(1_000_000));
    assert_eq!(stats["memory"]["shedding"], false);
}
