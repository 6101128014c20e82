//! Contents of the JSON documents.

use crate::support::{Admin, EDGE, plan};
use proxy_health::HealthCause;
use proxy_telemetry::{LimitSetting, LimitSource, LimitUse, Outcome, Quantity, Snapshot};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[tokio::test]
async fn readiness_follows_the_life_of_the_process() {
    let admin = Admin::open();
    let early = admin.get("/ready").await;
    assert_eq!(early.status, 503);
    assert_eq!(early.json()["status"], "not_ready");
    assert!(early.json()["reasons"].is_array());

    admin.sources.lifecycle.serves(1);
    let ready = admin.get("/ready").await;
    assert_eq!(
        (ready.status, ready.json()),
        (200, json!({"status": "ready"}))
    );

    admin.sources.lifecycle.drain();
    let draining = admin.get("/ready").await;
    assert_eq!(draining.status, 503);
    assert_eq!(draining.json()["reasons"], json!(["draining"]));
    assert_eq!(
        admin.get("/health").await.json(),
        json!({"status": "healthy"})
    );
}

#[tokio::test]
async fn the_status_says_since_when_and_under_which_configuration() {
    let admin = Admin::open();
    admin.sources.lifecycle.serves(7);
    let status = admin.get("/status").await.json();

    assert_eq!(status["status"], "healthy");
    assert_eq!(status["version"], "1.2.3");
    assert!(status["uptime_seconds"].as_u64().unwrap() > 0);
    assert_eq!(status["start_time"], "2023-11-14T22:13:20.000Z");
    assert_eq!(status["config_reload_count"], 0);
    assert_eq!(status["last_config_reload"], "2023-11-14T22:13:20.000Z");
    assert_eq!(status["last_config_reload_result"], Value::Null);
    assert_eq!(status["config_generation"], 7);
    assert_eq!(status["draining"], false);
}

#[tokio::test]
async fn metrics_have_the_requested_format() {
    let admin = Admin::open();
    let plain = admin.get("/metrics").await;
    assert_eq!(
        plain.field("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    assert!(plain.body.contains("# TYPE proxy_requests_total counter"));

    let accept = "Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\n";
    let open = admin.ask("GET", "/metrics", accept).await;
    assert!(
        open.field("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    assert!(open.body.ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_version_is_that_of_the_build() {
    let version = Admin::open().get("/admin/version").await.json();

    let expected = json!({
        "name": "proxyd",
        "version": "1.2.3",
        "commit": "abc1234",
        "built_at": "2026-01-02T03:04:05Z",
        "rustc": "rustc 1.95.0",
    });
    assert_eq!(version, expected);
}

#[tokio::test]
async fn targets_show_their_counts_and_why_they_are_unhealthy() {
    let admin = Admin::open();
    let cells = admin.sources.registry.target(0, "app", "10.0.0.1:8080");
    cells.requests.add(5);
    cells.failures.add(2);
    cells.active.add(1);
    let since = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let upstreams = admin.plan.upstreams();
    upstreams[0].targets[1]
        .state
        .fail(HealthCause::ActiveCheck, "connection refused", since);
    upstreams[1].targets[0]
        .state
        .fail(HealthCause::ActiveCheck, "timed out", since);

    let document = admin.get("/admin/upstreams").await.json();
    assert_eq!(keys(&document), ["upstreams"]);
    assert_eq!(keys(&document["upstreams"]), ["app", "lost"]);
    let expected = json!({
        "healthy": true,
        "retries": {"made": 0, "refused_by_budget": 0},
        "targets": [
            {
                "address": "10.0.0.1:8080",
                "backup": false,
                "healthy": true,
                "active_connections": 1,
                "total_requests": 5,
                "failed_requests": 2,
                "weight": 1,
                "override": null,
                "causes": [],
                "recent_checks": [],
            },
            {
                "address": "app.internal:80",
                "backup": false,
                "name": "app.internal:80",
                "next_lookup": null,
                "healthy": false,
                "active_connections": 0,
                "total_requests": 0,
                "failed_requests": 0,
                "last_error": "connection refused",
                "unhealthy_since": "2023-11-14T22:13:20.000Z",
                "weight": 1,
                "override": null,
                "causes": ["active_check"],
                "recent_checks": [],
            },
        ],
    });
    assert_eq!(document["upstreams"]["app"], expected);
    assert_eq!(document["upstreams"]["lost"]["healthy"], false);
}

#[derive(Debug)]
struct OneLimit;

impl LimitSource for OneLimit {
    fn uses(&self, _: &Snapshot) -> Vec<LimitUse> {
        vec![LimitUse {
            setting: LimitSetting::MaxTotalConnections,
            current: Some(Quantity::Count(2)),
            maximum: Some(Quantity::Count(1_000)),
        }]
    }
}

#[tokio::test]
async fn stats_count_requests_by_status_and_route() {
    let admin = Admin::open();
    let worker = admin.sources.registry.worker(0);
    worker.requests_in_flight.add(3);
    worker.connections_active.add(4);
    worker.rejected(LimitSetting::MaxTotalConnections);
    admin.sources.registry.set_limits(Arc::new(OneLimit));
    let shop = admin.sources.registry.route(0, "shop");
    for status in [200, 200, 404, 502] {
        shop.record(&Outcome {
            status,
            took: Duration::from_millis(20),
            bytes_in: 0,
            bytes_out: 10,
            failed: status == 502,
            aborted: false,
        });
    }

    let stats = admin.get("/admin/stats").await.json();
    assert_eq!(stats["requests_total"], 4);
    assert_eq!(stats["requests_in_flight"], 3);
    assert_eq!(stats["connections_active"], 4);
    assert_eq!(stats["by_status"], json!({"2xx": 2, "4xx": 1, "5xx": 1}));
    let route = &stats["by_route"]["shop"];
    assert_eq!(
        (&route["requests"], &route["errors"]),
        (&json!(4), &json!(1))
    );
    assert_eq!(keys(&route["latency_ms"]), ["p50", "p95", "p99"]);
    let limits = json!({"max-total-connections": {"current": 2, "limit": 1000, "rejected": 1}});
    assert_eq!(stats["limits"], limits);
    assert_eq!(
        keys(&stats["memory"]),
        ["limit_bytes", "rss_bytes", "shedding"]
    );
}

#[tokio::test]
async fn routes_are_listed_in_matching_order_with_their_places() {
    let routes = Admin::open().get("/admin/routes").await.json();

    let ids: Vec<_> = routes
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, ["shop", "health", "plain"]);
    let shop = json!({
        "id": "shop",
        "priority": 100,
        "listeners": ["public", "internal"],
        "matches": {
            "host": ["*.example.com"],
            "path-prefix": ["/api", "/v1"],
            "header": ["x-api-key: (redacted)"],
        },
        "upstream": "app",
        "service_type": "api",
        "builtin_handler": null,
        "redirect": null,
        "respond": null,
        "policies": {
            "timeouts.request-secs": 30,
            "max-body-size": 500_000_000,
            "buffer-requests": false,
            "buffer-responses": false,
            "request-headers.remove": ["x-debug"],
            "request-headers.set": ["x-env: beta", "x-vault-token: (redacted)"],
        },
        "source": {"file": "edge.kdl", "line": 14},
    });
    assert_eq!(routes[0], shop);
    assert_eq!(routes[1]["service_type"], "builtin");
    assert_eq!(routes[1]["builtin_handler"], "health");
    assert_eq!(routes[1]["upstream"], Value::Null);
    assert_eq!(routes[2]["matches"], json!({}));
    assert_eq!(routes[2]["service_type"], Value::Null);
}

#[tokio::test]
async fn the_configuration_is_shown_with_its_places_and_without_its_secrets() {
    let answer = Admin::open().get("/admin/config").await;
    let document = answer.json();

    assert_eq!(document["config_generation"], 1);
    let settings = document["settings"].as_array().unwrap();
    let setting_at = |path: &str| settings.iter().find(|one| one["path"] == path).unwrap();
    let body = setting_at("routes.route[\"shop\"].policies.max-body-size");
    assert_eq!(
        (&body["value"], &body["origin"]),
        (&json!(500_000_000), &json!("edge.kdl:28"))
    );
    assert_eq!(setting_at("limits.max-header-count")["origin"], "default");
    assert!(!answer.body.contains("k-12345") && !answer.body.contains("t-67890"));
}

#[tokio::test]
async fn a_reload_is_shown_from_the_next_request_on() {
    let admin = Admin::open();
    let before = admin.get("/admin/routes").await.json();
    let text = EDGE.replace("route \"plain\"", "route \"renamed\"");
    admin.state.publish(plan(2, &text));

    let after = admin.get("/admin/routes").await.json();
    assert_eq!(
        (&before[2]["id"], &after[2]["id"]),
        (&json!("plain"), &json!("renamed"))
    );
    let config = admin.get("/admin/config").await.json();
    assert_eq!(config["config_generation"], 2);
}

#[tokio::test]
async fn ten_thousand_routes_are_listed_quickly() {
    use std::fmt::Write;
    let mut text = EDGE.replace(
        "routes {",
        "upstreams { upstream \"b\" { target \"10.0.0.2:80\" } }\nroutes {",
    );
    text.push_str("routes {\n");
    for number in 0..10_000 {
        let matches =
            format!("matches {{ host \"h{number}.example\"; path-prefix \"/p{number}\"; }}");
        writeln!(text, "route \"r{number}\" {{ {matches}; upstream \"b\"; }}").unwrap();
    }
    text.push_str("}\n");
    let admin = Admin::with_plan(&text, None);

    let begun = now();
    let routes = admin.get("/admin/routes").await.json();
    let config = admin.get("/admin/config").await.json();
    let took = now() - begun;

    assert_eq!(routes.as_array().unwrap().len(), 10_003);
    assert!(config["settings"].as_array().unwrap().len() > 40_000);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[expect(clippy::disallowed_methods, reason = "the test measures real time")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn a_request_is_explained_by_the_active_plan() {
    let admin = Admin::open();
    let ask = async |body: &str| {
        let fields = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        admin.ask("POST", "/admin/explain", &fields).await
    };

    let answer = ask(r#"{"url": "http://internal.example/health"}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let reported = answer.json();
    assert_eq!(reported["route"]["name"], "health", "{reported}");

    let refused = ask(r#"{"url": "/", "listener": "nobody"}"#).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("there is no listener `nobody`"),
        "{}",
        refused.body
    );
    let other = admin.get("/admin/explain").await;
    assert_eq!((other.status, other.field("allow")), (405, Some("POST")));
}
