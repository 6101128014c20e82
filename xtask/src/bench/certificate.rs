//! The certificate of all servers, created for each run.

use crate::task_error::TaskError;
use std::fs;
use std::path::Path;

/// Name of the certificate's file.
pub(super) const CERTIFICATE: &str = "certificate.pem";
/// Name of the private key's file.
pub(super) const KEY: &str = "key.pem";
/// Name of a file with both, as `HAProxy` requires.
pub(super) const BOTH: &str = "both.pem";

/// Creates a P-256 key and a certificate for it, in a folder.
pub(super) fn make(folder: &Path) -> Result<(), TaskError> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let made =
        made.map_err(|cause| TaskError::Failed(format!("no certificate could be made: {cause}")))?;
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let both = format!("{certificate}{key}");
    for (name, text) in [(CERTIFICATE, certificate), (KEY, key), (BOTH, both)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|source| TaskError::File { path, source })?;
    }
    Ok(())
}
