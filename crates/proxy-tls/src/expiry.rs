//! How long each certificate has to live.

use crate::certificate::Certificate;
use crate::error::TlsWarning;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Certificates with less than 14 days to live are worth a warning.
pub const EXPIRY_WARNING: Duration = Duration::from_hours(14 * 24);

/// What a metric or a page says of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// The hosts it covers, in lower case, names before addresses.
    pub names: Vec<String>,
    /// Its first moment.
    pub not_before: SystemTime,
    /// Its last moment.
    pub not_after: SystemTime,
    /// The file it was read from.
    pub file: PathBuf,
    /// SHA-256 of its DER.
    pub fingerprint: [u8; 32],
}

impl CertificateInfo {
    pub(crate) fn of(certificate: &Certificate) -> Self {
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

    /// Seconds it has to live at `now`; negative when it is expired.
    pub fn seconds_left(&self, now: SystemTime) -> i64 {
        let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        self.not_after
            .duration_since(now)
            .map_or_else(|late| -seconds(late.duration()), seconds)
    }
}

pub(crate) fn warning(file: &Path, not_after: SystemTime, now: SystemTime) -> Option<TlsWarning> {
    let file = || file.to_owned();
    match not_after.duration_since(now) {
        Err(_) => Some(TlsWarning::Expired {
            file: file(),
            not_after,
        }),
        Ok(left) => (left < EXPIRY_WARNING).then(|| TlsWarning::ExpiresSoon {
            file: file(),
            not_after,
        }),
    }
}
