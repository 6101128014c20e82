//! Data of a certificate for metrics and the admin interface.

use crate::certificate::Certificate;
use crate::certificate::leaf::Leaf;
use crate::roots::pem;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Data of one certificate for metrics and the admin interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// Its hosts, in lower case, names before addresses.
    pub names: Vec<String>,
    /// Begin of its validity.
    pub not_before: SystemTime,
    /// End of its validity.
    pub not_after: SystemTime,
    /// Path of the file.
    pub file: PathBuf,
    /// SHA-256 of its DER.
    pub fingerprint: [u8; 32],
}

/// Hosts and validity of the first certificate of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainInfo {
    names: Vec<String>,
    not_before: SystemTime,
    not_after: SystemTime,
}

impl ChainInfo {
    /// Reads a chain in PEM; `None` without an X.509 certificate.
    #[must_use]
    pub fn parse(chain_pem: &[u8]) -> Option<Self> {
        let first = CertificateDer::pem_slice_iter(pem::text(chain_pem))
            .next()?
            .ok()?;
        let leaf = Leaf::parse(&first)?;
        Some(Self {
            names: names(&leaf),
            not_before: leaf.not_before,
            not_after: leaf.not_after,
        })
    }

    /// Returns true if it is a renewal of `old`: for all of its hosts, valid for as long or longer,
    /// without a gap.
    #[must_use]
    pub fn renews(&self, old: &Self) -> bool {
        let has_names = old.names.iter().all(|name| self.names.contains(name));
        has_names && old.not_after <= self.not_after && self.not_before <= old.not_after
    }
}

/// The hosts of a leaf, names before addresses.
fn names(leaf: &Leaf) -> Vec<String> {
    let dns = leaf.names.dns.iter().map(ToString::to_string);
    let ips = leaf.names.ips.iter().map(ToString::to_string);
    dns.chain(ips).collect()
}

impl From<&Certificate> for CertificateInfo {
    fn from(certificate: &Certificate) -> Self {
        let leaf = certificate.leaf();
        Self {
            names: names(leaf),
            not_before: leaf.not_before,
            not_after: leaf.not_after,
            file: certificate.file().clone(),
            fingerprint: leaf.fingerprint,
        }
    }
}

impl CertificateInfo {
    /// Seconds until it expires at `now`; negative after that.
    pub fn seconds_left(&self, now: SystemTime) -> i64 {
        let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        self.not_after
            .duration_since(now)
            .map_or_else(|late| -seconds(late.duration()), seconds)
    }
}
