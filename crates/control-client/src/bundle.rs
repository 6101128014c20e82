//! A bundle on its way into force.

use control_bundle::{
    BundleError, Contents, Files, Version, certificates, digest, key_file, unpack,
};
use control_wire::{CertificateId, Order};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use zeroize::Zeroizing;

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

/// Certificates with their private keys, held in memory only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Certificates(pub BTreeMap<CertificateId, HeldCertificate>);

/// A chain and its private key, of one answer of the control plane: they belong together.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldCertificate {
    /// The chain in PEM, leaf first; it takes the place of the bundle's.
    pub chain_pem: String,
    /// The private key of the leaf in PEM.
    pub key_pem: Zeroizing<String>,
}

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

    /// The certificates that are delivered apart from it.
    pub fn certificates(&self) -> Vec<CertificateId> {
        certificates(&self.files)
    }
}

impl Certificates {
    /// The certificates by the names that the bundle has for the files of their private keys.
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
