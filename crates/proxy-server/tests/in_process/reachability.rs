//! Passive health: an unreachable target costs one request, and is excluded.

use crate::support::{Config, Proxy, post, reason, target};
use proxy_testkit::{Upstream, closed_port, get, ok};
use std::net::TcpListener;

fn to(targets: &[String]) -> Proxy {
    Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &targets.join("; "))
        .start()
}

fn refusing() -> String {
    format!("target \"{}\"", closed_port())
}

#[test]
fn two_of_three_dead_targets_cost_no_request_without_a_retry_policy() {
    let alive = Upstream::saying("alive");
    let proxy = to(&[refusing(), target(&alive), refusing()]);

    for number in 0..60 {
        // For any method, because no byte was sent.
        let response = proxy.connect().ask(post("/", "order"));
        assert_eq!(response.text(), "alive", "request {number}");
    }
}

#[test]
fn a_target_that_refuses_is_left_out_after_the_first_request() {
    let alive = Upstream::saying("alive");
    let proxy = to(&[refusing(), target(&alive)]);
    let mut client = proxy.connect();

    let retries = (0..30).map(|_| {
        let response = client.ask(get("/", &[]));
        assert_eq!(response.text(), "alive");
        let record = proxy.access_record(&response.correlation_id());
        record.number("retries").unwrap_or_default()
    });

    let retries: f64 = retries.sum();
    assert!((retries - 1.0).abs() < 0.1, "{retries}");
}

#[test]
fn the_only_target_is_asked_again_and_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let proxy = to(&[format!("target \"{address}\"")]);
    for _ in 0..3 {
        let response = proxy.connect().ask(get("/", &[]));
        assert_eq!(reason(&proxy, &response), "connect_refused");
    }

    let listener = TcpListener::bind(address).unwrap();
    let upstream = Upstream::start_on(listener, |served| {
        while served.request().is_some() {
            served.send(ok("back"));
        }
    });

    assert_eq!(proxy.connect().ask(get("/", &[])).text(), "back");
    drop(upstream);
}

#[test]
fn of_targets_that_all_refuse_the_one_that_is_back_serves_the_next_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let proxy = to(&[refusing(), format!("target \"{address}\""), refusing()]);
    for _ in 0..3 {
        assert_eq!(proxy.connect().ask(get("/", &[])).status, 502);
    }

    let listener = TcpListener::bind(address).unwrap();
    let _upstream = Upstream::start_on(listener, |served| {
        while served.request().is_some() {
            served.send(ok("back"));
        }
    });

    for _ in 0..6 {
        assert_eq!(proxy.connect().ask(get("/", &[])).text(), "back");
    }
}
