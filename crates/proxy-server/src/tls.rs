//! Certificates, keys and roots of the active configuration, kept across reloads and renewed.

mod acme;
mod faults;
mod loaded;
mod loader;
mod manager;
mod renewal;
mod settings;
mod watching;

use crate::config::delivery::PrivateKeys;
use loader::Loader;
use proxy_config::Diagnostic;
use proxy_model::Model;
use proxy_plan::{CertificateFailure, ServedCertificate, failed_certificate_tests};
use std::time::SystemTime;

pub(crate) use acme::{AcmeTasks, set_damaged_aside};
pub(crate) use loaded::{LoadedTls, LoadedUpstreamTls};
pub(crate) use manager::{CertificateLoad, CertificateManager};
pub(crate) use watching::CertificateChanges;

const DAY_SECS: i64 = 24 * 60 * 60;

/// The results of a check of files.
pub(crate) struct Checked {
    pub(crate) warnings: Vec<Diagnostic>,
    /// Expectations of certificates that fail.
    pub(crate) failed: Vec<CertificateFailure>,
}

/// Loads the files of `model` for a check only.
///
/// # Errors
/// Unusable files.
pub(crate) fn check(
    model: &Model,
    keys: &PrivateKeys,
    now: SystemTime,
) -> Result<Checked, Vec<Diagnostic>> {
    let loaded_tls = Loader::new().load(model, keys, now)?;
    let failed = failed_certificate_tests(model, |listener, host| {
        let server = loaded_tls.listeners.get(listener)?.as_ref()?;
        let shown = server.certificate_for(host)?;
        Some(ServedCertificate {
            days_left: shown.seconds_left(now).div_euclid(DAY_SECS),
            names: shown.names,
        })
    });
    Ok(Checked {
        warnings: faults::warnings(model, &loaded_tls, now),
        failed,
    })
}
