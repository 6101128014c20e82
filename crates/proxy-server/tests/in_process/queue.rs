//! Requests that wait for an in-flight permit.
#![expect(clippy::disallowed_methods, reason = "tests measure")]

use crate::support::{Config, METRICS, Proxy, metric, reason, refusal, request};
use proxy_testkit::{Gate, RawClient, Upstream, get};
use std::time::{Duration, Instant};

fn limited(upstream: &Upstream, limits: &str) -> Proxy {
    Config::to(upstream)
        .listener(r#"trusted-proxies "127.0.0.0/8""#)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .top(&format!("limits {{ {limits} }}"))
        .start()
}

/// Waits until `count` requests are queued.
#[track_caller]
fn wait_for_queued(proxyd: &Proxy, count: usize) {
    let mut client = proxyd.connect();
    let queued = (0..400).any(|_| {
        crate::support::pause(&mut client, 50);
        let now = metric(&mut client, "proxy_requests_queued");
        (now - f64::from(u32::try_from(count).unwrap())).abs() < f64::EPSILON
    });
    assert!(queued, "{count} requests wait");
}

/// A connection with a request in flight of the client at `address`.
fn asking(proxyd: &Proxy, path: &str, address: &str) -> RawClient {
    let mut client = proxyd.connect();
    client.send(get(path, &[("X-Forwarded-For", address)]));
    client
}

#[test]
fn a_request_over_the_queue_is_answered_503_and_the_queued_are_served() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let limits = "max-in-flight-requests 1; max-queued-requests 1; max-queue-wait-secs 60";
    let proxyd = limited(&upstream, limits);
    let mut first = asking(&proxyd, "/", "192.0.2.1");
    upstream.wait_for_requests(1);
    let mut queued = asking(&proxyd, "/", "192.0.2.1");
    wait_for_queued(&proxyd, 1);

    let mut third = asking(&proxyd, "/", "192.0.2.1");
    let response = third.response();

    let message = refusal(&response, 503, "LIMIT_EXCEEDED");
    let error_message = "Limit exceeded: queue_depth - Current value 2 exceeds limit 1";
    assert_eq!(message, error_message);
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(reason(&proxyd, &response), "queue_full");
    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.text("level"), "WARN");
    assert_eq!(record.text("limit_type"), "queue_depth");
    assert_eq!(record.text("client_ip"), "192.0.2.1");
    assert_eq!(record.text("setting"), "limits.max-queued-requests");
    assert_eq!(
        (record.number("limit"), record.number("actual")),
        (Some(1.0), Some(2.0))
    );
    let mut client = proxyd.connect();
    let name = "proxy_limit_exceeded_total{limit=\"queue_depth\"}";
    assert!((metric(&mut client, name) - 1.0).abs() < f64::EPSILON);
    gate.open();
    assert_eq!(first.response().status, 200);
    assert_eq!(queued.response().status, 200);
    assert_eq!(third.ask(get("/", &[])).status, 200);
}

#[test]
fn a_request_waits_in_the_queue_up_to_the_maximum_time() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = limited(&upstream, "max-in-flight-requests 1; max-queue-wait-ms 300");
    let mut first = asking(&proxyd, "/", "192.0.2.1");
    upstream.wait_for_requests(1);

    let began = Instant::now();
    let response = asking(&proxyd, "/", "192.0.2.2").response();
    let took = began.elapsed();

    let message = refusal(&response, 503, "LIMIT_EXCEEDED");
    let error_message = "Limit exceeded: in_flight_requests - Current value 2 exceeds limit 1";
    assert_eq!(message, error_message);
    assert!(Duration::from_millis(290) < took, "{took:?}");
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(reason(&proxyd, &response), "queue_timeout");
    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.text("setting"), "limits.max-in-flight-requests");
    assert_eq!(record.number("limit"), Some(1.0));
    assert_eq!(record.number("actual"), Some(2.0));
    gate.open();
    assert_eq!(first.response().status, 200);
}

#[test]
fn time_in_the_queue_counts_against_the_route() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = Config::through(&upstream, "timeouts { request-ms 300 }")
        .route(
            "slow",
            r#"priority 90; matches { path "/slow" }; upstream "u""#,
        )
        .top("limits { max-in-flight-requests 1; max-queue-wait-secs 60 }")
        .start();
    let mut first = proxyd.connect();
    first.send(get("/slow", &[]));
    upstream.wait_for_requests(1);

    let mut client = proxyd.connect();
    let response = client.ask(get("/", &[]));

    assert_eq!(response.status, 504);
    assert_eq!(reason(&proxyd, &response), "request_timeout");
    assert_eq!(upstream.requests().len(), 1);
    gate.open();
    assert_eq!(first.response().status, 200);
    assert_eq!(client.ask(get("/", &[])).status, 200);
}

#[test]
fn one_worker_serves_so_many_requests_at_once() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let limits = "max-in-flight-requests-per-worker 1; max-queued-requests 0";
    let proxyd = limited(&upstream, limits);
    let mut first = asking(&proxyd, "/", "192.0.2.1");
    upstream.wait_for_requests(1);

    let response = asking(&proxyd, "/", "192.0.2.2").response();

    let message = refusal(&response, 503, "LIMIT_EXCEEDED");
    let error_message = "Limit exceeded: in_flight_requests - Current value 2 exceeds limit 1";
    assert_eq!(message, error_message);
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(reason(&proxyd, &response), "in_flight_limit");
    let record = proxyd.limit_record(&response.correlation_id());
    let setting = "limits.max-in-flight-requests-per-worker";
    assert_eq!(record.text("setting"), setting);
    gate.open();
    assert_eq!(first.response().status, 200);
}

#[test]
fn a_worker_permit_is_granted_to_the_next_waiting_request() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let limits = "max-in-flight-requests-per-worker 1; max-queue-wait-secs 60";
    let proxyd = limited(&upstream, limits);
    let mut clients: Vec<_> = (0..4).map(|_| asking(&proxyd, "/", "192.0.2.1")).collect();
    wait_for_queued(&proxyd, 3);

    gate.open();

    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn clients_take_turns_in_the_queue() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = limited(
        &upstream,
        "max-in-flight-requests 1; max-queue-wait-secs 60",
    );
    let mut clients = vec![asking(&proxyd, "/first", "192.0.2.1")];
    upstream.wait_for_requests(1);
    for (position, (path, address)) in [
        ("/greedy-1", "192.0.2.1"),
        ("/greedy-2", "192.0.2.1"),
        ("/modest", "192.0.2.2"),
    ]
    .into_iter()
    .enumerate()
    {
        clients.push(asking(&proxyd, path, address));
        wait_for_queued(&proxyd, position + 1);
    }

    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }

    let served = upstream.requests();
    let served: Vec<_> = served
        .iter()
        .map(|request| request.target.as_str())
        .collect();
    assert_eq!(served, ["/first", "/greedy-1", "/modest", "/greedy-2"]);
}

#[test]
fn a_full_queue_has_room_for_a_client_with_fewer_in_it() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let limits = "max-in-flight-requests 1; max-queued-requests 2; max-queue-wait-secs 60";
    let proxyd = limited(&upstream, limits);
    let mut first = asking(&proxyd, "/first", "192.0.2.1");
    upstream.wait_for_requests(1);
    let mut stays = asking(&proxyd, "/greedy-1", "192.0.2.1");
    wait_for_queued(&proxyd, 1);
    let mut leaves = asking(&proxyd, "/greedy-2", "192.0.2.1");
    wait_for_queued(&proxyd, 2);

    let mut modest = asking(&proxyd, "/modest", "192.0.2.2");

    let response = leaves.response();
    assert_eq!(response.status, 503);
    assert_eq!(reason(&proxyd, &response), "queue_full");
    gate.open();
    for client in [&mut first, &mut stays, &mut modest] {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_client_that_leaves_the_queue_releases_its_place_in_it() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let limits = "max-in-flight-requests 1; max-queued-requests 1; max-queue-wait-secs 60";
    let proxyd = limited(&upstream, limits);
    let mut first = asking(&proxyd, "/first", "192.0.2.1");
    upstream.wait_for_requests(1);
    let mut leaves = proxyd.connect();
    leaves.send(get("/leaves", &[("X-Correlation-Id", "left")]));
    wait_for_queued(&proxyd, 1);

    drop(leaves);
    assert_eq!(proxyd.access_record("left").number("status"), Some(499.0));
    let mut queued = asking(&proxyd, "/queued", "192.0.2.2");
    wait_for_queued(&proxyd, 1);
    gate.open();

    assert_eq!(first.response().status, 200);
    assert_eq!(queued.response().status, 200);
    let served = upstream.requests();
    assert!(served.iter().all(|request| request.target != "/leaves"));
}

#[test]
fn a_permit_of_one_worker_is_passed_to_requests_waiting_in_another() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = Config::to(&upstream)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .top("worker-threads 3\nlimits { max-in-flight-requests 1; max-queue-wait-secs 60 }")
        .start();
    let mut clients: Vec<_> = (0..90).map(|_| asking(&proxyd, "/", "192.0.2.1")).collect();
    wait_for_queued(&proxyd, 89);

    gate.open();

    let began = Instant::now();
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
    // Polling once a tick, a tenth of a second, would take nine seconds.
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn health_is_reported_while_requests_wait() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = Config::to(&upstream)
        .route(
            "health",
            r#"priority 100; matches { path "/health" }; service-type "builtin"; builtin-handler "health""#,
        )
        .top(
            "limits { max-in-flight-requests 1; max-queued-requests 1; \
             max-requests-per-second-global 1; max-connections-per-route 1 }",
        )
        .start();
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    upstream.wait_for_requests(1);

    for _ in 0..20 {
        let response = proxyd.connect().ask(request("GET /health", "", ""));
        assert_eq!(response.status, 200);
        assert_eq!(response.fields.get("x-ratelimit-limit"), None);
    }
    gate.open();
    assert_eq!(first.response().status, 200);
}

#[test]
fn a_client_that_leaves_at_any_point_releases_its_places() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.head() {
            match request.target.as_str() {
                "/response" => served.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
                "/tunnel" => served.send(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                     Upgrade: websocket\r\n\r\n",
                ),
                "/body" | "/head" => true,
                _ => {
                    served.send(proxy_testkit::ok("served"));
                    continue;
                }
            };
            served.end();
            return;
        }
    });
    let limits = "max-in-flight-requests 1; max-in-flight-requests-per-worker 1; \
        max-queued-requests 0; max-connections-per-route 1; max-connections-per-client 1";
    let proxyd = Config::to(&upstream)
        .top(&format!("limits {{ {limits} }}"))
        .start();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for (line, fields, status) in [
        ("POST /body", "Content-Length: 100\r\n", 499.0),
        ("GET /head", "", 499.0),
        ("GET /response", "", 200.0),
        ("GET /tunnel", upgrade, 101.0),
    ] {
        let id = line.replace(' ', "").replace('/', "-");
        let fields = format!("{fields}X-Correlation-Id: {id}\r\n");
        let before = upstream.requests().len();
        let mut client = proxyd.connect();
        let begun = if line.starts_with("POST") {
            "begun"
        } else {
            ""
        };
        client.send(request(line, &fields, begun));
        upstream.wait_for_requests(before + 1);
        if status < 499.0 {
            assert!((f64::from(client.head().status) - status).abs() < f64::EPSILON);
        }

        drop(client);

        assert_eq!(proxyd.access_record(&id).number("status"), Some(status));
        let response = proxyd.connect().ask(get("/", &[("Connection", "close")]));
        assert_eq!(response.text(), "served", "{line}");
    }
}

#[test]
fn a_record_has_the_waiting_time_of_its_request() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = limited(
        &upstream,
        "max-in-flight-requests 1; max-queue-wait-secs 60",
    );
    let mut first = asking(&proxyd, "/", "192.0.2.1");
    upstream.wait_for_requests(1);
    let mut queued = asking(&proxyd, "/", "192.0.2.1");
    wait_for_queued(&proxyd, 1);
    gate.open();
    let record = |client: &mut RawClient| {
        let response = client.response();
        proxyd.access_record(&response.correlation_id())
    };

    let served = record(&mut first);
    assert!(!served.has("queue_ms"), "{served:?}");
    let connecting = served.number("connect_ms");
    assert!(connecting.is_some() && connecting <= served.number("duration_ms"));

    let waited = record(&mut queued);
    let queue_ms = waited.number("queue_ms");
    assert!(
        Some(20.0) < queue_ms && queue_ms <= waited.number("duration_ms"),
        "{waited:?}"
    );

    // A second request on the same connection.
    first.send(get("/", &[]));
    let again = record(&mut first);
    assert!(
        !again.has("queue_ms") && !again.has("connect_ms"),
        "{again:?}"
    );
}
