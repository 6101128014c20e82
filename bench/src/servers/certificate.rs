//! Certificate of all servers, created for each run.

use std::fs;
use std::path::Path;
use xtask_kit::task_error::TaskError;

/// File name of the certificate.
pub(crate) const CERTIFICATE: &str = "certificate.pem";
/// File name of the private key.
pub(crate) const KEY: &str = "key.pem";
/// File name of certificate and key together, as `HAProxy` requires.
pub(crate) const BOTH: &str = "both.pem";

/// Creates a P-256 key and a certificate in a folder.
pub(crate) fn make(folder: &Path) -> Result<(), TaskError> {
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
