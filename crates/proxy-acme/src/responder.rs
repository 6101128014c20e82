//! The answering side of challenges.

use crate::error::AcmeError;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Answers validations by authorities.
pub trait Responder: Send + Sync {
    /// Answers `GET /.well-known/acme-challenge/TOKEN` with `key_authorization`. [RFC 8555 §8.3]
    fn publish_token(&self, token: &str, key_authorization: &str);

    /// Ends that.
    fn withdraw_token(&self, token: &str);

    /// Shows `certificate` in handshakes for `host` with the protocol `acme-tls/1`. [RFC 8737 §3]
    ///
    /// # Errors
    /// The key is unusable.
    fn publish_certificate(
        &self,
        host: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), AcmeError>;

    /// Ends that.
    fn withdraw_certificate(&self, host: &str);
}
