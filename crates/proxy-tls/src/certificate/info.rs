//! Data of a certificate for metrics and the admin interface.

use crate::certificate::Certificate;
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

impl From<&Certificate> for CertificateInfo {
    fn from(certificate: &Certificate) -> Self {
        let leaf = certificate.leaf();
        let dns = leaf.names.dns.iter().map(ToString::to_string);
        let ips = leaf.names.ips.iter().map(ToString::to_string);
        Self {
            names: dns.chain(ips).collect(),
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
