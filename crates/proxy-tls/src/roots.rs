//! Trusted root certificates: the platform's, or a file's.

pub(crate) mod pem;

use crate::error::TlsError;
use crate::file::Contents;
use rustls::RootCertStore;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The platform's root certificates, read from the disk at the first use and then shared.
///
/// A single instance serves the whole process. `SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured.
#[derive(Debug, Default)]
pub struct PlatformRoots {
    loaded: OnceLock<Arc<RootCertStore>>,
}

impl PlatformRoots {
    /// Creates an instance that has not read the roots yet.
    pub const fn new() -> Self {
        Self {
            loaded: OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Result<Arc<RootCertStore>, TlsError> {
        let roots = self.loaded.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            // Platforms include a few old roots that cannot be parsed; these are skipped.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Arc::new(roots)
        });
        if roots.is_empty() {
            return Err(TlsError::NoPlatformRoots);
        }
        Ok(Arc::clone(roots))
    }
}

/// Parses the certificates of a file as roots; all of them must be usable.
pub(crate) fn from_pem(path: &Path, contents: &Contents) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for (position, certificate) in (1..).zip(pem::certificates(path, contents)?) {
        roots
            .add(certificate)
            .map_err(|_| TlsError::BadCertificate {
                file: path.to_owned(),
                position,
            })?;
    }
    Ok(Arc::new(roots))
}
