//! Exact values in status, metrics and access log.

use crate::support::{Config, METRICS, metric, post, refusal, request};
use proxy_testkit::{End, Gate, RawClient, Reload, Upstream, closed_port, free_port, get, ok};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const STATUS: &str =
    r#"matches { path "/status" }; service-type "builtin"; builtin-handler "status""#;

fn with_metrics(config: Config) -> Config {
    config.route("metrics", &format!("priority 100; {METRICS}"))
}

#[test]
fn a_reload_that_was_refused_is_not_counted_as_one() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream).route("status", &format!("priority 100; {STATUS}"));
    let proxyd = config.start();
    let mut client = proxyd.connect();
    let mut status = || client.ask(get("/status", &[])).json();
    let before = status();

    assert!(matches!(proxyd.reload("nonsense"), Reload::Refused(_)));

    let after = status();
    assert_eq!(after["config_reload_count"], 0);
    assert_eq!(after["last_config_reload"], before["last_config_reload"]);
    assert_eq!(after["last_config_reload_result"], "failure");
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
    let after = status();
    assert_eq!(after["config_reload_count"], 1);
    assert_ne!(after["last_config_reload"], before["last_config_reload"]);
    assert_eq!(after["last_config_reload_result"], "success");
}

#[test]
fn the_record_of_a_late_head_has_its_duration() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream).listener("timeouts { header-ms 300 }");
    let proxyd = config.start();

    let half = "GET / HTTP/1.1\r\nHost: a.test\r\n";
    let response = proxyd.connect().ask(half);

    refusal(&response, 408, "TIMEOUT");
    let id = response.correlation_id();
    for record in [proxyd.error_record(&id), proxyd.access_record(&id)] {
        let took = record.number("duration_ms").unwrap();
        assert!((300.0..20_000.0).contains(&took), "{record:?}");
    }
}

#[test]
fn a_header_limit_names_the_size_where_it_is_known() {
    let upstream = Upstream::saying("");
    let limits = "max-header-size-bytes 512; max-header-count 10; \
        max-header-name-bytes 32; max-header-value-bytes 100";
    let proxyd = Config::to(&upstream)
        .top(&format!("limits {{ {limits} }}"))
        .start();
    let many: String = (0..20).map(|n| format!("X-{n}: 1\r\n")).collect();
    let large: String = (0..8)
        .map(|n| format!("X-{n}: {}\r\n", "v".repeat(90)))
        .collect();
    // `Host: a.test` counts as well.
    let size = u32::try_from(large.len() + "Host: a.test\r\n".len()).unwrap();
    for (fields, limit, actual) in [
        (many, 10, 21),
        (large, 512, size),
        (format!("{}: 1\r\n", "n".repeat(40)), 32, 40),
        (format!("X: {}\r\n", "v".repeat(200)), 100, 200),
    ] {
        let response = proxyd.connect().ask(request("GET /", &fields, ""));

        let message = refusal(&response, 429, "LIMIT_EXCEEDED");
        let error_message = format!("Current value {actual} exceeds limit {limit}");
        assert!(
            message.ends_with(&error_message),
            "{message}, not {error_message}"
        );
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(record.number("actual"), Some(f64::from(actual)));
        assert_eq!(record.number("limit"), Some(f64::from(limit)));
    }
}

#[test]
fn a_request_that_waits_for_a_connection_has_none() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "done");
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let config = Config::to_with(&upstream, "connection-pool { max-connections 1 }")
        .top(&format!("admin {{ address \"{admin}\" }}"));
    let proxyd = with_metrics(config).start();
    let mut clients = [proxyd.connect(), proxyd.connect(), proxyd.connect()];
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(1);
    let mut client = proxyd.connect();
    let in_flight = |client: &mut RawClient| metric(client, "proxy_requests_in_flight ");
    while in_flight(&mut client) < 4.0 {}

    let ask = "GET /admin/upstreams HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let document = RawClient::connect(admin).ask(ask);

    let document = document.json();
    let target = &document["upstreams"]["u"]["targets"][0];
    assert_eq!(target["active_connections"], 1, "{document}");
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().text(), "done");
    }
}

#[test]
fn a_record_names_the_upstream_that_a_refused_request_was_for() {
    let upstream = Upstream::echo();
    let config = Config::through(&upstream, r#"policies { max-body-size "10B" }"#)
        .route("lost", r#"upstream "nowhere"; matches { path "/lost" }"#)
        .upstream("nowhere", "target \"no-such-name.invalid:80\"");
    let proxyd = config.start();

    let large = proxyd.connect().ask(post("/", "eleven bytes"));
    refusal(&large, 413, "LIMIT_EXCEEDED");
    let lost = proxyd.connect().ask(get("/lost", &[]));
    assert_eq!(lost.status, 503, "{}", lost.text());

    for (response, name) in [(large, "u"), (lost, "nowhere")] {
        let id = response.correlation_id();
        assert_eq!(proxyd.error_record(&id).text("upstream"), name);
        assert_eq!(proxyd.access_record(&id).text("upstream"), name);
    }
}

#[test]
fn the_metrics_name_the_active_configuration_and_its_time() {
    let upstream = Upstream::saying("");
    let config = with_metrics(Config::to(&upstream));
    let proxyd = config.start();
    let mut client = proxyd.connect();
    let mut error_message = || {
        let generation = metric(&mut client, "proxy_config_generation ");
        let at = metric(&mut client, "proxy_config_last_reload_timestamp_seconds ");
        (generation.to_string(), at)
    };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let (generation, at) = error_message();
    assert_eq!(generation, "1");
    assert!((now - at).abs() < 60.0, "{at} is not about now");

    assert!(matches!(proxyd.reload("nonsense"), Reload::Refused(_)));
    assert_eq!(error_message(), ("1".to_owned(), at));
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);

    let (generation, later) = error_message();
    assert_eq!(generation, "2");
    assert!(later >= at);
}

#[test]
fn the_metrics_show_healthy_targets() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream)
        .route("lost", r#"upstream "nowhere"; matches { path "/lost" }"#)
        .upstream("nowhere", "target \"no-such-name.invalid:80\"");
    let proxyd = with_metrics(config).start();
    let mut client = proxyd.connect();

    let address = upstream.address();
    let name = "proxy_upstream_target_healthy";
    let well = format!("{name}{{upstream=\"u\",target=\"{address}\"}} ");
    let lost = format!("{name}{{upstream=\"nowhere\",target=\"no-such-name.invalid:80\"}} ");
    assert!(metric(&mut client, &well) > 0.5);
    assert!(metric(&mut client, &lost) < 0.5);
    let without = with_metrics(Config::to(&upstream));
    assert_eq!(proxyd.reload(&without.kdl()), Reload::Applied);
    let page = client.ask(get("/metrics", &[])).text();
    assert!(page.contains(&well) && !page.contains(&lost), "{page}");
}

#[test]
fn a_refused_connect_ends_its_connection_at_once() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let connect = "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n";
    let response = client.ask(connect);

    refusal(&response, 405, "REQUEST_VALIDATION");
    assert_eq!(response.fields.get("connection"), Some("close"));
    client.set_response_timeout(Duration::from_secs(5));
    assert_eq!(client.end(), End::Closed);
}

#[test]
fn response_headers_of_a_route_are_on_local_errors_too() {
    let upstream = Upstream::answering(ok("fine"));
    let edits = r#"response-headers { set "X-Frame-Options" "DENY"; set "Server" "edge"; remove "Cache-Control" }"#;
    let small = format!("{edits}; policies {{ max-body-size \"4B\" }}");
    let dead = format!(r#"upstream "dead"; matches {{ path "/dead" }}; {edits}"#);
    let config = Config::through(&upstream, &small)
        .route("dead", &dead)
        .upstream("dead", &format!("target \"{}\"", closed_port()));
    let proxyd = config.start();

    let dead = proxyd.connect().ask(get("/dead", &[]));
    let large = proxyd.connect().ask(post("/", "five!"));

    refusal(&dead, 502, "UPSTREAM_ERROR");
    refusal(&large, 413, "LIMIT_EXCEEDED");
    for response in [dead, large] {
        assert_eq!(response.fields.get("x-frame-options"), Some("DENY"));
        assert_eq!(response.fields.all("server"), ["edge"]);
        assert!(!response.fields.has("cache-control"));
    }
}
