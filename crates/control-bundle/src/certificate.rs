//! The names of certificates' files in a bundle.

use crate::contents::Files;
use control_wire::CertificateId;
use std::collections::BTreeSet;

const FOLDER: &str = "certificates/";
const CHAIN: &str = ".pem";
const KEY: &str = ".key";
/// Length of an identifier as text.
const UUID_LENGTH: usize = 36;

/// The name of a certificate's chain in a bundle.
pub fn chain_file(id: CertificateId) -> String {
    format!("{FOLDER}{id}{CHAIN}")
}

/// The file name of a certificate's private key in a configuration. No bundle contains such a file:
/// keys are delivered separately.
pub fn key_file(id: CertificateId) -> String {
    format!("{FOLDER}{id}{KEY}")
}

/// Identifiers that follow the folder of certificates in names or texts of files, each once and in order. They may be of
/// no certificate.
pub fn named_certificates(files: &Files) -> BTreeSet<CertificateId> {
    let in_text = |text: &str| -> Vec<CertificateId> {
        let named = text.split(FOLDER).skip(1);
        let ids = named.filter_map(|rest| rest.get(..UUID_LENGTH)?.parse().ok());
        ids.collect()
    };
    let texts = files
        .values()
        .filter_map(|bytes| str::from_utf8(bytes).ok());
    let names = files.keys().map(String::as_str);
    names.chain(texts).flat_map(in_text).collect()
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
