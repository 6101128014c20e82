//! Client certificates, requested in the handshake and verified after it.
//!
//! Browsers do not explain a failed handshake. Therefore the handshake succeeds for every client
//! that proves possession of its certificate's key, or sends an unreadable certificate; requests
//! with a missing or rejected certificate are answered 495.

use crate::certificate::leaf;
use crate::classify::VerifyFailure;
use crate::error::TlsError;
use crate::file::{Contents, Digest, digest, fingerprint};
use crate::settings::ClientAuth;
use crate::{provider, roots};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Result of verifying the client certificate. Applies to the whole connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuthVerdict {
    /// The listener requests no client certificate.
    NotAsked,
    /// The client sent no certificate.
    Missing {
        /// Whether the listener requires a certificate.
        required: bool,
    },
    /// The certificate is valid, and its chain leads to a trusted root.
    Verified {
        /// Subject in the format of RFC 4514, for logs and header fields; empty if it is longer
        /// than 2 048 bytes.
        subject: String,
        /// Expiry of the certificate, since 1970.
        expires: Duration,
        /// SHA-256 of the certificate as DER, in hexadecimal.
        sha256: String,
    },
    /// The client sent an untrusted certificate; whether one is required does not matter.
    Rejected {
        /// Reason of the rejection.
        reason: VerifyFailure,
    },
}

impl ClientAuthVerdict {
    /// Subject and SHA-256 of a verified certificate.
    pub fn certificate(&self) -> Option<(&str, &str)> {
        match self {
            Self::Verified {
                subject, sha256, ..
            } => Some((subject, sha256)),
            Self::NotAsked | Self::Missing { .. } | Self::Rejected { .. } => None,
        }
    }

    /// Returns true if the accepted certificate has expired at `now`, in time since 1970. This can
    /// happen while the connection is open.
    pub fn has_expired(&self, now: Duration) -> bool {
        match self {
            Self::Verified { expires, .. } => *expires < now,
            Self::NotAsked | Self::Missing { .. } | Self::Rejected { .. } => false,
        }
    }

    /// Returns true if all requests of the connection must be answered 495.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::NotAsked | Self::Verified { .. } => false,
            Self::Missing { required } => *required,
            Self::Rejected { .. } => true,
        }
    }
}

impl fmt::Display for ClientAuthVerdict {
    /// Text that is safe to send to the client: contains no roots, and no subject except the
    /// client's own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("client certificate not requested"),
            Self::Missing { required: false } => f.write_str("client certificate missing"),
            Self::Missing { required: true } => f.write_str("client certificate required"),
            Self::Verified { subject, .. } => write!(f, "client certificate of {subject}"),
            Self::Rejected { reason } => write!(f, "client certificate {reason}"),
        }
    }
}

/// Root certificates for client certificates.
#[derive(Clone, Debug)]
pub(crate) struct ClientAuthority {
    verifier: Arc<dyn ClientCertVerifier>,
    required: bool,
    digest: Digest,
}

impl ClientAuthority {
    /// Reads the roots of a listener; `None` if it requests no client certificates.
    pub(crate) fn load(settings: &ClientAuth) -> Result<Option<Self>, TlsError> {
        let Some((ca_file, required)) = settings.demand() else {
            return Ok(None);
        };
        let contents = Contents::read(ca_file)?;
        let builder = WebPkiClientVerifier::builder_with_provider(
            roots::from_pem(ca_file, &contents)?,
            provider::intermediate(),
        );
        let verifier = builder.build().map_err(|error| TlsError::Refused {
            reason: error.to_string(),
        })?;
        Ok(Some(Self {
            verifier,
            required,
            digest: digest([Some(&contents)]),
        }))
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Verifier for rustls.
    pub(crate) fn lenient(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(Lenient(Arc::clone(&self.verifier)))
    }

    /// Verifies the certificate after the handshake.
    pub(crate) fn verdict(
        &self,
        chain: &[CertificateDer<'_>],
        now: SystemTime,
    ) -> ClientAuthVerdict {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return ClientAuthVerdict::Missing {
                required: self.required,
            };
        };
        let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(since_epoch);
        match self.verifier.verify_client_cert(leaf, intermediates, now) {
            Ok(_) => ClientAuthVerdict::Verified {
                subject: leaf::subject(leaf).unwrap_or_default(),
                expires: leaf::expiry(leaf).unwrap_or(Duration::MAX),
                sha256: hexadecimal(&fingerprint(leaf)),
            },
            Err(error) => ClientAuthVerdict::Rejected {
                reason: VerifyFailure::from(&error),
            },
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing into a String cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    text
}

/// Verifies only that the client possesses the key of its certificate, if the certificate can be
/// parsed.
#[derive(Debug)]
struct Lenient(Arc<dyn ClientCertVerifier>);

/// Accepts a signature that cannot be verified because the certificate cannot be parsed, such as
/// one of X.509 version 1. `ClientAuthority::verdict` rejects the certificate for the same reason,
/// with an HTTP response.
fn accept_unreadable(
    verified: Result<HandshakeSignatureValid, Error>,
    certificate: &CertificateDer<'_>,
) -> Result<HandshakeSignatureValid, Error> {
    match verified {
        Err(_) if ParsedCertificate::try_from(certificate).is_err() => {
            Ok(HandshakeSignatureValid::assertion())
        }
        verified => verified,
    }
}

impl ClientCertVerifier for Lenient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // `ClientAuthority::verdict` decides after the handshake, when an HTTP response is
        // possible.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self
            .0
            .verify_tls12_signature(message, certificate, signature);
        accept_unreadable(verified, certificate)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self
            .0
            .verify_tls13_signature(message, certificate, signature);
        accept_unreadable(verified, certificate)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
