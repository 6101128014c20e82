//! The answers of the listeners to ACME validations.

use proxy_acme::{AcmeError, Responder};
use proxy_pipeline::ChallengeTokens;
use proxy_tls::ChallengeCertificates;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Challenge responses of all listeners, over HTTP and in handshakes.
#[derive(Debug)]
pub(super) struct ListenerResponder {
    pub(super) tokens: ChallengeTokens,
    pub(super) certificates: ChallengeCertificates,
}

impl Responder for ListenerResponder {
    fn publish_token(&self, token: &str, key_authorization: &str) {
        self.tokens.publish(token, key_authorization);
    }

    fn withdraw_token(&self, token: &str) {
        self.tokens.withdraw(token);
    }

    fn publish_certificate(
        &self,
        host: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), AcmeError> {
        let published = self.certificates.publish(host, certificate, key);
        published.map_err(|error| AcmeError::Key(error.to_string()))
    }

    fn withdraw_certificate(&self, host: &str) {
        self.certificates.withdraw(host);
    }
}
