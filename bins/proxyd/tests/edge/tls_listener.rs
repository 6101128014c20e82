//! Protocols of a TLS listener, and the ends of its connections.

use crate::support::{Authority, TlsClient, block_on, over_tls, start, to};
use proxy_testkit::{RawClient, Upstream, get, ok};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::version::{TLS12, TLS13};

#[test]
fn https_is_spoken_with_the_listeners_certificate() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &site)]);

    block_on(async {
        let mut client = TlsClient::trusting(&authority)
            .connect(proxyd.address(), "a.test")
            .await;
        assert_eq!(client.shown(), site.der());
        for _ in 0..2 {
            assert_eq!(client.get("a.test", "/").await, (200, "hello".to_owned()));
        }
    });
    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("x-forwarded-proto"), Some("https"));
}

#[test]
fn the_listeners_protocols_are_offered() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    for (alpn, both) in [("", "h2"), (r#"alpn "http/1.1""#, "http/1.1")] {
        let proxyd = start(&to(&upstream, &over_tls(alpn)), &[("site", &site)]);
        block_on(async {
            for (offered, agreed) in [
                (&["h2", "http/1.1"][..], Some(both)),
                (&["http/1.1"], Some("http/1.1")),
                (&[], None),
            ] {
                let client = TlsClient::trusting(&authority).offering(offered);
                let connection = client.connect(proxyd.address(), "a.test").await;
                assert_eq!(connection.protocol(), agreed, "{alpn} {offered:?}");
            }
        });
    }
}

#[test]
fn a_version_outside_the_listeners_range_is_refused() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    for (range, spoken) in [
        ("", [true, true]),
        (r#"min-version "1.3""#, [false, true]),
        (r#"max-version "1.2""#, [true, false]),
    ] {
        let proxyd = start(&to(&upstream, &over_tls(range)), &[("site", &site)]);
        block_on(async {
            for (version, accepted) in [&TLS12, &TLS13].into_iter().zip(spoken) {
                let client = TlsClient::with_versions(&authority, &[version]);
                let connected = client.try_connect(proxyd.address(), "a.test").await;
                assert_eq!(connected.is_ok(), accepted, "{range} {version:?}");
            }
        });
    }
}

#[test]
fn large_bodies_go_both_ways() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::echo();
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &site)]);
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|byte| byte.to_le_bytes()[0])
        .collect();

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut client = client.connect(proxyd.address(), "a.test").await;
        let length = body.len();
        let head = format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n");
        client.stream.write_all(head.as_bytes()).await.unwrap();
        client.stream.write_all(&body).await.unwrap();
        client.stream.flush().await.unwrap();
        let (head, echoed) = client.response().await;
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(echoed == body);
    });
}

#[test]
fn an_idle_connection_still_serves_after_its_buffers_were_freed() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut client = client.connect(proxyd.address(), "a.test").await;
        client.get("a.test", "/").await;
        // Longer than an idle connection keeps its buffers; neither side sends meanwhile.
        let rest = Duration::from_millis(2_500);
        let printed = tokio::time::timeout(rest, client.stream.read_u8()).await;
        assert!(printed.is_err());
        // In two records, the first with half a head.
        client
            .stream
            .write_all(b"GET / HTTP/1.1\r\nHo")
            .await
            .unwrap();
        client.stream.flush().await.unwrap();
        assert_eq!(client.get_rest("st: a.test\r\n\r\n").await, 200);
    });
}

#[test]
fn a_client_gets_close_notify() {
    const SHORT_TIMEOUTS: &str = "timeouts { keep-alive-secs 1; header-secs 1 }";
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let listener = format!("{}; {SHORT_TIMEOUTS}", over_tls(""));
    let proxyd = start(&to(&upstream, &listener), &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        // Without `close_notify`, reading to the end fails.
        let mut rest = Vec::new();
        for requests in 0..3 {
            let mut idle = client.connect(proxyd.address(), "a.test").await;
            for _ in 0..requests {
                idle.get("a.test", "/").await;
            }
            idle.stream.read_to_end(&mut rest).await.unwrap();
        }
        let mut leaving = client.connect(proxyd.address(), "a.test").await;
        leaving.get("a.test", "/").await;
        leaving.stream.shutdown().await.unwrap();
        leaving.stream.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"");

        let client = client.offering(&["h2"]);
        let mut silent = client.connect(proxyd.address(), "a.test").await;
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        silent.stream.write_all(preface).await.unwrap();
        silent.stream.read_to_end(&mut rest).await.unwrap();
    });
}

#[test]
fn a_truncated_response_is_not_complete_for_an_http10_client() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    });
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut old = client.connect(proxyd.address(), "a.test").await;
        let request = b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n";
        old.stream.write_all(request).await.unwrap();
        let mut response = Vec::new();
        assert!(old.stream.read_to_end(&mut response).await.is_err());
    });
}

#[test]
fn a_session_is_resumed_after_a_reload() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &over_tls(""));
    let proxyd = start(&kdl, &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut first = client.connect(proxyd.address(), "a.test").await;
        first.get("a.test", "/").await;
        assert!(!first.is_resumed());
        proxyd.reload(&kdl);
        let second = client.connect(proxyd.address(), "a.test").await;
        assert!(second.is_resumed());
        // Connections from before the reload stay open.
        assert_eq!(first.get("a.test", "/").await.0, 200);
    });
}

#[test]
fn a_stalled_handshake_is_aborted() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let listener = format!("timeouts {{ handshake-ms 300 }}; {}", over_tls(""));
    let proxyd = start(&to(&upstream, &listener), &[("site", &site)]);

    let mut client = proxyd.connect();
    // The beginning of a record that never ends.
    client.send([0x16, 3, 1, 2, 0, 1]);
    assert!(client.rest().unwrap().0.is_empty());
    let printed = proxyd
        .stdout()
        .find(0, |record| record.text("reason") == "client_tls_failed");
    assert_eq!(printed.text("level"), "WARN");
}

#[test]
fn plain_http_on_a_tls_port_is_answered() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &site)]);

    let response = proxyd.connect().ask(get("/", &[]));
    assert_eq!(
        (response.status, response.error_code().as_str()),
        (495, "TLS")
    );
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn a_failed_handshake_leaves_one_record_and_a_port_check_none() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &site)]);

    // Opened and closed, as port checks do.
    drop(RawClient::connect(proxyd.address()));
    block_on(async {
        let strangers = TlsClient::trusting(&Authority::new("other"));
        let refused = strangers.try_connect(proxyd.address(), "a.test").await;
        assert!(refused.is_err());
        let mut client = TlsClient::trusting(&authority)
            .connect(proxyd.address(), "a.test")
            .await;
        client.get("a.test", "/").await;
    });
    let failed = |record: &proxy_testkit::Record| record.text("reason") == "client_tls_failed";
    let printed_text = proxyd.stdout().find(0, failed);
    assert_eq!(printed_text.number("http_status"), Some(495.0));
    let records = proxyd.stdout().records();
    assert_eq!(records.iter().filter(|record| failed(record)).count(), 1);
}

#[test]
fn a_tls_connection_too_many_is_closed_without_a_handshake() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::answering(ok("hello"));
    let kdl = to(&upstream, &over_tls("")) + "limits { max-total-connections 1 }";
    let proxyd = start(&kdl, &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut first = client.connect(proxyd.address(), "a.test").await;
        first.get("a.test", "/").await;
        let second = client.try_connect(proxyd.address(), "a.test").await;
        assert!(second.is_err());
        assert_eq!(first.get("a.test", "/").await.0, 200);
    });
    let printed = proxyd
        .stdout()
        .find(0, |record| record.text("reason") == "connection_limit");
    assert_eq!(printed.number("http_status"), Some(503.0));
}
