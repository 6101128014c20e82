//! Limits and timeouts of HTTP/3.

use crate::support::{Http3, Http3Client, Site, block_on, head_of, over_tls, to};
use proxy_testkit::Upstream;
use quinn::ConnectionError;

const EXCESSIVE_LOAD: u64 = 0x107;
const REQUEST_CANCELLED: u64 = 0x10c;

/// A site in front of `upstream` with further blocks.
fn site(upstream: &Upstream, blocks: &str) -> Site {
    let kdl = to(upstream, &format!("{}; http3 #true", over_tls("")));
    Site::with(&format!("{kdl} {blocks}"))
}

#[test]
fn a_client_has_as_many_connections_of_http3_as_of_tcp() {
    let upstream = Upstream::saying("hello");
    let site = site(&upstream, "limits { max-connections-per-client 2 }");
    block_on(async {
        let open: Vec<Http3> = vec![site.connect().await, site.connect().await];
        let client = Http3Client::trusting(&site.authority, None);
        let third = client.endpoint.connect(site.proxyd.address(), "a.test");
        let closed = third.unwrap().await.unwrap().closed().await;
        let ConnectionError::ApplicationClosed(close) = &closed else {
            panic!("not closed: {closed}");
        };
        assert_eq!(close.error_code.into_inner(), EXCESSIVE_LOAD);
        for client in &open {
            assert_eq!(client.get("/").await.status, 200);
        }
    });
    let record = site.proxyd.stdout().find(0, |it| it.has("http_status"));
    assert_eq!(record.text("reason"), "client_connection_limit");
}

#[test]
fn connections_above_the_total_are_refused_in_their_handshake() {
    let upstream = Upstream::saying("hello");
    let site = site(&upstream, "limits { max-total-connections 1 }");
    block_on(async {
        let first = site.connect().await;
        let client = Http3Client::trusting(&site.authority, None);
        let refused = client.connect(site.proxyd.address()).await.err().unwrap();
        let ConnectionError::ConnectionClosed(close) = &refused else {
            panic!("not refused: {refused}");
        };
        // `CONNECTION_REFUSED`, with which browsers return to TCP.
        assert_eq!(u64::from(close.error_code), 0x2);
        assert_eq!(first.get("/").await.status, 200);
    });
    let record = site.proxyd.stdout().find(0, |it| it.has("http_status"));
    assert_eq!(record.text("reason"), "connection_limit");
}

#[test]
fn rates_count_requests_of_all_versions_together() {
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let rate = "policies { rate-limit { rate \"2/min\"; burst 2 } }";
    let site = Site::with(&kdl.replacen("upstream \"u\"", &format!("upstream \"u\"; {rate}"), 1));
    block_on(async {
        let over_tcp = crate::support::TlsClient::trusting(&site.authority);
        let mut over_tcp = over_tcp.connect(site.proxyd.address(), "a.test").await;
        let head = over_tcp.head("a.test", "/").await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let client = site.connect().await;
        assert_eq!(client.get("/").await.status, 200);
        let refused = client.get("/").await;
        assert_eq!(refused.status, 429);
        assert!(refused.header("retry-after").is_some());
    });
}

#[test]
fn a_client_that_does_not_read_loses_its_response() {
    let body = "a".repeat(16 << 20);
    let upstream = Upstream::saying(&body);
    let site = Site::to(&upstream, "timeouts { write-idle-secs 1 }");
    block_on(async {
        let client = site.connect().await;
        let (mut send, mut receive) = client.open().await;
        send.write_all(&head_of("GET", "/", &[("x-correlation-id", "slow")]))
            .await
            .unwrap();
        send.finish().unwrap();
        let reset = receive.received_reset().await.unwrap();
        assert_eq!(reset.unwrap().into_inner(), REQUEST_CANCELLED);
        let record = site.proxyd.access_record("slow");
        assert_eq!(record.text("reason"), "client_write_timeout");
        // Unread data is bounded by the windows, not by the response.
        assert!(site.proxyd.peak_rss_bytes() < 200 << 20);
        assert!(client.connection.close_reason().is_none());
    });
}

#[test]
fn a_head_that_does_not_arrive_loses_its_stream() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "timeouts { header-secs 1 }");
    block_on(async {
        let client = site.connect().await;
        let (mut send, mut receive) = client.open().await;
        send.write_all(&head_of("GET", "/", &[])[..10])
            .await
            .unwrap();
        let reset = receive.received_reset().await.unwrap();
        assert_eq!(reset.unwrap().into_inner(), 0x10b);
        assert_eq!(client.get("/").await.status, 200);
    });
}
