//! Certificates that ACME has not issued yet, and validations of hosts by authorities.

use crate::support::{Ca, Dir, Leaf, RecordingClient, connect, load_server, now, server_settings};
use proxy_tls::{CHALLENGE_PROTOCOL, CertificateSource, ChallengeCertificates, Change, Watcher};
use rustls::ClientConfig;
use rustls::version::TLS13;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;

/// Creates a client that trusts every server and offers these protocols.
fn offering(protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut client = RecordingClient::with_all_schemes().config(&[&TLS13]);
    client.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Arc::new(client)
}

#[test]
fn a_certificate_that_is_still_to_be_obtained_is_not_replaced_by_another() {
    let (dir, ca) = (Dir::new(), Ca::new("root"));
    let other = dir.put("other", &ca.issue(&Leaf::new(&["*.example", "b.example"])));
    let both = dir.path("obtained.pem");
    let obtained = CertificateSource {
        cert_file: both.clone(),
        key_file: both.clone(),
        held: None,
        is_obtained: true,
        ocsp_file: None,
        server_names: vec!["a.example".to_owned(), "*.c.example".to_owned()],
    };
    let server = load_server(server_settings(vec![obtained, other]));
    let mut watcher = Watcher::new();
    watcher.watch_server(&server);
    let shown = |host| {
        let pair = connect(&offering(&[b"http/1.1"]), &server.config(), host);
        pair.ok().map(|pair| pair.leaf().to_vec())
    };

    assert!(shown("b.example").is_some() && shown("d.example").is_some());
    assert!(shown("www.c.example").is_none());
    // Meanwhile, an existing wildcard certificate is served.
    assert_eq!(shown("a.example"), shown("b.example"));
    assert_eq!(server.certificates().len(), 1);
    assert_eq!(watcher.poll(now()), []);
    assert_eq!(watcher.faults().count(), 0);

    let issued = ca.issue(&Leaf::new(&["a.example", "*.c.example"]));
    dir.write("obtained.pem", issued.key.serialize_pem() + &issued.cert);
    assert_eq!(watcher.poll(now()), [Change::Swapped { file: both }]);
    assert!(shown("www.c.example").is_some());
    assert_ne!(shown("a.example"), shown("b.example"));
    assert_eq!(server.certificates().len(), 2);
}

#[test]
fn an_authority_alone_is_shown_the_certificate_of_its_validation() {
    let (dir, ca) = (Dir::new(), Ca::new("root"));
    let site = dir.put("site", &ca.issue(&Leaf::new(&["a.example"])));
    let challenges = ChallengeCertificates::default();
    let mut settings = server_settings(vec![site]);
    settings.challenges = Some(challenges.clone());
    let server = load_server(settings);
    let validation = ca.issue(&Leaf::new(&["a.example"]));
    let key = PrivateKeyDer::try_from(validation.key.serialize_der()).unwrap();
    let shown = |protocols: &[&[u8]], host| {
        let pair = connect(&offering(protocols), &server.config(), host);
        pair.ok().map(|pair| pair.leaf().to_vec())
    };

    assert!(shown(&[CHALLENGE_PROTOCOL], "a.example").is_none());
    let certificate = CertificateDer::from(validation.der);
    challenges
        .publish("a.example", certificate.clone(), key)
        .unwrap();
    let expected = Some(certificate.to_vec());
    assert_eq!(shown(&[CHALLENGE_PROTOCOL], "a.example"), expected);
    assert!(shown(&[CHALLENGE_PROTOCOL], "b.example").is_none());
    let usual: [&[&[u8]]; 3] = [&[b"h2", CHALLENGE_PROTOCOL], &[b"http/1.1"], &[]];
    for protocols in usual {
        let leaf = shown(protocols, "a.example");
        assert!(leaf.is_some() && leaf != expected, "{protocols:?}");
    }
    challenges.withdraw("a.example");
    assert!(shown(&[CHALLENGE_PROTOCOL], "a.example").is_none());
}
