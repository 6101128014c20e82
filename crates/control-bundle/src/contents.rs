//! Files as a bundle and back.

use crate::archive::{self, Entries};
use crate::bounds::MAX_FILES;
use crate::error::BundleError;
use crate::file_name::check_name;
use crate::manifest::{Manifest, Requirements};
use crate::sbom;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The file that a configuration begins with.
pub const ENTRY_FILE: &str = "proxy.kdl";
const FOLDER: &str = "files/";
const MANIFEST: &str = "manifest.json";
const SBOM: &str = "sbom.cdx.json";
/// End of the first line of every kind of private key. [RFC 7468 §10]
const PRIVATE_KEY: &[u8] = b"PRIVATE KEY-----";

/// Files by name; `/` separates folders.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Contents of a bundle, verified against its manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// The manifest.
    pub manifest: Manifest,
    /// The bill of materials.
    pub sbom: Value,
    /// The configuration, with the files it refers to.
    pub files: Files,
}

/// The archive of `files`: the same bytes for the same files and requirements.
///
/// # Errors
///
/// [`BundleError`] for files beyond the bounds, for a bad name, or without [`ENTRY_FILE`].
pub fn pack(files: &Files, requirements: &Requirements) -> Result<Vec<u8>, BundleError> {
    if !files.contains_key(ENTRY_FILE) {
        return Err(BundleError::NoEntryFile);
    }
    if files.len() > MAX_FILES {
        return Err(BundleError::TooManyFiles);
    }
    let mut entries = Entries::new();
    for (name, bytes) in files {
        check_name(name)?;
        if holds_private_key(bytes) {
            return Err(BundleError::PrivateKey(name.clone()));
        }
        entries.insert(format!("{FOLDER}{name}"), Cow::Borrowed(bytes));
    }
    let sbom = sbom::document(files, requirements);
    let mut sbom = serde_json::to_vec_pretty(&sbom).map_err(|_| BundleError::Damaged)?;
    sbom.push(b'\n');
    entries.insert(SBOM.to_owned(), Cow::Owned(sbom));
    let manifest = Manifest::new(&entries, requirements);
    entries.insert(MANIFEST.to_owned(), Cow::Owned(manifest.to_bytes()?));
    archive::write(&entries)
}

/// Opens an archive that may be hostile; in memory, its files alone: [`MAX_UNPACKED_BYTES`](crate::MAX_UNPACKED_BYTES).
///
/// # Errors
///
/// [`BundleError`] for the first fault.
pub fn unpack(archive: &[u8]) -> Result<Contents, BundleError> {
    let mut entries = archive::read(archive)?;
    let manifest = entries.remove(MANIFEST).ok_or(BundleError::BadManifest)?;
    let manifest = Manifest::read(&manifest)?;
    manifest.check(&entries)?;
    let sbom = entries.remove(SBOM);
    let sbom = sbom.ok_or_else(|| BundleError::Missing(SBOM.to_owned()))?;
    let sbom = serde_json::from_slice(&sbom).map_err(|_| BundleError::Damaged)?;
    let mut files = Files::new();
    for (name, bytes) in entries {
        let Some(name) = name.strip_prefix(FOLDER) else {
            return Err(BundleError::Unlisted(name));
        };
        files.insert(name.to_owned(), bytes);
    }
    if !files.contains_key(ENTRY_FILE) {
        return Err(BundleError::NoEntryFile);
    }
    Ok(Contents {
        manifest,
        sbom,
        files,
    })
}

fn holds_private_key(bytes: &[u8]) -> bool {
    let begin = PRIVATE_KEY.first().copied().unwrap_or_default();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == begin) {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(PRIVATE_KEY) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}
