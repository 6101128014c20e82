//! OCSP responses from files, stapled while they are fresh.

use crate::support::{
    Authority, BINARY, Staples, TlsClient, block_on, ocsp_response, over_tls, to,
};
use proxy_testkit::{Launch, Proxyd, Upstream};
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

const SERIAL: u8 = 42;
const FURTHER: &str = r#"certificate { cert-file "b.crt"; key-file "b.key"; ocsp-file "b.ocsp" }"#;

/// The OCSP response that a new client gets for `name`.
async fn stapled(proxyd: SocketAddr, name: &str) -> Vec<u8> {
    let staples = Arc::new(Staples::default());
    TlsClient::recording_staples(&staples)
        .connect(proxyd, name)
        .await;
    staples.first()
}

fn launch(upstream: &Upstream, staples: [&[u8]; 2]) -> Proxyd {
    let authority = Authority::new("root");
    let tls = format!(r#"ocsp-file "site.ocsp"; {FURTHER}"#);
    let launch = Launch::new(BINARY, &to(upstream, &over_tls(&tls)));
    for (name, staple) in ["site", "b"].iter().zip(staples) {
        let identity = authority.issue_numbered(&[&format!("{name}.test")], SERIAL);
        identity.write(launch.folder(), name);
        fs::write(launch.folder().join(format!("{name}.ocsp")), staple).unwrap();
    }
    launch.start()
}

#[test]
fn an_ocsp_response_is_stapled_and_renewed() {
    let upstream = Upstream::saying("hello");
    let [old, other, new] = [2090, 2091, 2092].map(|until| ocsp_response(SERIAL, until));
    let proxyd = launch(&upstream, [&old, &other]);

    block_on(async {
        assert_eq!(stapled(proxyd.address(), "site.test").await, old);
        assert_eq!(stapled(proxyd.address(), "b.test").await, other);
        let fresh = proxyd.folder().join("fresh");
        fs::write(&fresh, &new).unwrap();
        fs::rename(fresh, proxyd.folder().join("site.ocsp")).unwrap();
        while stapled(proxyd.address(), "site.test").await != new {}
        assert_eq!(stapled(proxyd.address(), "b.test").await, other);
    });
}

#[test]
fn a_stale_ocsp_response_is_not_stapled() {
    let upstream = Upstream::saying("hello");
    let [stale, good] = [2001, 2091].map(|until| ocsp_response(SERIAL, until));
    let proxyd = launch(&upstream, [&stale, &good]);

    block_on(async {
        assert_eq!(stapled(proxyd.address(), "site.test").await, b"");
        assert_eq!(stapled(proxyd.address(), "b.test").await, good);
    });
}
