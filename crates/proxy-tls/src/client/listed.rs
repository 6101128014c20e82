//! Verification of server certificates that are listed in `ca-file` themselves.

use crate::certificate::leaf::{self, Leaf};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Verifies a server certificate like `webpki`, but also accepts one that `ca-file` lists byte for
/// byte, if its names and validity match. `webpki` alone refuses a server certificate that is a
/// self-signed certificate authority, the only kind that `openssl req -x509` creates; OpenSSL
/// accepts it if it is listed.
#[derive(Debug)]
pub(crate) struct ListedVerifier {
    pub(crate) webpki: Arc<WebPkiServerVerifier>,
    pub(crate) listed: Vec<CertificateDer<'static>>,
}

/// Error of a self-signed certificate that is not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Untrusted {
    #[error("it is self-signed, and `ca-file` does not name it")]
    SelfSigned,
    #[error("it is a certificate authority's, not a server's")]
    Authority,
}

impl ListedVerifier {
    /// Verifies a certificate that has no chain to a root, or lacks the server usage.
    fn judge(
        &self,
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: SystemTime,
        error: Error,
    ) -> Result<ServerCertVerified, Error> {
        if !self.listed.iter().any(|listed| listed == certificate) {
            return Err(readable(certificate, error));
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        let leaf = Leaf::parse(certificate).ok_or(CertificateError::BadEncoding)?;
        if now < leaf.not_before {
            return Err(CertificateError::NotValidYet.into());
        }
        if leaf.not_after < now {
            return Err(CertificateError::Expired.into());
        }
        Ok(ServerCertVerified::assertion())
    }
}

/// Replaces `error` by a readable one if rustls has no text for it.
fn readable(certificate: &CertificateDer<'_>, error: Error) -> Error {
    let untrusted = if leaf::is_self_signed(certificate) {
        Untrusted::SelfSigned
    } else if matches!(error, Error::InvalidCertificate(CertificateError::Other(_)))
        && leaf::is_authority(certificate)
    {
        Untrusted::Authority
    } else {
        return error;
    };
    CertificateError::Other(OtherError(Arc::new(untrusted))).into()
}

impl ServerCertVerifier for ListedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(
                error @ Error::InvalidCertificate(
                    CertificateError::Other(_) | CertificateError::UnknownIssuer,
                ),
            ) => {
                let now = UNIX_EPOCH + Duration::from_secs(now.as_secs());
                self.judge(end_entity, server_name, now, error)
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}
