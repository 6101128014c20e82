//! Bundles to activate: verified archives, unpacked files, certificates.

use control_bundle::{
    BundleError, Contents, Files, Version, certificates, digest, key_file, unpack,
};
use control_wire::{CertificateId, Order};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Versions of this node's program, which a bundle's requirements may not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnVersions {
    /// Version of the configuration language.
    pub schema: u32,
    /// Version of the proxy.
    pub proxy: Version,
}

/// A bundle with the verified archive that its order names.
#[derive(Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Order to run the bundle.
    pub order: Order,
    /// Compressed archive; its digest is the order's.
    pub archive: Arc<[u8]>,
    /// Files by name.
    pub files: Files,
}

/// Unpacked files of a bundle, with the digests of their signed contents.
#[derive(Clone, Debug)]
pub struct UnpackedFiles {
    folder: PathBuf,
    digests: BTreeMap<PathBuf, String>,
}

/// Certificates with their private keys, held in memory only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Certificates(pub BTreeMap<CertificateId, HeldCertificate>);

/// A chain and its private key, which one response of the control plane delivers together.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldCertificate {
    /// Chain in PEM, leaf first; replaces the one in the bundle.
    pub chain_pem: String,
    /// Private key of the leaf in PEM.
    pub key_pem: Zeroizing<String>,
}

/// Certificates of a fetch that may be interrupted, as by a rate limit: the next attempt continues
/// behind them.
#[derive(Debug, Default)]
pub(crate) struct PartialFetch {
    /// Number of renewals in the project at that time.
    pub(crate) renewals: u64,
    pub(crate) certificates: Certificates,
}

impl Bundle {
    /// Verifies and unpacks an archive, which may be hostile.
    ///
    /// # Errors
    ///
    /// [`BundleError`] if the archive does not match `order`, is damaged, or needs a newer proxy.
    pub fn open(
        order: Order,
        archive: Arc<[u8]>,
        versions: OwnVersions,
    ) -> Result<Self, BundleError> {
        if digest(&archive) != order.digest {
            return Err(BundleError::Digest);
        }
        let Contents {
            manifest,
            sbom: _,
            files,
        } = unpack(&archive)?;
        manifest.fits(versions.schema, versions.proxy)?;
        Ok(Self {
            order,
            archive,
            files,
        })
    }

    /// The bundle's files, unpacked in `folder`.
    pub fn unpacked_in(&self, folder: &Path) -> UnpackedFiles {
        let files = self.files.iter();
        UnpackedFiles {
            digests: files
                .map(|(name, bytes)| (folder.join(name), digest(bytes)))
                .collect(),
            folder: folder.to_owned(),
        }
    }

    /// Identifiers of the certificates that are delivered separately.
    pub fn certificates(&self) -> Vec<CertificateId> {
        certificates(&self.files)
    }
}

impl UnpackedFiles {
    /// Compares the folder with the signed files. Additional files are a fault as well, because an
    /// `include` with a pattern would match them.
    ///
    /// # Errors
    ///
    /// A sentence that names a file that differs.
    pub fn check(&self) -> Result<(), String> {
        let Self { folder, digests } = self;
        let is_changed = |(file, expected): &(&PathBuf, &String)| {
            fs::read(file).map_or(true, |bytes| digest(&bytes) != **expected)
        };
        let changed = digests.iter().find(is_changed);
        let added = || files_below(folder).find(|file| !digests.contains_key(file));
        match changed.map(|(file, _)| file.clone()).or_else(added) {
            None => Ok(()),
            Some(file) => Err(format!("`{}` is not as it was signed", file.display())),
        }
    }
}

/// All files below a folder, recursively. A bundle's names have few levels.
fn files_below(folder: &Path) -> Box<dyn Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    Box::new(entries.flat_map(|entry| {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&path),
            Ok(_) | Err(_) => Box::new(std::iter::once(path)),
        }
    }))
}

impl Certificates {
    /// Each certificate with the file name of its private key in the bundle.
    pub fn by_key_file(&self) -> impl Iterator<Item = (PathBuf, &HeldCertificate)> {
        let held = self.0.iter();
        held.map(|(id, held)| (key_file(*id).into(), held))
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bundle({:?})", self.order)
    }
}

impl fmt::Debug for HeldCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldCertificate(…)")
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
