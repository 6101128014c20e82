//! Certificates, keys and roots of the active configuration, kept across reloads and renewed.

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
use std::time::SystemTime;

pub(crate) use loaded::{LoadedTls, LoadedUpstreamTls};
pub(crate) use manager::{CertificateLoad, CertificateManager};
pub(crate) use watching::CertificateChanges;

/// Loads the files of `model` for a check only. Returns the warnings.
///
/// # Errors
/// Unusable files.
pub(crate) fn check(
    model: &Model,
    keys: &PrivateKeys,
    now: SystemTime,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let loaded_tls = Loader::new().load(model, keys, now)?;
    Ok(faults::warnings(model, &loaded_tls, now))
}
