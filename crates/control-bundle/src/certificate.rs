//! The names of certificates' files in a bundle.

use crate::contents::Files;
use control_wire::CertificateId;
use std::collections::BTreeSet;

const FOLDER: &str = "certificates/";
const CHAIN: &str = ".pem";
const KEY: &str = ".key";

/// The name of a certificate's chain in a bundle.
pub fn chain_file(id: CertificateId) -> String {
    format!("{FOLDER}{id}{CHAIN}")
}

/// The file name of a certificate's private key in a configuration. No bundle contains such a file:
/// keys are delivered separately.
pub fn key_file(id: CertificateId) -> String {
    format!("{FOLDER}{id}{KEY}")
}

/// The certificates that have their chain among `files`, each once and in order.
pub fn certificates(files: &Files) -> Vec<CertificateId> {
    let id = |name: &String| -> Option<CertificateId> {
        let id = name.strip_prefix(FOLDER)?.strip_suffix(CHAIN)?;
        id.parse().ok()
    };
    let ids: BTreeSet<CertificateId> = files.keys().filter_map(id).collect();
    ids.into_iter().collect()
}
