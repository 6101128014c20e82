//! The manifest: contents and requirements of an archive.

use crate::archive::Entries;
use crate::error::BundleError;
use crate::version::Version;
use control_auth::sha256_hex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The number of the archive's format.
pub const FORMAT: u32 = 1;
const MAX_MANIFEST_BYTES: usize = 4 * 1024 * 1024;

/// Requirements of a configuration on the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// The version of the configuration's language.
    pub schema_version: u32,
    /// The minimum version of the proxy, `major.minor.patch`.
    pub least_proxy_version: String,
}

/// Contents and requirements of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT`]
    pub format: u32,
    /// The version of the configuration's language.
    pub schema_version: u32,
    /// The minimum version of the proxy.
    pub least_proxy_version: String,
    /// Every other entry of the archive, sorted by name.
    pub files: Vec<ListedFile>,
}

/// One entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedFile {
    /// Its name in the archive.
    pub name: String,
    /// Length in bytes, uncompressed.
    pub size_bytes: u64,
    /// Its SHA-256 in hexadecimal, as `sha256sum` prints it.
    pub sha256: String,
}

impl Manifest {
    pub(crate) fn new(entries: &Entries<'_>, requirements: &Requirements) -> Self {
        let Requirements {
            schema_version,
            least_proxy_version,
        } = requirements;
        let files = entries.iter().map(|(name, bytes)| ListedFile {
            name: name.clone(),
            size_bytes: bytes.len() as u64,
            sha256: sha256_hex(bytes),
        });
        Self {
            format: FORMAT,
            schema_version: *schema_version,
            least_proxy_version: least_proxy_version.clone(),
            files: files.collect(),
        }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, BundleError> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|_| BundleError::BadManifest)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BundleError> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(BundleError::BadManifest);
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(|_| BundleError::BadManifest)?;
        if manifest.format != FORMAT {
            return Err(BundleError::Format(manifest.format));
        }
        let sorted = manifest.files.is_sorted_by(|a, b| a.name < b.name);
        sorted.then_some(manifest).ok_or(BundleError::BadManifest)
    }

    /// Checks that `entries` are exactly the listed ones, with the same bytes.
    pub(crate) fn check(&self, entries: &BTreeMap<String, Vec<u8>>) -> Result<(), BundleError> {
        for ListedFile {
            name,
            size_bytes,
            sha256,
        } in &self.files
        {
            let bytes = entries.get(name);
            let bytes = bytes.ok_or_else(|| BundleError::Missing(name.clone()))?;
            if bytes.len() as u64 != *size_bytes || sha256_hex(bytes) != *sha256 {
                return Err(BundleError::HashMismatch(name.clone()));
            }
        }
        let listed: BTreeSet<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let unlisted = entries.keys().find(|name| !listed.contains(name.as_str()));
        unlisted.map_or(Ok(()), |name| Err(BundleError::Unlisted(name.clone())))
    }

    /// Checks that a proxy of this version, which reads this version of the language, can use it.
    ///
    /// # Errors
    ///
    /// [`BundleError::SchemaTooNew`] or [`BundleError::ProxyTooOld`].
    pub fn fits(&self, schema_version: u32, proxy: Version) -> Result<(), BundleError> {
        if self.schema_version > schema_version {
            return Err(BundleError::SchemaTooNew(self.schema_version));
        }
        let least = self.least_proxy_version.parse::<Version>();
        let fits = least.is_ok_and(|least| least <= proxy);
        let needed = || BundleError::ProxyTooOld(self.least_proxy_version.clone());
        fits.then_some(()).ok_or_else(needed)
    }
}
