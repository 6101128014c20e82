//! Networks of clients, and files of them.

use crate::support::{Config, METRICS, Proxy, metric, reason, refusal};
use proxy_testkit::{Reload, Response, get};
use std::fs;
use std::net::IpAddr;

fn ask_from(proxyd: &Proxy, ip: &str) -> Response {
    let ip: IpAddr = ip.parse().unwrap();
    proxyd.connect_from(ip).ask(get("/", &[]))
}

#[test]
fn a_route_takes_requests_of_its_networks_only() {
    let proxyd = Config::new()
        .route(
            "inner",
            r#"respond 200 "in"; allow "10.0.0.0/8" "2001:db8::/32"; deny "10.0.0.66""#,
        )
        .start();

    for ip in ["10.1.2.3", "2001:db8::1", "::ffff:10.1.2.3"] {
        assert_eq!(ask_from(&proxyd, ip).status, 200, "{ip}");
    }
    for ip in ["10.0.0.66", "11.0.0.1", "2001:db9::1"] {
        let response = ask_from(&proxyd, ip);
        refusal(&response, 403, "AUTHORIZATION_FAILED");
        assert_eq!(reason(&proxyd, &response), "access_denied");
    }
}

#[test]
fn a_listener_takes_requests_of_its_networks_only() {
    let proxyd = Config::new()
        .listener(r#"deny "192.0.2.0/24""#)
        .route("all", r#"respond 200 "x""#)
        .start();

    assert_eq!(ask_from(&proxyd, "198.51.100.1").status, 200);
    let response = ask_from(&proxyd, "192.0.2.9");
    refusal(&response, 403, "AUTHORIZATION_FAILED");
    // No route is matched.
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("route"), "");
}

#[test]
fn a_refused_client_is_counted_as_a_blocked_request() {
    let proxyd = Config::new()
        .route("metrics", &format!("priority 100; {METRICS}"))
        .route("inner", r#"respond 200 "in"; deny "192.0.2.0/24""#)
        .start();

    assert_eq!(ask_from(&proxyd, "192.0.2.9").status, 403);

    let name = "proxy_blocked_requests_total{reason=\"access_denied\"}";
    let blocked = metric(&mut proxyd.connect(), name);
    assert!((blocked - 1.0).abs() < f64::EPSILON, "{blocked}");
}

#[test]
fn networks_are_compared_with_the_client_behind_a_trusted_proxy() {
    let proxyd = Config::new()
        .listener(r#"trusted-proxies "10.0.0.1"; allow "192.0.2.0/24""#)
        .route("all", r#"respond 200 "x""#)
        .start();
    let ask = |peer: &str, client: &str| {
        let mut connection = proxyd.connect_from(peer.parse().unwrap());
        connection
            .ask(get("/", &[("X-Forwarded-For", client)]))
            .status
    };

    assert_eq!(ask("10.0.0.1", "192.0.2.7"), 200);
    assert_eq!(ask("10.0.0.1", "198.51.100.7"), 403);
    // A claim by an untrusted peer is ignored.
    assert_eq!(ask("198.51.100.7", "192.0.2.7"), 403);
    assert_eq!(ask("192.0.2.7", "198.51.100.7"), 200);
}

#[test]
fn a_reload_reads_files_of_networks_again() {
    let folder = tempfile::tempdir().unwrap();
    let (office, blocked) = (
        folder.path().join("office.txt"),
        folder.path().join("blocked.txt"),
    );
    fs::write(
        &office,
        "# the office\n10.0.0.0/8\n\n2001:db8::/32 # and IPv6\n",
    )
    .unwrap();
    fs::write(&blocked, "").unwrap();
    let config = Config::new()
        .listener(&format!("deny-file {blocked:?}"))
        .route("all", &format!("respond 200 \"x\"; allow-file {office:?}"));
    let proxyd = config.start();
    assert_eq!(ask_from(&proxyd, "10.0.0.1").status, 200);
    assert_eq!(ask_from(&proxyd, "192.0.2.1").status, 403);

    fs::write(&office, "192.0.2.0/24\n10.0.0.0/8\n").unwrap();
    fs::write(&blocked, "10.0.0.1\n").unwrap();
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);

    assert_eq!(ask_from(&proxyd, "192.0.2.1").status, 200);
    assert_eq!(ask_from(&proxyd, "10.0.0.1").status, 403);
    fs::write(&office, "10.0.0.0/8\nnobody\n").unwrap();
    let Reload::Refused(error) = proxyd.reload(&config.kdl()) else {
        panic!("a line that is not a network is refused");
    };
    assert!(
        error.contains("line 2") && !error.contains("nobody"),
        "{error}"
    );
    assert_eq!(ask_from(&proxyd, "192.0.2.1").status, 200);
}
