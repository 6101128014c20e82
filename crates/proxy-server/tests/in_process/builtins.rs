//! Responses of the built-in handlers.

use crate::support::{Config, Proxy, refusal, request};
use proxy_testkit::get;

fn serving(handler: &str) -> Proxy {
    let route = format!(r#"service-type "builtin"; builtin-handler "{handler}""#);
    Config::new().route("own", &route).start()
}

#[test]
fn the_health_handler_answers_healthy() {
    let response = serving("health").connect().ask(get("/health", &[]));

    assert_eq!(
        (response.status, response.text().as_str()),
        (200, "{\"status\":\"healthy\"}")
    );
    assert_eq!(
        response.fields.get("content-type"),
        Some("application/json")
    );
    assert!(response.fields.has("x-correlation-id"));
}

#[test]
fn the_ready_handler_answers_ready() {
    let response = serving("ready").connect().ask(get("/", &[]));

    assert_eq!(response.status, 200);
    assert_eq!(response.json()["status"], "ready");
}

#[test]
fn status_has_version_and_times() {
    let response = serving("status").connect().ask(get("/", &[]));

    let status = response.json();
    assert_eq!(status["status"], "healthy");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert!(status["uptime_seconds"].is_u64());
    assert_eq!(status["config_reload_count"], 0);
    for time in ["start_time", "last_config_reload"] {
        let text = status[time].as_str().unwrap();
        assert!(text.ends_with('Z') && text.as_bytes()[10] == b'T', "{text}");
    }
}

#[test]
fn metrics_are_in_the_prometheus_text_format() {
    let proxyd = serving("metrics");
    let mut client = proxyd.connect();
    let _ = client.ask(get("/", &[]));

    let response = client.ask(get("/", &[]));

    let content_type = response.fields.get("content-type").unwrap();
    assert!(
        content_type.starts_with("text/plain; version=0.0.4"),
        "{content_type}"
    );
    let page = response.text();
    for name in [
        "proxy_requests_total{route=\"own\",status=\"200\"} 1",
        "proxy_request_duration_seconds_bucket{route=\"own\",le=\"+Inf\"} 1",
        "proxy_open_connections 1",
        "proxy_requests_in_flight 1",
        "proxy_active_requests 1",
        "proxy_connections_active",
        "proxy_memory_usage_bytes",
        "proxy_header_size_exceeded_total 0",
        "proxy_body_size_exceeded_total 0",
        "proxy_connection_limit_reached_total 0",
        "proxy_rate_limit_exceeded_total 0",
    ] {
        assert!(page.contains(name), "{name} is missing in:\n{page}");
    }
}

#[test]
fn the_not_found_handler_answers_404() {
    refusal(
        &serving("not-found").connect().ask(get("/", &[])),
        404,
        "ROUTE_NOT_FOUND",
    );
}

#[test]
fn welcome_is_a_page() {
    let response = serving("welcome").connect().ask(get("/", &[]));

    assert_eq!(response.status, 200);
    assert_eq!(
        response.fields.get("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(response.text().contains("<title>"));
}

#[test]
fn only_get_and_head_are_answered() {
    let proxyd = serving("health");
    let mut client = proxyd.connect();

    let refused = client.ask(request("POST /", "Content-Length: 0\r\n", ""));
    refusal(&refused, 405, "REQUEST_VALIDATION");
    assert_eq!(refused.fields.get("allow"), Some("GET, HEAD"));
    client.send(request("HEAD /", "", ""));
    let head = client.response_to_head();
    assert_eq!(
        (head.status, head.fields.get("content-length")),
        (200, Some("20"))
    );
    assert_eq!(client.ask(get("/", &[])).status, 200);
}

#[test]
fn an_unread_body_leaves_the_connection_usable() {
    let proxyd = serving("health");
    let mut client = proxyd.connect();

    let response = client.ask(request("GET /", "Content-Length: 5\r\n", "hello"));
    assert_eq!(response.status, 200);
    if response.fields.get("connection") != Some("close") {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }
}
