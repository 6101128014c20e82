//! Targets with an invalid certificate receive no request, and the reason is reported.

use crate::support::{
    Ca, Dir, Leaf, Pair, client, client_settings, connect, load_client, load_server, now, server,
    site,
};
use proxy_tls::{
    Alpn, ClientAuth, ClientTls, ClientTlsSettings, PlatformRoots, ServerTlsSettings, TlsError,
    TlsFailure, TlsVersion, VerifyFailure, classify, classify_io, server_name,
};
use rustls::version::TLS12;
use rustls::{AlertDescription, ClientConnection, Error, HandshakeKind};
use rustls_pki_types::ServerName;
use std::io;
use std::sync::Arc;

#[test]
fn a_target_with_an_untrusted_certificate_is_refused() {
    let dir = Dir::new();
    let ca = Ca::new("root");
    let ca_file = dir.write("ca.pem", ca.pem());
    let old = |years| Leaf {
        years,
        ..Leaf::new(&["a.example"])
    };
    let cases = [
        (
            ca.issue(&Leaf::new(&["b.example"])),
            VerifyFailure::WrongName,
        ),
        (ca.issue(&old((2001, 2021))), VerifyFailure::Expired),
        (ca.issue(&old((2090, 2091))), VerifyFailure::NotYetValid),
        (ca.issue(&Leaf::client()), VerifyFailure::WrongPurpose),
        (
            Ca::new("other").issue(&Leaf::new(&["a.example"])),
            VerifyFailure::UnknownIssuer,
        ),
        // Another authority with the name of the trusted one.
        (
            Ca::new("root").issue(&Leaf::new(&["a.example"])),
            VerifyFailure::BadSignature,
        ),
    ];
    for (issued, reason) in &cases {
        let server = server(vec![dir.put("target", issued)]);
        let client = client(&ca_file).config();
        let broken = connect(&client, &server.config(), "a.example").unwrap_err();
        let error = broken.client.unwrap();
        assert_eq!(classify(&error), TlsFailure::Verify(*reason), "{error}");
        // The target receives an alert, and its error has the same class.
        let reported = classify(&broken.server.unwrap());
        assert!(matches!(reported, TlsFailure::Alert(_)), "{reported}");
    }
}

#[test]
fn a_target_is_verified_by_address_when_it_has_no_name() {
    let site = site(&[Leaf::new(&["192.0.2.1", "2001:db8::1"])]);

    for (host, trusted) in [
        ("192.0.2.1", true),
        ("2001:db8::1", true),
        ("[2001:db8::1]", true),
        ("192.0.2.2", false),
    ] {
        let name = site.client.server_name(host).unwrap();
        let outcome = connect(&site.client.config(), &site.server.config(), &name.to_str());
        assert_eq!(outcome.is_ok(), trusted, "{host}");
    }
}

#[test]
fn the_configured_name_outranks_the_targets_host() {
    let name = ServerName::try_from("api.example").unwrap();

    assert_eq!(server_name(Some(&name), "10.0.0.1"), Ok(name.clone()));
    assert_eq!(server_name(None, "api.example."), Ok(name));
    for host in ["", "a b", "-a", "[::1", "a..b"] {
        assert!(server_name(None, host).is_err(), "{host:?}");
    }
}

#[test]
fn the_configured_name_is_the_one_asked_for_and_verified() {
    let site = site(&[Leaf::new(&["other.example"]), Leaf::new(&["api.example"])]);
    let client = load_client(ClientTlsSettings {
        sni: Some(ServerName::try_from("api.example").unwrap()),
        ..client_settings(&site.dir.path("ca.pem"))
    });

    let name = client.server_name("10.0.0.1").unwrap();
    let pair = connect(&client.config(), &site.server.config(), &name.to_str()).unwrap();
    assert_eq!(pair.server.server_name(), Some("api.example"));
}

#[test]
fn a_target_below_the_least_version_is_refused() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let mut old = rustls::ServerConfig::builder_with_provider(Arc::clone(
        site.server.config().crypto_provider(),
    ))
    .with_protocol_versions(&[&TLS12])
    .unwrap()
    .with_no_client_auth()
    .with_cert_resolver(Arc::clone(&site.server.config().cert_resolver));
    old.alpn_protocols = vec![b"http/1.1".to_vec()];
    let old = Arc::new(old);

    assert!(connect(&site.client.config(), &old, "a.example").is_ok());
    let strict = load_client(ClientTlsSettings {
        min_version: TlsVersion::V1_3,
        ..client_settings(&site.dir.path("ca.pem"))
    });
    let broken = connect(&strict.config(), &old, "a.example").unwrap_err();
    assert_eq!(classify(&broken.server.unwrap()), TlsFailure::Incompatible);
    assert_eq!(
        classify(&broken.client.unwrap()),
        TlsFailure::Alert(AlertDescription::ProtocolVersion)
    );
}

#[test]
fn a_target_that_answers_in_plaintext_has_its_own_reason() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let name = ServerName::try_from("a.example").unwrap();
    let mut client = ClientConnection::new(site.client.config(), name).unwrap();

    let mut plain = &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..];
    client.read_tls(&mut plain).unwrap();
    let error = client.process_new_packets().unwrap_err();
    assert_eq!(classify(&error), TlsFailure::NotTls);
}

#[test]
fn an_io_error_is_sorted_by_the_tls_error_inside() {
    let inside = Error::AlertReceived(AlertDescription::HandshakeFailure);
    let wrapped = io::Error::new(io::ErrorKind::InvalidData, inside);

    let alert = TlsFailure::Alert(AlertDescription::HandshakeFailure);
    assert_eq!(classify_io(&wrapped), Some(alert));
    assert_eq!(classify_io(&io::Error::other("a cable was cut")), None);
}

#[test]
fn a_session_with_a_target_is_resumed() {
    let site = site(&[Leaf::new(&["a.example"])]);

    let kinds = [(); 3].map(|()| {
        let pair = connect(&site.client.config(), &site.server.config(), "a.example");
        pair.unwrap().client.handshake_kind()
    });
    let [full, resumed] = [HandshakeKind::Full, HandshakeKind::Resumed].map(Some);
    assert_eq!(kinds, [full, resumed, resumed]);
}

#[test]
fn the_protocol_is_offered_as_configured() {
    let site = site(&[Leaf::new(&["a.example"])]);
    for (alpn, spoken) in [(Alpn::H2, "h2"), (Alpn::Http1, "http/1.1")] {
        let client = load_client(ClientTlsSettings {
            alpn: vec![alpn],
            ..client_settings(&site.dir.path("ca.pem"))
        });
        let pair: Pair = connect(&client.config(), &site.server.config(), "a.example").unwrap();
        assert_eq!(pair.client.alpn_protocol(), Some(spoken.as_bytes()));
    }
}

#[test]
fn a_client_certificate_is_shown_to_a_target_that_asks() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let ca_file = site.dir.path("ca.pem");
    let target = load_server(ServerTlsSettings {
        client_auth: ClientAuth::Required {
            ca_file: ca_file.clone(),
        },
        ..site.server.settings().clone()
    });
    let identity = site.dir.put("identity", &site.ca.issue(&Leaf::client()));
    let client = load_client(ClientTlsSettings {
        client_certificate: Some(identity.clone()),
        ..client_settings(&ca_file)
    });

    let pair = connect(&client.config(), &target.config(), "a.example").unwrap();
    assert!(!target.verdict(&pair.server, now()).is_refusal());
    let known = client.certificates();
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].file, identity.cert_file);
    assert_eq!(client.warnings(now()), []);
}

#[test]
fn every_missing_file_of_an_upstream_is_named_at_once() {
    let dir = Dir::new();
    let [ca_file, cert_file, key_file] = ["ca", "cert", "key"].map(|name| dir.path(name));
    let settings = ClientTlsSettings {
        client_certificate: Some(proxy_tls::CertificateSource {
            cert_file: cert_file.clone(),
            key_file: key_file.clone(),
            held: None,
            is_obtained: false,
            ocsp_file: None,
            server_names: Vec::new(),
        }),
        ..client_settings(&ca_file)
    };

    let faults = ClientTls::load(settings, &PlatformRoots::new()).unwrap_err();
    let expected = [ca_file, cert_file, key_file].map(|file| TlsError::Missing { file });
    assert_eq!(faults, expected);
}

#[test]
fn the_platforms_roots_do_not_trust_a_private_authority() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let settings = ClientTlsSettings {
        ca_file: None,
        ..site.client.settings().clone()
    };
    let client = match ClientTls::load(settings, &PlatformRoots::new()) {
        Ok(client) => client,
        Err(faults) => {
            assert_eq!(faults, [TlsError::NoPlatformRoots]);
            return;
        }
    };

    let broken = connect(&client.config(), &site.server.config(), "a.example").unwrap_err();
    assert_eq!(
        classify(&broken.client.unwrap()),
        TlsFailure::Verify(VerifyFailure::UnknownIssuer)
    );
}
