//! Interface to the server that answers challenges.

use crate::error::AcmeError;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Server that answers challenges of an authority.
pub trait Responder: Send + Sync {
    /// Answers `GET /.well-known/acme-challenge/TOKEN` with `key_authorization`. [RFC 8555 §8.3]
    fn publish_token(&self, token: &str, key_authorization: &str);

    /// Stops answering with the token.
    fn withdraw_token(&self, token: &str);

    /// Presents `certificate` in handshakes for `host` with the protocol `acme-tls/1`. [RFC 8737
    /// §3]
    ///
    /// # Errors
    /// The key is unusable.
    fn publish_certificate(
        &self,
        host: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), AcmeError>;

    /// Stops presenting the certificate.
    fn withdraw_certificate(&self, host: &str);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Publishes nothing.
    pub(crate) struct NoAnswers;

    impl Responder for NoAnswers {
        fn publish_token(&self, _: &str, _: &str) {}

        fn withdraw_token(&self, _: &str) {}

        fn publish_certificate(
            &self,
            _: &str,
            _: CertificateDer<'static>,
            _: PrivateKeyDer<'static>,
        ) -> Result<(), AcmeError> {
            Ok(())
        }

        fn withdraw_certificate(&self, _: &str) {}
    }
}
