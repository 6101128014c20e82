//! HTTP/1.0, from clients and from upstreams.

use crate::support::Config;
use proxy_testkit::{End, Framing, Upstream, ok};

#[test]
fn an_old_client_is_answered_and_its_connection_closed() {
    let upstream = Upstream::saying("hello");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let response = client.ask("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");

    assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    assert_eq!(client.end(), End::Closed);
    let seen = upstream.last_request();
    assert_eq!(seen.version, "HTTP/1.1");
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("protocol"), "HTTP/1.0");
}

#[test]
fn an_old_client_that_asks_keeps_its_connection() {
    let upstream = Upstream::saying("hello");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let text = "GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n";
        let response = client.ask(text);
        let connection = response.fields.get("connection").unwrap_or_default();
        assert!(
            connection.eq_ignore_ascii_case("keep-alive"),
            "{connection:?}"
        );
    }
}

#[test]
fn an_old_client_never_gets_chunks() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    let proxyd = Config::to(&upstream).start();

    for fields in ["", "Connection: keep-alive\r\n"] {
        let mut client = proxyd.connect();
        let text = format!("GET / HTTP/1.0\r\nHost: a.test\r\n{fields}\r\n");
        let response = client.ask(text);

        assert!(!response.fields.has("transfer-encoding"));
        assert_eq!(response.framing, Framing::UntilClose);
        assert_eq!(response.text(), "hello");
    }
}

#[test]
fn a_truncated_response_is_not_complete_for_an_http10_client() {
    for broken in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhel",
    ] {
        let upstream = Upstream::start(move |served| {
            served.request();
            served.send(broken);
        });
        let proxyd = Config::to(&upstream).start();
        let mut client = proxyd.connect();

        client.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
        let (_, end) = client.rest().unwrap();
        assert_eq!(end, End::Reset, "{broken:?}");
    }
}

#[test]
fn an_old_client_gets_no_interim_responses() {
    let upstream = Upstream::answering(
        [
            &b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"[..],
            &ok("hello"),
        ]
        .concat(),
    );
    let proxyd = Config::to(&upstream).start();

    let response = proxyd
        .connect()
        .ask("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");

    assert_eq!((response.status, response.text().as_str()), (200, "hello"));
}

#[test]
fn an_old_client_needs_no_host() {
    let upstream = Upstream::saying("hello");
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask("GET / HTTP/1.0\r\n\r\n");

    assert_eq!(response.status, 200);
    // The request to the upstream is HTTP/1.1 and requires one: RFC 9112 §3.2.
    assert!(upstream.last_request().fields.has("host"));
}

#[test]
fn the_received_version_is_in_via() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).listener("via #true").start();

    proxyd
        .connect()
        .ask("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");

    assert_eq!(
        upstream.last_request().fields.get("via"),
        Some("1.0 proxyd")
    );
}

#[test]
fn an_old_upstream_is_understood() {
    let upstream = Upstream::start(|served| {
        if served.request().is_some() {
            served.send("HTTP/1.0 200 OK\r\nX-Old: yes\r\n\r\nhello");
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!((response.status, response.text().as_str()), (200, "hello"));
        assert_eq!(response.version, "HTTP/1.1");
        assert_eq!(response.fields.get("x-old"), Some("yes"));
    }
    assert_eq!(upstream.connections(), 2);
}

#[test]
fn an_old_upstream_that_offers_it_keeps_its_connection() {
    let upstream = Upstream::answering(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    );
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..3 {
        let response = client.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!((response.status, response.text().as_str()), (200, "ok"));
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn an_old_upstream_s_length_does_not_keep_its_connection() {
    let upstream = Upstream::start(|served| {
        if served.request().is_some() {
            served.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
            served.end();
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!((response.status, response.text().as_str()), (200, "ok"));
    }
    assert_eq!(upstream.connections(), 2);
}
