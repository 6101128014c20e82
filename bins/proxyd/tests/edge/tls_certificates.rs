//! Selection and renewal of certificates.

use crate::support::{Authority, Http2, TlsClient, block_on, over_tls, start, to};
use http::Request;
use proxy_testkit::{Reload, Upstream};
use std::fs;
use tokio::io::AsyncReadExt;

const FURTHER: &str = r#"certificate { cert-file "b.crt"; key-file "b.key" }"#;

#[test]
fn a_further_certificate_is_selected_by_sni() {
    let authority = Authority::new("root");
    let [site, other] = ["a.test", "b.test"].map(|name| authority.issue(&[name]));
    let upstream = Upstream::saying("hello");
    let proxyd = start(
        &to(&upstream, &over_tls(FURTHER)),
        &[("site", &site), ("b", &other)],
    );

    block_on(async {
        let client = TlsClient::trusting(&authority);
        for (name, identity) in [("a.test", &site), ("b.test", &other)] {
            let mut connection = client.connect(proxyd.address(), name).await;
            assert_eq!(connection.shown(), identity.der());
            assert_eq!(connection.get(name, "/").await.0, 200);
        }
    });
}

#[test]
fn a_certificate_is_shown_for_the_names_it_was_given_for() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test", "b.test"]);
    let other = authority.issue(&["a.test", "b.test"]);
    let upstream = Upstream::saying("hello");
    let named = FURTHER.replace("b.key\"", "b.key\"; server-name \"b.test\"");
    let proxyd = start(
        &to(&upstream, &over_tls(&named)),
        &[("site", &site), ("b", &other)],
    );

    block_on(async {
        let client = TlsClient::trusting(&authority);
        for (name, identity) in [("a.test", &site), ("b.test", &other)] {
            let connection = client.connect(proxyd.address(), name).await;
            assert_eq!(connection.shown(), identity.der(), "{name}");
        }
    });
}

#[test]
fn a_host_of_another_certificate_is_misdirected() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test", "www.a.test"]);
    let other = authority.issue(&["b.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(
        &to(&upstream, &over_tls(FURTHER)),
        &[("site", &site), ("b", &other)],
    );

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut connection = client.connect(proxyd.address(), "a.test").await;
        for (host, status) in [
            ("a.test", 200),
            ("A.test:8443", 200),
            ("www.a.test", 200),
            ("b.test", 421),
            // A name that no certificate covers: the same certificate would have been served.
            ("c.test", 200),
        ] {
            assert_eq!(connection.get(host, "/").await.0, status, "{host}");
        }
    });
}

#[test]
fn a_stream_for_a_host_of_another_certificate_is_misdirected() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test", "www.a.test"]);
    let other = authority.issue(&["b.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(
        &to(&upstream, &over_tls(FURTHER)),
        &[("site", &site), ("b", &other)],
    );

    block_on(async {
        let client = TlsClient::trusting(&authority).offering(&["h2"]);
        let connection = client.connect(proxyd.address(), "a.test").await;
        let mut http = Http2::over(connection.stream).await;
        for (host, status) in [("www.a.test", 200), ("b.test", 421), ("a.test", 200)] {
            let request = Request::get(format!("https://{host}/")).body(()).unwrap();
            assert_eq!(http.ask(request).await.status, status, "{host}");
        }
    });
}

#[test]
fn the_expiry_of_a_certificate_is_a_metric_that_follows_its_renewal() {
    const METRICS: &str = r#"routes {
        route "metrics" { matches { path "/metrics" }; service-type "builtin"; builtin-handler "metrics" }
    "#;
    let authority = Authority::new("root");
    let [old, new] = [2090, 2095].map(|year| authority.issue_until(&["a.test"], year));
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &over_tls("")).replacen("routes {", METRICS, 1);
    let proxyd = start(&kdl, &[("site", &old)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut connection = client.connect(proxyd.address(), "a.test").await;
        let (_, metrics) = connection.get("a.test", "/metrics").await;
        assert!(metrics.contains("site.crt\"} 3786912000\n"), "{metrics}");
        new.write(proxyd.folder(), "site");
        loop {
            let (_, metrics) = connection.get("a.test", "/metrics").await;
            if metrics.contains("site.crt\"} 3944678400\n") {
                break;
            }
        }
    });
}

#[test]
fn a_certificate_is_active_when_its_reload_has_succeeded() {
    let authority = Authority::new("root");
    let upstream = Upstream::saying("hello");
    let site = authority.issue(&["a.test"]);
    let kdl = to(&upstream, &over_tls(""));
    let proxyd = start(&kdl, &[("site", &site)]);

    // Several times: the watcher polls once a second, and may have polled just in time.
    for _ in 0..5 {
        let new = authority.issue(&["a.test"]);
        new.write(proxyd.folder(), "site");
        assert_eq!(proxyd.reload(&kdl), Reload::Applied);
        block_on(async {
            let client = TlsClient::trusting(&authority);
            let connection = client.connect(proxyd.address(), "a.test").await;
            assert_eq!(connection.shown(), new.der());
        });
    }
}

#[test]
fn an_expired_certificate_on_disk_is_a_warning_of_a_reload_as_it_is_at_a_start() {
    let authority = Authority::new("root");
    let upstream = Upstream::saying("hello");
    let site = authority.issue(&["a.test"]);
    let kdl = to(&upstream, &over_tls(""));
    let proxyd = start(&kdl, &[("site", &site)]);

    authority
        .issue_until(&["a.test"], 2020)
        .write(proxyd.folder(), "site");
    assert_eq!(proxyd.reload(&kdl), Reload::Applied);

    let warned = proxyd.stderr().find(0, |record| {
        record.text("warning").contains("certificate-expires")
    });
    assert!(warned.text("warning").contains("expired on"), "{warned:?}");
    block_on(async {
        let client = TlsClient::trusting(&authority);
        let connection = client.connect(proxyd.address(), "a.test").await;
        assert_eq!(connection.shown(), site.der(), "the valid one stays");
    });
}

#[test]
fn a_renewed_certificate_is_shown_without_a_reload() {
    let authority = Authority::new("root");
    let [old, new] = [0, 1].map(|_| authority.issue(&["a.test"]));
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &old)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut open = client.connect(proxyd.address(), "a.test").await;
        assert_eq!(open.shown(), old.der());
        new.write(proxyd.folder(), "site");
        loop {
            // Without tickets of earlier sessions, which would skip the certificate.
            let client = TlsClient::trusting(&authority);
            let connection = client.connect(proxyd.address(), "a.test").await;
            if connection.shown() == new.der() {
                break;
            }
        }
        assert_eq!(open.get("a.test", "/").await.0, 200);
    });
}

#[test]
fn a_connection_without_a_request_so_far_is_served_after_a_reload() {
    let authority = Authority::new("root");
    let [site, other] = [0, 1].map(|_| authority.issue(&["a.test"]));
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &over_tls(""));
    let proxyd = start(&kdl, &[("site", &site), ("other", &other)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut open = client.connect(proxyd.address(), "a.test").await;
        assert_eq!(open.shown(), site.der());
        assert_eq!(
            proxyd.reload(&kdl.replace("site.", "other.")),
            Reload::Applied
        );
        assert_eq!(open.get("a.test", "/").await.0, 200);
        let mut rest = Vec::new();
        open.stream.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"", "nothing behind the last answer");
    });
}

#[test]
fn a_bad_renewal_changes_nothing_and_is_reported() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &site)]);

    fs::write(proxyd.folder().join("site.crt"), "-----BEGIN nothing").unwrap();
    let printed = proxyd.stderr().find(0, |record| {
        record.text("message") == "a new certificate cannot be used; the old one stays"
    });
    assert!(printed.text("faults").contains("site.crt"), "{printed:?}");
    block_on(async {
        let client = TlsClient::trusting(&authority);
        let connection = client.connect(proxyd.address(), "a.test").await;
        assert_eq!(connection.shown(), site.der());
    });
}

#[test]
fn a_reload_brings_other_certificates() {
    let authority = Authority::new("root");
    let [site, other] = [0, 1].map(|_| authority.issue(&["a.test"]));
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &over_tls(""));
    let proxyd = start(&kdl, &[("site", &site), ("other", &other)]);

    proxyd.reload(&kdl.replace("site.", "other."));
    block_on(async {
        let client = TlsClient::trusting(&authority);
        let connection = client.connect(proxyd.address(), "a.test").await;
        assert_eq!(connection.shown(), other.der());
    });
}
