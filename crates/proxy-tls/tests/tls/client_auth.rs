//! Client certificates are verified after the handshake, which they cannot fail.

use crate::support::{
    Ca, Dir, Issued, Leaf, Pair, RecordingClient, client_settings, connect, load_client,
    load_server, now, server_settings,
};
use proxy_tls::{
    CertificateSource, ClientAuth, ClientAuthVerdict, ClientTlsSettings, ServerTls,
    ServerTlsSettings, TlsVersion, VerifyFailure,
};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, Error, HandshakeKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

struct Fixture {
    dir: Dir,
    ca: Ca,
    ca_file: PathBuf,
    source: CertificateSource,
}

impl Fixture {
    fn new() -> Self {
        let dir = Dir::new();
        let ca = Ca::new("root");
        Self {
            ca_file: dir.write("ca.pem", ca.pem()),
            source: dir.put("server", &ca.issue(&Leaf::new(&["a.example"]))),
            ca,
            dir,
        }
    }

    fn required(&self) -> Arc<ServerTls> {
        let ca_file = self.ca_file.clone();
        self.with(ClientAuth::Required { ca_file })
    }

    fn optional(&self) -> Arc<ServerTls> {
        let ca_file = self.ca_file.clone();
        self.with(ClientAuth::Optional { ca_file })
    }

    fn with(&self, client_auth: ClientAuth) -> Arc<ServerTls> {
        load_server(ServerTlsSettings {
            client_auth,
            ..server_settings(vec![self.source.clone()])
        })
    }

    /// Connects with this certificate, or without one.
    fn connect_with(
        &self,
        server: &ServerTls,
        shown: Option<&Issued>,
        version: TlsVersion,
    ) -> Pair {
        let client_certificate = shown.map(|issued| self.dir.put("client", issued));
        let client = load_client(ClientTlsSettings {
            client_certificate,
            min_version: version,
            ..client_settings(&self.ca_file)
        });
        connect(&client.config(), &server.config(), "a.example").unwrap()
    }

    fn verdict(&self, server: &ServerTls, shown: Option<&Issued>) -> ClientAuthVerdict {
        let mut pair = self.connect_with(server, shown, TlsVersion::V1_3);
        pair.exchange_data();
        server.verdict(&pair.server, now())
    }
}

#[test]
fn no_client_certificate_is_requested_by_default() {
    let fixture = Fixture::new();
    let server = fixture.with(ClientAuth::None);
    let shown = fixture.ca.issue(&Leaf::client());

    let verdict = fixture.verdict(&server, Some(&shown));
    assert_eq!(verdict, ClientAuthVerdict::NotAsked);
    assert!(!verdict.is_refusal());
}

#[test]
fn a_good_certificate_is_known_by_its_subject() {
    let fixture = Fixture::new();
    let shown = fixture.ca.issue(&Leaf::client());

    for server in [fixture.required(), fixture.optional()] {
        let verdict = fixture.verdict(&server, Some(&shown));
        assert!(!verdict.is_refusal());
        let ClientAuthVerdict::Verified {
            subject,
            expires,
            ref sha256,
        } = verdict.clone()
        else {
            panic!("{verdict}");
        };
        assert_eq!(subject, "CN=robot");
        assert_eq!(sha256.len(), 64);
        assert!(!verdict.has_expired(expires));
        assert!(verdict.has_expired(expires + Duration::from_secs(1)));
    }
}

#[test]
fn a_missing_certificate_is_refused_only_where_one_is_required() {
    let fixture = Fixture::new();
    for (server, required) in [(fixture.required(), true), (fixture.optional(), false)] {
        let verdict = fixture.verdict(&server, None);
        assert_eq!(verdict, ClientAuthVerdict::Missing { required });
        assert_eq!(verdict.is_refusal(), required);
    }
}

#[test]
fn a_bad_certificate_is_refused_with_its_reason() {
    let fixture = Fixture::new();
    let cases = [
        (
            Ca::new("other").issue(&Leaf::client()),
            VerifyFailure::UnknownIssuer,
        ),
        // Another authority with the name of the trusted one.
        (
            Ca::new("root").issue(&Leaf::client()),
            VerifyFailure::BadSignature,
        ),
        (
            fixture.ca.issue(&Leaf {
                years: (2001, 2021),
                ..Leaf::client()
            }),
            VerifyFailure::Expired,
        ),
        (
            fixture.ca.issue(&Leaf {
                years: (2090, 2091),
                ..Leaf::client()
            }),
            VerifyFailure::NotYetValid,
        ),
        (
            fixture.ca.issue(&Leaf::new(&["b.example"])),
            VerifyFailure::WrongPurpose,
        ),
    ];
    for (shown, reason) in &cases {
        for server in [fixture.required(), fixture.optional()] {
            let verdict = fixture.verdict(&server, Some(shown));
            assert_eq!(verdict, ClientAuthVerdict::Rejected { reason: *reason });
            assert!(verdict.is_refusal());
            assert_eq!(verdict.to_string(), format!("client certificate {reason}"));
        }
    }
}

#[test]
fn a_client_that_lacks_the_key_does_not_get_through() {
    let fixture = Fixture::new();
    let (stolen, own) = (
        fixture.ca.issue(&Leaf::client()),
        fixture.ca.issue(&Leaf::client()),
    );
    let key = PrivateKeyDer::try_from(own.key.serialize_der()).unwrap();
    let key = default_provider()
        .key_provider
        .load_private_key(key)
        .unwrap();
    let stolen = CertifiedKey::new(vec![CertificateDer::from(stolen.der)], key);
    let stolen = Arc::new(SingleCertAndKey::from(stolen));

    for version in [&TLS12, &TLS13] {
        let mut client = RecordingClient::with_all_schemes().config(&[version]);
        client.client_auth_cert_resolver = Arc::clone(&stolen) as _;
        let broken =
            connect(&Arc::new(client), &fixture.optional().config(), "a.example").unwrap_err();
        assert!(
            matches!(broken.server, Some(Error::InvalidCertificate(_))),
            "{broken:?}"
        );
        let alert = AlertDescription::DecryptError;
        assert_eq!(broken.client, Some(Error::AlertReceived(alert)));
    }
}

#[test]
fn a_tls_1_2_client_gets_the_same_verdict() {
    let fixture = Fixture::new();
    let shown = fixture
        .dir
        .put("client", &fixture.ca.issue(&Leaf::client()));
    let client = load_client(ClientTlsSettings {
        client_certificate: Some(shown),
        ..client_settings(&fixture.ca_file)
    });
    let identity = Arc::clone(&client.config().client_auth_cert_resolver);

    for (presents, refused) in [(true, false), (false, true)] {
        let server = fixture.required();
        let mut config = RecordingClient::with_all_schemes().config(&[&TLS12]);
        if presents {
            config.client_auth_cert_resolver = Arc::clone(&identity);
        }
        let pair = connect(&Arc::new(config), &server.config(), "a.example").unwrap();
        let verdict = server.verdict(&pair.server, now());
        assert_eq!(verdict.is_refusal(), refused, "{verdict:?}");
    }
}

#[test]
fn a_client_shows_its_certificate_on_every_connection() {
    let fixture = Fixture::new();
    let server = fixture.required();
    let client = load_client(client_settings(&fixture.ca_file)).config();

    for _ in 0..2 {
        let pair = connect(&client, &server.config(), "a.example").unwrap();
        assert_eq!(pair.server.handshake_kind(), Some(HandshakeKind::Full));
    }
}

#[test]
fn the_time_of_the_verdict_decides_not_the_time_of_the_start() {
    let fixture = Fixture::new();
    let server = fixture.required();
    let shown = fixture.ca.issue(&Leaf {
        years: (2000, 2050),
        ..Leaf::client()
    });
    let pair = fixture.connect_with(&server, Some(&shown), TlsVersion::V1_3);

    let in_fifty_years = now() + Duration::from_hours(50 * 365 * 24);
    assert!(!server.verdict(&pair.server, now()).is_refusal());
    assert_eq!(
        server.verdict(&pair.server, in_fifty_years),
        ClientAuthVerdict::Rejected {
            reason: VerifyFailure::Expired
        }
    );
}
