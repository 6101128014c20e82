//! The PROXY protocol on listeners that require it.

use crate::support::{Config, Proxy};
use proxy_testkit::{End, Upstream, get};

const LISTENER: &str = r#"proxy-protocol #true
trusted-proxies "127.0.0.0/8"
timeouts { handshake-secs 1 }"#;

const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 192.0.2.9 40000 443\r\n";

fn with_proxy_protocol(upstream: &Upstream) -> Proxy {
    Config::to(upstream).listener(LISTENER).start()
}

fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let signature = b"\r\n\r\n\0\r\nQUIT\n";
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [&signature[..], &[command, family], &length, rest].concat()
}

#[test]
fn a_trusted_proxy_s_header_sets_the_client() {
    let upstream = Upstream::saying("hello");
    let proxyd = with_proxy_protocol(&upstream);
    let four = [192, 0, 2, 7, 192, 0, 2, 9, 0x9c, 0x40, 1, 187];
    let with_more = [&four[..], &[4, 0, 3, 1, 2, 3]].concat();
    for header in [
        LINE.to_vec(),
        version_2(0x21, 0x11, &four),
        version_2(0x21, 0x11, &with_more),
    ] {
        let mut client = proxyd.connect();
        client.send(&header);
        // The header applies to the connection, not only to its first request.
        for _ in 0..2 {
            let response = client.ask(get("/", &[]));
            assert_eq!((response.status, response.text().as_str()), (200, "hello"));
            let seen = upstream.last_request();
            assert_eq!(seen.fields.get("x-forwarded-for"), Some("192.0.2.7"));
            let record = proxyd.access_record(&response.correlation_id());
            assert_eq!(record.text("client_ip"), "192.0.2.7");
        }
    }
}

#[test]
fn a_header_without_a_client_leaves_the_peer() {
    let upstream = Upstream::saying("hello");
    let proxyd = with_proxy_protocol(&upstream);
    for header in [b"PROXY UNKNOWN\r\n".to_vec(), version_2(0x20, 0, &[])] {
        let mut client = proxyd.connect();
        client.send(&header);
        assert_eq!(client.ask(get("/", &[])).status, 200);
        let seen = upstream.last_request();
        assert_eq!(seen.fields.get("x-forwarded-for"), Some("127.0.0.1"));
    }
}

#[test]
fn a_header_without_a_client_grants_no_trust() {
    let upstream = Upstream::saying("hello");
    let proxyd = with_proxy_protocol(&upstream);
    let (local, unspecified) = (version_2(0x20, 0, &[]), version_2(0x21, 0, &[]));
    for header in [b"PROXY UNKNOWN\r\n".to_vec(), local, unspecified] {
        let mut client = proxyd.connect();
        client.send(&header);
        let claims = [("X-Forwarded-For", "1.1.1.1"), ("X-Real-IP", "1.1.1.1")];
        let response = client.ask(get("/", &claims));
        let seen = upstream.last_request();
        assert_eq!(seen.fields.get("x-forwarded-for"), Some("127.0.0.1"));
        assert!(!seen.fields.has("x-real-ip"));
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("client_ip"), "127.0.0.1");
    }
}

#[test]
fn a_header_may_arrive_in_pieces() {
    let upstream = Upstream::saying("hello");
    let proxyd = with_proxy_protocol(&upstream);
    let mut client = proxyd.connect();
    for byte in LINE {
        client.send([*byte]);
    }
    client.send(get("/", &[]));

    assert_eq!(client.response().status, 200);
    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("x-forwarded-for"), Some("192.0.2.7"));
}

#[test]
fn a_connection_without_a_header_is_closed_unanswered() {
    let upstream = Upstream::saying("hello");
    let proxyd = with_proxy_protocol(&upstream);
    for text in [
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n\r\n",
        "PROXY TCP4 1.2.3.4",
    ] {
        let mut client = proxyd.connect();
        client.send(text);
        let (End::Closed | End::Reset) = client.end();
    }
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn an_untrusted_peer_is_closed_unanswered() {
    let upstream = Upstream::saying("hello");
    let listener = "proxy-protocol #true\ntrusted-proxies \"192.0.2.0/24\"";
    let proxyd = Config::to(&upstream).listener(listener).start();
    let mut client = proxyd.connect();
    client.send([LINE, &get("/", &[])].concat());

    let (End::Closed | End::Reset) = client.end();
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn elsewhere_the_header_is_not_a_request() {
    let upstream = Upstream::saying("hello");
    let proxyd = Config::to(&upstream).start();
    let response = proxyd.connect().ask(LINE);

    assert_eq!(response.status, 400);
    assert_eq!(upstream.requests().len(), 0);
}
