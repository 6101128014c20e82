//! TLS configuration for test requests to a listener of this machine.

use crate::certificate::leaf::Leaf;
use crate::error::TlsError;
use crate::provider;
use crate::settings::{Alpn, TlsVersion};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: i64 = 24 * 3_600;

/// Verifies names and validity of a leaf, but not its chain, because the roots of the clients are
/// unknown.
#[derive(Debug)]
struct LeafVerifier(Arc<CryptoProvider>);

/// Configuration for connections to a listener of this machine. Verifies names and validity of the
/// certificate, but not its chain.
///
/// # Errors
/// [`TlsError`] if the cryptography provider refuses the TLS versions.
pub fn own_listener_config(alpn: Alpn) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = provider::intermediate();
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(TlsVersion::V1_2.and_newer())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(LeafVerifier(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.offered().to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    Ok(Arc::new(config))
}

/// Whole days from `now` until the certificate expires, negative afterwards; `None` if it is not
/// X.509.
#[must_use]
pub fn days_left(leaf: &CertificateDer<'_>, now: SystemTime) -> Option<i64> {
    let not_after = Leaf::parse(leaf)?.not_after;
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let left = not_after
        .duration_since(now)
        .map_or_else(|late| -seconds(late.duration()), seconds);
    Some(left.div_euclid(SECONDS_PER_DAY))
}

impl ServerCertVerifier for LeafVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        let leaf = Leaf::parse(end_entity).ok_or(CertificateError::BadEncoding)?;
        let now = UNIX_EPOCH + Duration::from_secs(now.as_secs());
        if now < leaf.not_before {
            return Err(CertificateError::NotValidYet.into());
        }
        if leaf.not_after < now {
            return Err(CertificateError::Expired.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Self(provider) = self;
        let algorithms = &provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Self(provider) = self;
        let algorithms = &provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let Self(provider) = self;
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
