//! Limits on connections: per client, per route, and of the process.

use crate::installed::Installed;
use crate::support::{
    BINARY, Busy, Config, METRICS, admin, metric, pause, reason, refusal, target,
};
use proxy_testkit::{End, Gate, Launch, Proxyd, RawClient, Response, Upstream, get};

const BEHIND_A_BALANCER: &str = r#"proxy-protocol #true; trusted-proxies "127.0.0.0/8""#;

/// Connects as a balancer, for the client at `address`.
fn client_at(proxyd: &Proxyd, address: &str) -> RawClient {
    let family = if address.contains(':') {
        "TCP6"
    } else {
        "TCP4"
    };
    let to = if address.contains(':') {
        "2001:db8::9"
    } else {
        "192.0.2.9"
    };
    let mut client = proxyd.connect();
    client.send(format!("PROXY {family} {address} {to} 40000 443\r\n"));
    client
}

/// Checks that a limit on connections refused the request.
#[track_caller]
fn too_many(proxyd: &Proxyd, response: &Response, word: &str, setting: &str) {
    let message = refusal(response, 503, "LIMIT_EXCEEDED");
    let error_message = "Limit exceeded: connection_count - Current value ";
    assert!(message.starts_with(error_message), "{message}");
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(reason(proxyd, response), word);
    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.text("level"), "WARN");
    assert_eq!(record.text("message"), message);
    assert_eq!(record.text("limit_type"), "connection_count");
    assert_eq!(record.text("setting"), setting);
    assert!(record.number("limit") < record.number("actual"));
}

#[test]
fn a_client_has_its_share_of_connections_and_others_have_theirs() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .listener(BEHIND_A_BALANCER)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .top("limits { max-connections-per-client 2 }")
        .start();
    // A /64 counts as one client.
    let mut first = client_at(&proxyd, "2001:db8:0:1::1");
    let mut second = client_at(&proxyd, "2001:db8:0:1:ffff::2");
    for client in [&mut first, &mut second] {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }

    let mut third = client_at(&proxyd, "2001:db8:0:1::3");
    let response = third.response();

    let setting = "limits.max-connections-per-client";
    too_many(&proxyd, &response, "client_connection_limit", setting);
    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.text("client_ip"), "2001:db8:0:1::3");
    for other in ["2001:db8:0:2::1", "192.0.2.7", "192.0.2.8"] {
        let mut other = client_at(&proxyd, other);
        assert_eq!(other.ask(get("/", &[])).status, 200);
        let name = "proxy_connection_limit_reached_total";
        assert!((metric(&mut other, name) - 1.0).abs() < f64::EPSILON);
    }
    first.finish();
    assert_eq!(first.end(), End::Closed);
    let mut third = client_at(&proxyd, "2001:db8:0:1::3");
    assert_eq!(third.ask(get("/", &[])).status, 200);
}

#[test]
fn a_client_over_its_share_is_answered_503_when_it_connects() {
    let upstream = Upstream::saying("");
    let config = |limit| Config::to(&upstream).top(&format!("limits {{ {limit} }}"));
    let proxyd = config("max-connections-per-client 1").start();
    let mut first = proxyd.connect();
    assert_eq!(first.ask(get("/", &[])).status, 200);

    let mut second = proxyd.connect();
    let response = second.response();

    let setting = "limits.max-connections-per-client";
    too_many(&proxyd, &response, "client_connection_limit", setting);
    second.finish();
    assert_eq!(second.end(), End::Closed);
    proxyd.reload(&config("max-connections-per-client 2").kdl());
    let mut second = proxyd.connect();
    assert_eq!(second.ask(get("/", &[])).status, 200);
    assert_eq!(proxyd.connect().response().status, 503);
}

#[test]
fn a_trusted_proxy_is_exempt_from_the_limit_per_client() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .listener(r#"trusted-proxies "127.0.0.0/8""#)
        .top("limits { max-connections-per-client 1 }")
        .start();

    let mut clients = [0; 3].map(|_| proxyd.connect());

    for client in &mut clients {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }
}

#[test]
fn a_route_serves_so_many_connections_at_once_and_others_continue() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = Config::new()
        .route("slow", r#"upstream "u"; matches { path "/slow" }"#)
        .route("other", r#"upstream "other""#)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .upstream("u", &target(&upstream))
        .upstream("other", &target(&Upstream::saying("other")))
        .top("limits { max-connections-per-route 2 }")
        .start();
    let mut served = [0; 2].map(|_| proxyd.connect());
    for client in &mut served {
        client.send(get("/slow", &[]));
    }
    upstream.wait_for_requests(2);
    let mut another = proxyd.connect();

    let response = another.ask(get("/slow", &[]));

    let setting = "limits.max-connections-per-route";
    too_many(&proxyd, &response, "route_connection_limit", setting);
    assert_eq!(upstream.requests().len(), 2);
    // The same connection is served on other routes.
    assert_ne!(another.ask(get("/other", &[])).status, 503);
    let name = "proxy_connection_limit_reached_total";
    assert!((metric(&mut another, name) - 1.0).abs() < f64::EPSILON);
    gate.open();
    for client in &mut served {
        assert_eq!(client.response().status, 200);
    }
    assert_eq!(another.ask(get("/slow", &[])).status, 200);
}

#[test]
fn connections_are_taken_only_as_far_as_descriptors_go() {
    let installed = Installed::new();
    installed.replace(&format!("ulimit -n 300; exec {BINARY} \"$@\""));
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream).top("limits { max-total-connections 1000 }");
    let proxyd = Launch::new(installed.path(), &config.kdl()).start();

    let event = proxyd.stderr().find(0, |record| {
        record
            .text("message")
            .starts_with("max-total-connections is lowered")
    });

    assert_eq!(event.text("level"), "WARN");
    let mut admin = RawClient::connect(proxyd.admin_address());
    let stats = admin
        .ask("GET /admin/stats HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .json();
    assert_eq!(
        stats["limits"]["max-total-connections"]["limit"], 200,
        "{stats}"
    );
}

#[test]
fn idle_connections_are_closed_when_descriptors_run_out() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    let mut idle = proxyd.connect();
    assert_eq!(idle.ask(get("/", &[])).status, 200);
    let files = u64::try_from(proxyd.open_files()).unwrap();

    proxyd.limit_open_files(files);
    // The limit is on a descriptor's number: a new connection may still take a gap below it.
    let newcomers: Vec<_> = (0..4)
        .map(|_| {
            let mut newcomer = proxyd.connect();
            assert_eq!(newcomer.ask(get("/", &[])).status, 200);
            newcomer
        })
        .collect();

    assert_eq!(idle.end(), End::Closed);
    drop(newcomers);
}

#[test]
fn a_connection_with_a_request_stays_when_descriptors_run_out() {
    let mut busy = Busy::with("");
    let files = u64::try_from(busy.proxyd.open_files()).unwrap();

    busy.proxyd.limit_open_files(files);
    let mut newcomer = busy.proxyd.connect();
    pause(&mut newcomer, 300);
    busy.gate.open();

    assert_eq!(busy.client.response().status, 200);
}

#[test]
fn rejected_connections_of_a_flood_are_all_counted() {
    // More than a worker answers at once: the rest is closed without an answer.
    const REJECTED: usize = 300;
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .top("limits { max-total-connections 1 }; system { worker-threads 1 }")
        .top("admin { address \"127.0.0.1:0\" }")
        .start();
    let mut first = proxyd.connect();
    assert_eq!(first.ask(get("/", &[])).status, 200);

    let rejected: Vec<_> = (0..REJECTED).map(|_| proxyd.connect()).collect();
    // Connections are accepted in order: after this one, all have been rejected.
    let last = RawClient::end_of_new(proxyd.address());

    let stats = admin(&proxyd, "/admin/stats");
    let limit = &stats["limits"]["max-total-connections"];
    assert_eq!(limit["rejected"], REJECTED + 1, "{last:?} {stats}");
    drop(rejected);
}
