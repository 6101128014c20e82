//! A bundle on its way into force.

use control_bundle::{BundleError, Contents, Files, Version, digest, unpack};
use control_wire::{CertificateId, Order};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The folder of chains in a bundle; the private key of `certificates/ID.pem` is delivered apart.
const CERTIFICATES: &str = "certificates/";
const CHAIN: &str = ".pem";

/// A bundle with the archive that the order names.
#[derive(Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The order to run it.
    pub order: Order,
    /// The archive, as it was fetched.
    pub archive: Arc<[u8]>,
    /// Its files by name.
    pub files: Files,
}

/// Private keys by the certificate, held in memory only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Certificates(pub BTreeMap<CertificateId, Zeroizing<String>>);

impl Bundle {
    /// Opens an archive that may be hostile.
    ///
    /// # Errors
    ///
    /// [`BundleError`] if it is not the one of `order`, is damaged, or needs a newer proxy.
    pub fn open(
        order: Order,
        archive: Arc<[u8]>,
        (schema_version, proxy): (u32, Version),
    ) -> Result<Self, BundleError> {
        if digest(&archive) != order.digest {
            return Err(BundleError::Digest);
        }
        let Contents {
            manifest,
            sbom: _,
            files,
        } = unpack(&archive)?;
        manifest.fits(schema_version, proxy)?;
        Ok(Self {
            order,
            archive,
            files,
        })
    }

    /// The certificates that it needs the private keys of.
    pub fn certificates(&self) -> Vec<CertificateId> {
        let names = self.files.keys();
        let ids = names.filter_map(|name| {
            let name = name.strip_prefix(CERTIFICATES)?.strip_suffix(CHAIN)?;
            name.parse().ok()
        });
        ids.collect()
    }
}

impl Certificates {
    /// The private keys by the names of their files in the bundle.
    pub fn by_file(&self) -> impl Iterator<Item = (PathBuf, &Zeroizing<String>)> {
        let keys = self.0.iter();
        keys.map(|(id, key)| (format!("{CERTIFICATES}{id}.key").into(), key))
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bundle({:?})", self.order)
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
