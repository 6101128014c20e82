//! Bundles of configuration: reproducible archives, their manifests and signatures.
//!
//! [`pack`] makes an archive from files, [`unpack`] opens one that may be hostile. [`digest`] names
//! an archive; [`sign`] and [`verify`] are about that digest, [`verify_order`] about the order to a node.

mod bounds;
mod certificate;
mod error;
mod file_name;
mod version;

mod archive;
mod contents;
mod manifest;
mod order;
mod sbom;
mod signature;

pub use bounds::{
    FREE_BYTES, MAX_ARCHIVE_BYTES, MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, MAX_NAME_BYTES, MAX_RATIO,
    MAX_UNPACKED_BYTES,
};
pub use certificate::{certificates, chain_file, key_file, named_certificates};
pub use contents::{Contents, ENTRY_FILE, Files, pack, unpack};
pub use error::{BundleError, NameError};
pub use file_name::check_name;
pub use manifest::{FORMAT, ListedFile, Manifest, Requirements};
pub use order::verify_order;
pub use signature::{digest, sign, verify};
pub use version::Version;
