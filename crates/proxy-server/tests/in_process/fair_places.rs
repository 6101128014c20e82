//! Places for requests in flight are shared between routes and clients.

use crate::support::{Config, METRICS, Proxy, metric, reason, refusal, target};
use proxy_testkit::{Gate, RawClient, Upstream, get, ok};

/// A proxy with one route to a target that does not answer before the gate opens, and one to a
/// target that does.
fn with_hung_route(limits: &str, hung: &Upstream, healthy: &Upstream) -> Proxy {
    Config::to(healthy)
        .listener(r#"trusted-proxies "127.0.0.0/8""#)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .route(
            "hung",
            r#"priority 90; matches { path-prefix "/hung" }; upstream "hung""#,
        )
        .upstream("hung", &target(hung))
        .top(&format!("limits {{ {limits} }}"))
        .start()
}

fn asking(proxyd: &Proxy, path: &str, address: &str) -> RawClient {
    let mut client = proxyd.connect();
    client.send(get(path, &[("X-Forwarded-For", address)]));
    client
}

fn answering() -> Upstream {
    Upstream::start(|served| while served.head().is_some() && served.send(ok("served")) {})
}

const LIMITS: &str = "max-in-flight-requests-per-worker 40; max-queue-wait-secs 60";

#[test]
fn a_hung_route_leaves_places_to_other_routes() {
    let gate = Gate::new();
    let hung = Upstream::slow_reader(&gate);
    let healthy = answering();
    let proxyd = with_hung_route(LIMITS, &hung, &healthy);
    let mut clients: Vec<_> = (0..40)
        .map(|number| asking(&proxyd, "/hung", &format!("192.0.2.{number}")))
        .collect();
    hung.wait_for_requests(38);

    for number in 0..100 {
        let response = asking(&proxyd, "/", &format!("198.51.100.{number}")).response();
        assert_eq!(response.status, 200);
    }
    assert_eq!(hung.requests().len(), 38);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_heavy_client_leaves_permits_to_other_clients() {
    let gate = Gate::new();
    let hung = Upstream::slow_reader(&gate);
    let healthy = answering();
    let route = |id: u32| format!("matches {{ path-prefix \"/{id}\" }}; upstream \"hung\"");
    let proxyd = (0..40)
        .fold(Config::to(&healthy), |config, id| {
            config.route(&id.to_string(), &route(id))
        })
        .listener(r#"trusted-proxies "127.0.0.0/8""#)
        .upstream("hung", &target(&hung))
        .top(&format!("limits {{ {LIMITS} }}"))
        .start();
    let mut clients: Vec<_> = (0..40)
        .map(|id| asking(&proxyd, &format!("/{id}"), "192.0.2.1"))
        .collect();
    hung.wait_for_requests(38);

    for number in 0..100 {
        let response = asking(&proxyd, "/other", &format!("198.51.100.{number}")).response();
        assert_eq!(response.status, 200);
    }
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_heavy_client_leaves_permits_of_its_route_to_other_clients() {
    let gate = Gate::new();
    let hung = Upstream::slow_reader(&gate);
    let healthy = answering();
    let limits = "max-in-flight-requests-per-worker 100; max-queue-wait-secs 60";
    let proxyd = with_hung_route(limits, &hung, &healthy);
    let mut clients: Vec<_> = (0..100)
        .map(|_| asking(&proxyd, "/hung", "192.0.2.1"))
        .collect();
    hung.wait_for_requests(95);

    for number in 0..2 {
        clients.push(asking(&proxyd, "/hung", &format!("198.51.100.{number}")));
        hung.wait_for_requests(96 + number);
    }
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_request_over_its_share_is_refused_as_such() {
    let gate = Gate::new();
    let (hung, healthy) = (Upstream::slow_reader(&gate), answering());
    let limits = "max-in-flight-requests-per-worker 40; max-queued-requests 0";
    let proxyd = with_hung_route(limits, &hung, &healthy);
    let held: Vec<_> = (0..38)
        .map(|number| asking(&proxyd, "/hung", &format!("192.0.2.{number}")))
        .collect();
    hung.wait_for_requests(38);

    let response = asking(&proxyd, "/hung", "192.0.2.99").response();

    let message = refusal(&response, 503, "LIMIT_EXCEEDED");
    let error_message = "Limit exceeded: in_flight_requests - Current value 39 exceeds limit 38";
    assert_eq!(message, error_message);
    assert_eq!(reason(&proxyd, &response), "in_flight_share");
    let record = proxyd.limit_record(&response.correlation_id());
    let setting = "limits.max-in-flight-requests-per-worker";
    assert_eq!(record.text("setting"), setting);
    gate.open();
    for mut client in held {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn heavy_clients_leave_connections_of_their_route_to_other_clients() {
    let gate = Gate::new();
    let (hung, healthy) = (Upstream::slow_reader(&gate), answering());
    let proxyd = with_hung_route("max-connections-per-route 100", &hung, &healthy);
    let mut clients: Vec<_> = (0..95)
        .map(|number| asking(&proxyd, "/hung", &format!("192.0.2.{}", number % 10)))
        .collect();
    hung.wait_for_requests(95);

    let refused = asking(&proxyd, "/hung", "192.0.2.1").response();
    clients.extend((0..5).map(|number| asking(&proxyd, "/hung", &format!("198.51.100.{number}"))));

    assert_eq!(refused.status, 503);
    assert_eq!(reason(&proxyd, &refused), "route_connection_limit");
    let record = proxyd.limit_record(&refused.correlation_id());
    assert_eq!(record.text("setting"), "limits.max-connections-per-route");
    hung.wait_for_requests(100);
    let full = asking(&proxyd, "/hung", "203.0.113.1").response();
    assert_eq!(full.status, 503);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_tunnel_is_not_a_request_in_flight() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.head() {
            if request.target != "/tunnel" {
                served.send(ok("served"));
                continue;
            }
            served.send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                 Upgrade: websocket\r\n\r\n",
            );
            served.end();
            return;
        }
    });
    let proxyd = Config::to(&upstream)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .top("limits { max-in-flight-requests 1; max-queued-requests 0 }")
        .start();
    let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")];
    let mut tunnel = proxyd.connect();
    tunnel.send(get("/tunnel", &upgrade));
    assert_eq!(tunnel.head().status, 101);

    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    let mut client = proxyd.connect();
    // Only the request for the metrics and the tunnel count.
    for (name, expected) in [("proxy_requests_in_flight", 1.0), ("proxy_tunnels", 1.0)] {
        let now = metric(&mut client, name);
        assert!((now - expected).abs() < f64::EPSILON, "{name} {now}");
    }
}
