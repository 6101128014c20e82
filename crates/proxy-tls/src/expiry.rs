//! Expiry of certificates.

use crate::error::TlsWarning;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Remaining validity below which a certificate causes a warning.
pub const EXPIRY_WARNING: Duration = Duration::from_hours(14 * 24);

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
