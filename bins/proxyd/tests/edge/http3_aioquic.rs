//! HTTP/3 with a client of another project.

use crate::support::{Aioquic, HeldHandshakes, Site, over_tls, to};
use proxy_testkit::{Gate, Upstream};
use serde_json::json;

/// The first observation of a client that does `task`.
#[track_caller]
fn observed(site: &Site, task: &str) -> serde_json::Value {
    Aioquic::start(site, task).next()
}

#[test]
fn aioquic_gets_a_response() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    let answer = json!({"status": 200, "body": "hello"});
    assert_eq!(observed(&site, "get"), answer);
    let request = upstream.last_request();
    assert_eq!(request.target, "/x?y");
    assert_eq!(request.fields.get("host"), Some("a.test"));
    assert_eq!(request.fields.get("user-agent"), Some("aioquic"));
}

#[test]
fn aioquic_posts_a_mebibyte() {
    let upstream = Upstream::echo();
    let site = Site::to(&upstream, "");
    let answer = json!({"status": 200, "is_echoed": true});
    assert_eq!(observed(&site, "post"), answer);
}

#[test]
fn aioquic_sends_and_gets_trailers() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
         5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n",
    );
    let site = Site::to(&upstream, "");
    let answer = json!({"status": 200, "trailers": {"x-sum": "1"}});
    assert_eq!(observed(&site, "trailers"), answer);
}

#[test]
fn aioquic_sends_200_requests_on_one_connection() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    let answer = json!({"statuses": [200], "count": 200});
    assert_eq!(observed(&site, "many"), answer);
}

#[test]
fn aioquic_keeps_its_connection_over_ports() {
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let site = Site::with(&kdl.replace("worker-threads 1", "worker-threads 3"));
    let answer = json!({"statuses": [200, 200, 200, 200, 200, 200], "ports": 6});
    assert_eq!(observed(&site, "migrate"), answer);
}

#[test]
fn aioquic_proves_its_address_when_asked() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    let answer = json!({"status": 200, "retries": 0});
    assert_eq!(observed(&site, "retry"), answer);
    let held = HeldHandshakes::open(&site);
    let answer = json!({"status": 200, "retries": 1});
    assert_eq!(observed(&site, "retry"), answer);
    drop(held);
}

#[test]
fn aioquic_gets_goaway_its_response_and_the_end_in_a_drain() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let mut site = Site::to(&upstream, "");
    let mut client = Aioquic::start(&site, "drain");
    assert_eq!(client.next(), json!({"is_open": true}));
    upstream.wait_for_requests(1);
    site.proxyd.terminate();
    assert_eq!(client.next(), json!({"goaway": true}));
    gate.open();
    assert_eq!(client.next(), json!({"status": 200, "body": "late"}));
    // `H3_NO_ERROR`.
    assert_eq!(client.next(), json!({"closed": 0x100}));
    assert!(site.proxyd.wait().success());
}
