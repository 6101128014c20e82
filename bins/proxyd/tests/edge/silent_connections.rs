//! Connections without a byte of the client when the process drains or reloads.

use crate::support::{Authority, Identity, TlsClient, block_on, over_tls, plain, start, to};
use proxy_testkit::{End, Proxyd, RawClient, Reload, Upstream, get};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::version::TLS12;

/// Well below the drain timeout of 30 s and `handshake-secs`.
const PROMPT_EXIT: Duration = Duration::from_secs(7);

const PROXIED: &str = "proxy-protocol #true; trusted-proxies \"127.0.0.1\"";

/// A connection that the only worker has accepted: it accepts in order, and `later` was answered.
fn silent(proxyd: &Proxyd, later: impl FnOnce()) -> RawClient {
    let silent = proxyd.connect();
    later();
    silent
}

fn site() -> (Authority, Identity) {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    (authority, site)
}

#[test]
fn a_drain_does_not_wait_for_a_first_byte() {
    let (authority, site) = site();
    let upstream = Upstream::saying("hello");
    let by_tls = |proxyd: &Proxyd| {
        block_on(async {
            let client = TlsClient::trusting(&authority);
            let mut client = client.connect(proxyd.address(), "a.test").await;
            assert_eq!(client.get("a.test", "/").await.0, 200);
        });
    };
    let in_plain = |proxyd: &Proxyd| {
        assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    };
    let behind_a_header = |proxyd: &Proxyd| {
        let mut client = proxyd.connect();
        client.send(b"PROXY TCP4 192.0.2.7 192.0.2.9 40000 80\r\n");
        assert_eq!(client.ask(get("/", &[])).status, 200);
    };
    let requests: [&dyn Fn(&Proxyd); 3] = [&in_plain, &by_tls, &behind_a_header];
    let listeners = ["h2c #true", &over_tls(""), PROXIED];
    for (listener, request) in listeners.into_iter().zip(requests) {
        let mut proxyd = start(&to(&upstream, listener), &[("site", &site)]);
        let mut silent = silent(&proxyd, || request(&proxyd));

        proxyd.terminate();

        assert_eq!(silent.end(), End::Closed, "{listener}");
        assert!(proxyd.has_ended_within(PROMPT_EXIT), "{listener}");
        assert!(proxyd.wait().success(), "{listener}");
    }
}

#[test]
fn a_handshake_that_begins_after_a_reload_is_by_the_new_settings() {
    let (authority, site) = site();
    let other = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &over_tls(""));
    let proxyd = start(&kdl, &[("site", &site), ("other", &other)]);

    block_on(async {
        let newest = TlsClient::trusting(&authority);
        let old = TlsClient::with_versions(&authority, &[&TLS12]);
        let [first, second] = [plain(proxyd.address()).await, plain(proxyd.address()).await];
        newest.connect(proxyd.address(), "a.test").await;
        let tightened = to(&upstream, &over_tls("min-version \"1.3\"")).replace("site.", "other.");
        assert_eq!(proxyd.reload(&tightened), Reload::Applied);

        assert!(
            old.over(first, "a.test").await.is_err(),
            "TLS 1.2 is served"
        );
        let mut client = newest.over(second, "a.test").await.unwrap();
        assert_eq!(client.shown(), other.der());
        for _ in 0..2 {
            assert_eq!(client.get("a.test", "/").await.0, 200, "it is not outdated");
        }
    });
}

#[test]
fn the_first_request_after_a_reload_has_the_new_limits() {
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, "h2c #true");
    let proxyd = start(&kdl, &[]);
    let mut silent = silent(&proxyd, || {
        assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    });

    let tightened = kdl + "limits { max-header-count 3 }";
    assert_eq!(proxyd.reload(&tightened), Reload::Applied);

    let many = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    assert_eq!(silent.ask(get("/", &many)).status, 429);
}

#[test]
fn a_proxy_protocol_header_after_a_reload_is_taken_from_its_trusted_proxies_only() {
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, PROXIED);
    let proxyd = start(&kdl, &[]);

    block_on(async {
        let header =
            b"PROXY TCP4 192.0.2.7 192.0.2.9 40000 80\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let mut silent = plain(proxyd.address()).await;
        let mut later = plain(proxyd.address()).await;
        later.write_all(header).await.unwrap();
        upstream.wait_for_requests(1);
        let narrowed = kdl.replace("\"127.0.0.1\"", "\"10.0.0.1\"");
        assert_eq!(proxyd.reload(&narrowed), Reload::Applied);

        silent.write_all(header).await.unwrap();
        let mut answer = Vec::new();
        // A reset is an end, too.
        drop(silent.read_to_end(&mut answer).await);
        assert_eq!(String::from_utf8_lossy(&answer), "");
    });
    assert_eq!(upstream.requests().len(), 1);
}
