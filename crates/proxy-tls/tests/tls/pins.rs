//! Pinned public keys of targets.

use crate::support::{Ca, Dir, Issued, Leaf, client_settings, connect, load_client, server, site};
use aws_lc_rs::digest::{SHA256, digest};
use proxy_tls::{ClientTls, ClientTlsSettings, PlatformRoots, TlsFailure, VerifyFailure, classify};
use rcgen::PublicKeyData;
use rustls::ServerConfig;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;

fn pin(issued: &Issued) -> [u8; 32] {
    let key = issued.key.subject_public_key_info();
    digest(&SHA256, &key).as_ref().try_into().unwrap()
}

/// Returns the failure of a handshake at the client; `None` if it succeeds.
fn failure(client: &ClientTls, server: &Arc<ServerConfig>) -> Option<TlsFailure> {
    let broken = connect(&client.config(), server, "a.example").err()?;
    Some(classify(&broken.client.unwrap()))
}

const NOT_PINNED: Option<TlsFailure> = Some(TlsFailure::Verify(VerifyFailure::KeyNotPinned));

#[test]
fn a_target_with_another_key_than_the_pinned_ones_is_refused() {
    let (dir, ca) = (Dir::new(), Ca::new("root"));
    let ca_file = dir.write("ca.pem", ca.pem());
    let [own, next] = [(); 2].map(|()| ca.issue(&Leaf::new(&["a.example"])));
    let strange = Ca::new("strange").issue(&Leaf::new(&["a.example"]));
    let own_server = server(vec![dir.put("own", &own)]).config();
    let pinned = |pins: &[&Issued]| {
        load_client(ClientTlsSettings {
            pins: pins.iter().map(|issued| pin(issued)).collect(),
            ..client_settings(&ca_file)
        })
    };

    assert_eq!(failure(&pinned(&[&own]), &own_server), None);
    assert_eq!(failure(&pinned(&[&next, &own]), &own_server), None);
    assert_eq!(failure(&pinned(&[&next]), &own_server), NOT_PINNED);

    // A pin does not replace the verification of the chain.
    let strange_server = server(vec![dir.put("strange", &strange)]).config();
    let unknown = TlsFailure::Verify(VerifyFailure::UnknownIssuer);
    assert_eq!(
        failure(&pinned(&[&strange]), &strange_server),
        Some(unknown)
    );
}

#[test]
fn a_pin_replaces_verification_only_if_that_is_off() {
    let dir = Dir::new();
    let old = Leaf {
        years: (2001, 2002),
        ..Leaf::new(&["b.example"])
    };
    let (own, other) = (Ca::new("c").issue(&old), Ca::new("c").issue(&old));
    let server = server(vec![dir.put("own", &own)]).config();
    let unverified = |pins: Vec<[u8; 32]>| {
        let settings = ClientTlsSettings {
            ca_file: None,
            verify: false,
            pins,
            ..client_settings(&dir.path("none"))
        };
        ClientTls::load(settings, &PlatformRoots::new()).unwrap()
    };

    assert_eq!(failure(&unverified(vec![pin(&own)]), &server), None);
    assert_eq!(failure(&unverified(vec![pin(&other)]), &server), NOT_PINNED);
    // Without verification and pins, no server is admitted.
    assert_eq!(failure(&unverified(Vec::new()), &server), NOT_PINNED);
}

#[test]
fn a_pinned_certificate_without_its_key_is_refused() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let [own, thief] = [(); 2].map(|()| site.ca.issue(&Leaf::new(&["a.example"])));
    let provider = Arc::clone(site.server.config().crypto_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(thief.key.serialize_der()));
    let key = provider.key_provider.load_private_key(key).unwrap();
    let shown = CertifiedKey::new(vec![CertificateDer::from(own.der.clone())], key);
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
    let client = load_client(ClientTlsSettings {
        ca_file: None,
        verify: false,
        pins: vec![pin(&own)],
        ..client_settings(&site.dir.path("ca.pem"))
    });

    let bad = TlsFailure::Verify(VerifyFailure::BadSignature);
    assert_eq!(failure(&client, &Arc::new(server)), Some(bad));
}

#[test]
fn other_pins_make_other_sessions() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let settings = client_settings(&site.dir.path("ca.pem"));
    let pinned = ClientTlsSettings {
        pins: vec![[0; 32]],
        ..settings.clone()
    };
    let client = load_client(settings.clone());
    assert_eq!(failure(&client, &site.server.config()), None);

    // A reload keeps sessions only if the settings are equal.
    assert_ne!(settings, pinned);
    assert_eq!(
        failure(&load_client(pinned), &site.server.config()),
        NOT_PINNED
    );
}
