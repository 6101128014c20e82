//! Issuance, storage and renewal with HTTP-01.

use crate::site::{BINARY, Site, wait_for_certificate};
use proxy_testkit::Launch;
use proxy_testkit::http;
use proxy_testkit::{Pebble, Policy};
use std::time::{Duration, Instant};

const HOSTS: &str = "\"www.a.test\" \"a.test\"";

#[test]
fn a_certificate_is_obtained_by_http_01() {
    let pebble = Pebble::start(Policy::USUAL);
    for host in ["www.a.test", "a.test"] {
        pebble.resolve(host);
    }
    let site = Site::new(&pebble);
    let proxyd = site.start(&site.block(HOSTS, "challenge \"http-01\""));
    wait_for_certificate(&proxyd);

    let roots = pebble.issued_roots();
    for host in ["www.a.test", "a.test"] {
        assert_eq!(site.ask(host, &roots).body.as_deref(), Ok("hello"));
    }
    for (path, mode) in site.files() {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}", path.display());
    }
    // Without a pending challenge, the path is routed like any other.
    let (status, body) = http(site.http_port, "/.well-known/acme-challenge/token");
    assert_eq!((status, &*body), (200, "hello"));

    let admin = proxyd.admin_address().port();
    let (_, status) = http(admin, "/status");
    let file = site.file(".pem").display().to_string();
    assert!(status.contains(&format!("\"file\":\"{file}\"")), "{status}");
    assert!(status.contains("\"failure\":null"), "{status}");
    assert_eq!(http(admin, "/ready").1, "{\"status\":\"ready\"}");
    let (_, metrics) = http(admin, "/metrics");
    let orders =
        format!("proxy_acme_orders_total{{certificate=\"{file}\",result=\"success\"}} 1\n");
    assert!(metrics.contains(&orders), "{metrics}");
    let failures = format!("proxy_acme_consecutive_failures{{certificate=\"{file}\"}} 0\n");
    assert!(metrics.contains(&failures), "{metrics}");
    let expiry = format!("proxy_tls_certificate_expiry_seconds{{certificate=\"{file}\"}} ");
    assert!(metrics.contains(&expiry), "{metrics}");
}

#[test]
fn a_restart_uses_the_stored_certificate() {
    let mut pebble = Pebble::start(Policy::USUAL);
    pebble.resolve("a.test");
    let site = Site::new(&pebble);
    let block = site.block("\"a.test\"", "");
    let mut proxyd = site.start(&block);
    wait_for_certificate(&proxyd);
    let roots = pebble.issued_roots();
    let first = site.ask("a.test", &roots);
    proxyd.terminate();
    assert!(proxyd.wait().success());
    pebble.stop();

    let proxyd = site.start(&block);
    let again = site.ask("a.test", &roots);
    assert_eq!(again.body.as_deref(), Ok("hello"));
    assert_eq!(again.certificates, first.certificates);
    let printed = proxyd.stderr().lines().join("\n");
    assert!(!printed.contains("a certificate is ordered"), "{printed}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test has a deadline")]
fn a_certificate_is_renewed_without_a_lost_request() {
    let pebble = Pebble::start(Policy {
        validity_secs: 8,
        ..Policy::USUAL
    });
    pebble.resolve("a.test");
    let site = Site::new(&pebble);
    let proxyd = site.start(&site.block("\"a.test\"", ""));
    wait_for_certificate(&proxyd);

    // The certificate is short-lived; its expiry is not tested here.
    let roots = pebble.issued_roots();
    let first = std::fs::read(site.file(".pem")).unwrap();
    let begun = Instant::now();
    let mut asked = 0;
    loop {
        let answer = site.ask("a.test", &roots);
        let is_expired = |error: &String| error.contains("expired");
        let is_lost = answer.body.as_ref().err().is_some_and(|e| !is_expired(e));
        assert!(!is_lost, "{:?}", answer.body);
        asked += 1;
        let printed = proxyd.stderr().records();
        let served = printed.iter();
        let served = served.filter(|it| it.text("message") == "a new certificate is in use");
        if served.count() > 1 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "no renewal");
    }
    assert!(asked > 1);
    assert_ne!(std::fs::read(site.file(".pem")).unwrap(), first);
}

#[test]
fn a_reload_obtains_the_certificates_of_new_blocks_only() {
    let pebble = Pebble::start(Policy::USUAL);
    for host in ["a.test", "b.test"] {
        pebble.resolve(host);
    }
    let site = Site::new(&pebble);
    let first = site.block("\"a.test\"", "");
    let proxyd = Launch::new(BINARY, &site.kdl(&first)).start();
    wait_for_certificate(&proxyd);

    let both = format!("{first}\n{}", site.block("\"b.test\"", ""));
    let reloaded = proxyd.reload(&site.kdl(&both));
    assert_eq!(reloaded, proxy_testkit::Reload::Applied);
    let _obtained = proxyd.stderr().find(0, |record| {
        record.text("message") == "a certificate was obtained" && record.text("hosts") == "b.test"
    });
    let ordered = proxyd.stderr().records();
    let ordered = ordered.iter();
    let ordered = ordered.filter(|it| it.text("message") == "a certificate is ordered");
    assert_eq!(ordered.count(), 2);
}
