//! Certificates for TLS-ALPN-01, presented to authorities that validate a host. [RFC 8737]

use crate::error::TlsError;
use crate::provider;
use arc_swap::ArcSwap;
use rustls::server::ClientHello;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// ALPN protocol of TLS-ALPN-01. [RFC 8737 §6.2]
pub const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";

/// Certificates of pending validations, by host. Clones share them, and compare equal only to each
/// other.
#[derive(Clone, Default)]
pub struct ChallengeCertificates(Arc<ArcSwap<ByHost>>);

type ByHost = HashMap<Box<str>, Arc<CertifiedKey>>;

impl ChallengeCertificates {
    /// Presents `certificate` to authorities that validate `host`, which must be in lower case.
    ///
    /// # Errors
    /// The key is unusable.
    pub fn publish(
        &self,
        host: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), TlsError> {
        let key = provider::intermediate().key_provider.load_private_key(key);
        let key = key.map_err(|_| TlsError::BadKey {
            file: PathBuf::new(),
        })?;
        // Skips the checks of server certificates, which would refuse the critical ACME extension.
        let certified = Arc::new(CertifiedKey::new(vec![certificate], key));
        self.change(|by_host| {
            by_host.insert(host.into(), Arc::clone(&certified));
        });
        Ok(())
    }

    /// Stops presenting the certificate for `host`.
    pub fn withdraw(&self, host: &str) {
        self.change(|by_host| {
            by_host.remove(host);
        });
    }

    fn change(&self, change: impl Fn(&mut ByHost)) {
        self.0.rcu(|current| {
            let mut next = ByHost::clone(current);
            change(&mut next);
            next
        });
    }

    /// Certificate for an authority's handshake; `None` if its host is not being validated.
    pub(crate) fn certificate(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load().get(hello.server_name()?).cloned()
    }
}

/// Returns true if the client is a validating authority, which offers only the protocol
/// `acme-tls/1`.
pub(crate) fn is_validation(hello: &ClientHello<'_>) -> bool {
    let Some(mut offered) = hello.alpn() else {
        return false;
    };
    offered.next() == Some(CHALLENGE_PROTOCOL) && offered.next().is_none()
}

impl PartialEq for ChallengeCertificates {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ChallengeCertificates {}

impl fmt::Debug for ChallengeCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_host = self.0.load();
        f.debug_set().entries(by_host.keys()).finish()
    }
}
