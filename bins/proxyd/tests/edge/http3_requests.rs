//! Requests over HTTP/3.

use crate::support::{Http3Client, Site, block_on, frame_of, head_of, over_tls, section_of, to};
use proxy_testkit::{Gate, Upstream};
use std::time::Duration;

#[test]
fn http3_is_spoken_where_it_is_switched_on() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        for _ in 0..3 {
            let answer = client.get("/x?y").await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.text(), "hello");
            assert_eq!(answer.header("content-length"), Some("5"));
            assert!(answer.header("date").is_some());
            let id = answer.header("x-correlation-id").unwrap();
            let record = site.proxyd.access_record(id);
            assert_eq!(record.text("protocol"), "HTTP/3");
            assert_eq!(record.text("client_ip"), "127.0.0.1");
            assert_eq!(record.text("path"), "/x?y");
        }
    });
    let request = upstream.last_request();
    assert_eq!(request.target, "/x?y");
    assert_eq!(request.fields.get("host"), Some("a.test"));
    assert_eq!(request.fields.get("x-forwarded-proto"), Some("https"));
    assert_eq!(request.fields.get("x-forwarded-for"), Some("127.0.0.1"));
}

#[test]
fn no_datagram_is_answered_without_the_setting() {
    let upstream = Upstream::saying("hello");
    let site = Site::with(&to(&upstream, &over_tls("")));
    let probe = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    probe.connect(site.proxyd.address()).unwrap();
    probe.send(&[0; 1200]).unwrap();
    // The kernel answers: no socket has the port.
    let mut room = [0; 10];
    let error = probe.recv(&mut room).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn http3_is_advertised_if_configured() {
    let upstream =
        Upstream::answering("HTTP/1.1 200 OK\r\nalt-svc: h3=\":1\"\r\ncontent-length: 2\r\n\r\nok");
    for (settings, expected) in [
        ("alt-svc-max-age-secs 60", "h3=\":PORT\"; ma=60"),
        (
            "alt-svc-max-age-secs 60; alt-svc-port 443",
            "h3=\":443\"; ma=60",
        ),
        ("", "h3=\":1\""),
    ] {
        let site = Site::to(&upstream, settings);
        let port = site.proxyd.address().port().to_string();
        block_on(async {
            let client = crate::support::TlsClient::trusting(&site.authority);
            let mut client = client.connect(site.proxyd.address(), "a.test").await;
            let head = client.head("a.test", "/").await;
            let value = head
                .lines()
                .filter_map(|line| line.strip_prefix("alt-svc: "));
            let expected = expected.replace("PORT", &port);
            assert_eq!(value.collect::<Vec<_>>(), [expected], "{head}");
            // Over HTTP/3 it is no news.
            let answer = site.connect().await.get("/").await;
            assert_eq!(answer.header("alt-svc"), Some("h3=\":1\""));
        });
    }
}

#[test]
fn a_body_is_carried_in_both_directions() {
    let upstream = Upstream::echo();
    let site = Site::to(&upstream, "");
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|number| number.to_le_bytes()[1])
        .collect();
    block_on(async {
        let client = site.connect().await;
        for length in [1, 1000, 3_000_000] {
            let body = &body[..length];
            let fields = [("content-length", &*length.to_string())];
            let answer = client.ask("POST", "/", &fields, body).await;
            assert_eq!(answer.status, 200);
            assert!(answer.body == body, "{length}");
            let answer = client.ask("POST", "/", &[], body).await;
            assert!(answer.body == body, "{length} without a length");
        }
    });
}

#[test]
fn cookies_are_joined_and_trailers_pass() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        let fields = [("cookie", "a=1"), ("cookie", "b=2"), ("x", "y")];
        let mut bytes = head_of("POST", "/", &fields);
        bytes.extend(frame_of(0x0, b"body"));
        bytes.extend(section_of(&[("x-sum", "1")]));
        assert_eq!(client.send(&bytes).await.unwrap().status, 200);
    });
    let request = upstream.last_request();
    assert_eq!(request.fields.get("cookie"), Some("a=1; b=2"));
    assert_eq!(request.body, b"body");
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls(""))).replacen(
        "routes {",
        "routes { route \"health\" { matches { path \"/health\" }; service-type \"builtin\"; \
         builtin-handler \"health\" }; ",
        1,
    );
    let site = Site::with(&kdl);
    block_on(async {
        let client = site.connect().await;
        let late = client.get("/late");
        let early = async {
            assert_eq!(client.get("/health").await.status, 200);
            gate.open();
        };
        let (late, ()) = tokio::join!(late, early);
        assert_eq!(late.text(), "late");
    });
}

#[test]
fn a_withheld_body_is_asked_for() {
    let upstream = Upstream::echo();
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        let answer = client
            .ask("POST", "/", &[("expect", "100-continue")], b"body")
            .await;
        assert_eq!(answer.interim, [100]);
        assert_eq!((answer.status, answer.text()), (200, "body"));
    });
}

#[test]
fn a_large_body_is_answered_413_and_a_large_head_429() {
    let upstream = Upstream::saying("hello");
    let site = Site::with(&format!(
        "{} limits {{ max-body-size-bytes 1000 }}",
        to(&upstream, &format!("{}; http3 #true", over_tls("")))
    ));
    block_on(async {
        let client = site.connect().await;
        let answer = client
            .ask("POST", "/", &[("content-length", "2000")], &[0; 2000])
            .await;
        assert_eq!(answer.status, 413);
        let answer = client
            .ask("GET", "/", &[("x", &*"a".repeat(9000))], b"")
            .await;
        assert_eq!(answer.status, 429);
        assert!(answer.header("x-correlation-id").is_some());
        assert_eq!(client.get("/").await.status, 200);
    });
}

#[test]
fn no_more_streams_are_open_than_allowed_over_http3() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let site = Site::to(&upstream, "max-concurrent-streams 2");
    block_on(async {
        let client = site.connect().await;
        let mut open = Vec::new();
        for _ in 0..2 {
            let (mut send, receive) = client.open().await;
            send.write_all(&head_of("GET", "/", &[])).await.unwrap();
            send.finish().unwrap();
            open.push((send, receive));
        }
        let third = tokio::time::timeout(Duration::from_millis(200), client.connection.open_bi());
        assert!(third.await.is_err());
        gate.open();
        assert_eq!(client.get("/").await.status, 200);
    });
}

#[test]
fn a_client_that_leaves_is_not_a_failure_of_the_upstream() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        let (mut send, mut receive) = client.open().await;
        send.write_all(&head_of("GET", "/gone", &[("x-correlation-id", "gone")]))
            .await
            .unwrap();
        send.finish().unwrap();
        upstream.wait_for_requests(1);
        receive.stop(0x10c_u32.into()).unwrap();
        let record = site.proxyd.access_record("gone");
        assert_eq!(record.text("reason"), "client_aborted");
        gate.open();
        assert_eq!(client.get("/").await.status, 200);
    });
}

#[test]
fn a_response_with_trailers_keeps_them() {
    let response = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
                    5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n";
    let upstream = Upstream::answering(response);
    let site = Site::to(&upstream, "");
    block_on(async {
        let answer = site.connect().await.get("/").await;
        assert_eq!(answer.text(), "hello");
        assert_eq!(answer.trailers, [("x-sum".to_owned(), "1".to_owned())]);
    });
}

#[test]
fn early_hints_pass_before_the_response() {
    let upstream = Upstream::answering(
        "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    );
    let site = Site::to(&upstream, "");
    block_on(async {
        let answer = site.connect().await.get("/").await;
        assert_eq!(answer.interim, [103]);
        assert_eq!((answer.status, answer.text()), (200, "ok"));
    });
}

#[test]
fn early_data_is_not_offered() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = Http3Client::trusting(&site.authority, None);
        let first = client.connect(site.proxyd.address()).await.unwrap();
        // The tickets of the session have arrived before the response.
        assert_eq!(first.get("/").await.status, 200);
        let again = client.endpoint.connect(site.proxyd.address(), "a.test");
        let again = again.unwrap().into_0rtt();
        assert!(again.is_err(), "0-RTT is offered");
        assert!(again.err().unwrap().await.is_ok());
    });
}
