//! TLS versions, cipher suites, groups and protocols.

use crate::support::{Leaf, RecordingClient, Site, connect, load_server, site};
use proxy_tls::{Alpn, ServerTls, ServerTlsSettings, TlsVersion, TlsVersionError};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, Error, NamedGroup, PeerIncompatible, ProtocolVersion, ServerConnection,
    SupportedCipherSuite, SupportedProtocolVersion,
};
use std::sync::Arc;

fn plain() -> Site {
    site(&[Leaf::new(&["a.example"])])
}

fn again(site: &Site, change: impl FnOnce(&mut ServerTlsSettings)) -> Arc<ServerTls> {
    let mut settings = site.server.settings().clone();
    change(&mut settings);
    load_server(settings)
}

#[test]
fn only_two_versions_can_be_configured() {
    assert_eq!("1.2".parse(), Ok(TlsVersion::V1_2));
    assert_eq!("1.3".parse(), Ok(TlsVersion::V1_3));
    for old in ["1.0", "1.1"] {
        let version = old.to_owned();
        assert_eq!(
            old.parse::<TlsVersion>(),
            Err(TlsVersionError::Forbidden { version })
        );
    }
    for other in ["", "1", "1.4", "TLSv1.2", "SSLv3", " 1.2"] {
        let version = other.to_owned();
        assert_eq!(
            other.parse::<TlsVersion>(),
            Err(TlsVersionError::Unknown { version })
        );
    }
}

#[test]
fn a_client_below_the_least_version_is_refused() {
    let site = plain();
    let strict = again(&site, |settings| settings.min_version = TlsVersion::V1_3);

    let cases: [(&ServerTls, &'static SupportedProtocolVersion, bool); 4] = [
        (&site.server, &TLS12, true),
        (&site.server, &TLS13, true),
        (&strict, &TLS12, false),
        (&strict, &TLS13, true),
    ];
    for (server, version, accepted) in cases {
        let client = Arc::new(RecordingClient::with_all_schemes().config(&[version]));
        let outcome = connect(&client, &server.config(), "a.example");
        assert_eq!(outcome.is_ok(), accepted, "{version:?}");
    }
}

#[test]
fn a_client_above_the_greatest_version_is_refused() {
    let site = plain();
    let old = again(&site, |settings| settings.max_version = TlsVersion::V1_2);

    for (version, accepted) in [(&TLS12, true), (&TLS13, false)] {
        let client = Arc::new(RecordingClient::with_all_schemes().config(&[version]));
        let outcome = connect(&client, &old.config(), "a.example");
        assert_eq!(outcome.is_ok(), accepted, "{version:?}");
    }
}

#[test]
fn the_newest_common_version_is_spoken() {
    let site = plain();

    let pair = connect(&site.client.config(), &site.server.config(), "a.example").unwrap();
    assert_eq!(
        pair.server.protocol_version(),
        Some(ProtocolVersion::TLSv1_3)
    );
}

#[test]
fn a_client_with_tls_1_1_at_most_is_refused() {
    let site = plain();
    let mut hello = vec![0x16, 3, 1, 0, 55, 1, 0, 0, 51, 3, 2];
    hello.extend([9; 32]);
    // No session ID, one cipher suite, no compression, and one signature algorithm.
    hello.extend([0, 0, 2, 0xc0, 0x2f, 1, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);

    let mut server = ServerConnection::new(site.server.config()).unwrap();
    server.read_tls(&mut hello.as_slice()).unwrap();
    assert_eq!(
        server.process_new_packets().unwrap_err(),
        Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered)
    );
}

#[test]
fn suites_and_groups_are_those_of_mozillas_intermediate_profile() {
    let site = plain();
    let config = site.server.config();
    let provider = config.crypto_provider();

    let suites: Vec<_> = provider
        .cipher_suites
        .iter()
        .map(SupportedCipherSuite::suite)
        .collect();
    let intermediate = [
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    assert_eq!(suites, intermediate);

    let groups: Vec<_> = provider
        .kx_groups
        .iter()
        .map(|group| group.name())
        .collect();
    let intermediate = [
        NamedGroup::X25519MLKEM768,
        NamedGroup::X25519,
        NamedGroup::secp256r1,
        NamedGroup::secp384r1,
    ];
    assert_eq!(groups, intermediate);
    assert!(!config.ignore_client_order);
}

#[test]
fn early_data_is_off() {
    let config = plain().server.config();

    assert_eq!(config.max_early_data_size, 0);
    assert!(!config.send_half_rtt_data);
    assert_eq!(config.send_tls13_tickets, 2);
}

#[test]
fn the_listener_chooses_the_protocol() {
    let site = plain();
    let only_http1 = again(&site, |settings| settings.alpn = vec![Alpn::Http1]);
    let silent = again(&site, |settings| settings.alpn = Vec::new());

    let cases: [(&ServerTls, &[&str], Option<&str>); 6] = [
        (&site.server, &["http/1.1", "h2"], Some("h2")),
        (&site.server, &["http/1.1"], Some("http/1.1")),
        (&site.server, &["http/1.0"], Some("http/1.0")),
        (&site.server, &[], None),
        (&only_http1, &["h2", "http/1.1"], Some("http/1.1")),
        (&silent, &["h2"], None),
    ];
    for (server, offered, chosen) in cases {
        let mut client = RecordingClient::with_all_schemes().config(&[&TLS13]);
        client.alpn_protocols = offered
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let pair = connect(&Arc::new(client), &server.config(), "a.example").unwrap();
        assert_eq!(
            pair.server.alpn_protocol(),
            chosen.map(str::as_bytes),
            "{offered:?}"
        );
    }
}

#[test]
fn a_client_with_no_common_protocol_is_refused() {
    let site = plain();
    let mut client = RecordingClient::with_all_schemes().config(&[&TLS13]);
    client.alpn_protocols = vec![b"gopher".to_vec()];

    let broken = connect(&Arc::new(client), &site.server.config(), "a.example").unwrap_err();
    assert_eq!(broken.server, Some(Error::NoApplicationProtocol));
}

#[test]
fn no_process_wide_provider_is_needed_or_installed() {
    let site = plain();

    assert!(connect(&site.client.config(), &site.server.config(), "a.example").is_ok());
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}
