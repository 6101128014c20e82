//! Selection of the certificate, and the hosts that may be requested with it.

use crate::support::{Ca, Dir, KeyKind, Leaf, RecordingClient, connect, server, site};
use proxy_tls::ServerTls;
use rustls::SignatureScheme;
use rustls::version::{TLS12, TLS13};
use std::sync::Arc;

/// Returns the leaf that `server` sends for a server name.
fn shown(server: &ServerTls, name: &str) -> Vec<u8> {
    let client = Arc::new(RecordingClient::with_all_schemes().config(&[&TLS13]));
    connect(&client, &server.config(), name)
        .unwrap()
        .leaf()
        .to_vec()
}

#[test]
fn the_certificate_follows_the_name_asked_for() {
    let dir = Dir::new();
    let ca = Ca::new("root");
    let first = ca.issue(&Leaf::new(&["a.example"]));
    let wild = ca.issue(&Leaf::new(&["*.b.example", "b.example"]));
    let exact = ca.issue(&Leaf::new(&["Shop.b.example"]));
    let sources = [("first", &first), ("wild", &wild), ("exact", &exact)]
        .map(|(stem, issued)| dir.put(stem, issued));
    let server = server(sources.to_vec());

    let cases = [
        ("a.example", &first),
        ("A.Example", &first),
        ("b.example", &wild),
        ("www.b.example", &wild),
        ("shop.b.example", &exact),
        // A wildcard matches exactly one label.
        ("deep.www.b.example", &first),
        ("unknown.example", &first),
        // Clients send no SNI for an IP address.
        ("192.0.2.1", &first),
    ];
    for (name, expected) in cases {
        assert_eq!(shown(&server, name), expected.der, "{name}");
    }
}

#[test]
fn a_certificate_is_served_for_the_names_it_was_given_for() {
    let dir = Dir::new();
    let ca = Ca::new("root");
    let first = ca.issue(&Leaf::new(&["a.example"]));
    let other = ca.issue(&Leaf::new(&["a.example", "*.b.example"]));
    let mut source = dir.put("other", &other);
    source.server_names = vec!["www.b.example".to_owned(), "*.c.example".to_owned()];
    let server = server(vec![dir.put("first", &first), source]);

    let cases = [
        ("a.example", &first),
        ("www.b.example", &other),
        ("shop.b.example", &first),
        ("shop.c.example", &other),
    ];
    for (name, expected) in cases {
        assert_eq!(shown(&server, name), expected.der, "{name}");
    }
}

#[test]
fn a_client_with_ecdsa_gets_no_rsa_certificate() {
    let dir = Dir::new();
    let ca = Ca::new("root");
    let rsa = ca.issue(&Leaf {
        kind: KeyKind::Rsa,
        ..Leaf::new(&["a.example"])
    });
    let ecdsa = ca.issue(&Leaf::new(&["a.example"]));
    let server = server(vec![dir.put("rsa", &rsa), dir.put("ecdsa", &ecdsa)]);

    let both = [
        SignatureScheme::RSA_PSS_SHA256,
        SignatureScheme::ECDSA_NISTP256_SHA256,
    ];
    let cases = [
        (&both[..], "a.example", &ecdsa),
        (&both[..], "unknown.example", &ecdsa),
        (&[SignatureScheme::RSA_PSS_SHA256], "a.example", &rsa),
        (&[SignatureScheme::RSA_PSS_SHA256], "unknown.example", &rsa),
    ];
    for (schemes, name, expected) in cases {
        for version in [&TLS12, &TLS13] {
            let client = Arc::new(RecordingClient::new(schemes).config(&[version]));
            let pair = connect(&client, &server.config(), name).unwrap();
            assert_eq!(pair.leaf(), expected.der, "{schemes:?} {name}");
        }
    }
}

#[test]
fn an_ed25519_certificate_is_served() {
    let site = site(&[Leaf {
        kind: KeyKind::Ed25519,
        ..Leaf::new(&["a.example"])
    }]);

    assert!(connect(&site.client.config(), &site.server.config(), "a.example").is_ok());
}

#[test]
fn a_host_that_needs_another_certificate_is_misdirected() {
    let site = site(&[
        Leaf::new(&["a.example", "*.a.example", "192.0.2.1"]),
        Leaf::new(&["b.example"]),
        Leaf::new(&["shop.a.example"]),
    ]);

    let agree = [
        (None, "b.example"),
        (Some("a.example"), "A.example"),
        (Some("a.example"), "www.a.example"),
        (Some("a.example"), "WWW.a.example."),
        (Some("a.example"), "192.0.2.1"),
        // The served wildcard covers this host, although it has its own certificate.
        (Some("a.example"), "shop.a.example"),
        // The first certificate is served for both.
        (Some("a.example"), "unknown.example"),
        (Some("localhost"), "a.example"),
        (Some("unknown.example"), "other.example"),
    ];
    for (sni, host) in agree {
        assert!(site.server.covers(sni, host), "{sni:?} {host}");
    }
    let disagree = [
        (Some("a.example"), "b.example"),
        (Some("b.example"), "a.example"),
        (Some("b.example"), "192.0.2.1"),
        (Some("b.example"), "unknown.example"),
        (Some("shop.a.example"), "www.a.example"),
        (Some("b.example"), ""),
    ];
    for (sni, host) in disagree {
        assert!(!site.server.covers(sni, host), "{sni:?} {host}");
    }
    let endless = "x".repeat(300);
    assert!(!site.server.covers(Some("b.example"), &endless));
}
