//! Errors of packing a bundle, or of a refused archive.

use crate::bounds::{
    MAX_ARCHIVE_BYTES, MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, MAX_NAME_BYTES, MAX_UNPACKED_BYTES,
};

/// Errors of packing a bundle, or of a refused archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The archive's own size.
    #[error("the archive is larger than {MAX_ARCHIVE_BYTES} bytes")]
    ArchiveTooLarge,
    /// All files together.
    #[error("the files are larger than {MAX_UNPACKED_BYTES} bytes together")]
    TooLarge,
    /// A small archive that becomes large files.
    #[error("the archive unpacks to far more than its own size")]
    Ratio,
    /// One file.
    #[error("`{0}` is larger than {MAX_FILE_BYTES} bytes")]
    FileTooLarge(String),
    /// The number of files.
    #[error("there are more than {MAX_FILES} files")]
    TooManyFiles,
    /// Bytes that are not zstd, or not the tar that [`crate::pack`] writes.
    #[error("the archive is damaged")]
    Damaged,
    /// A link, a device, a folder, or an extension of the format.
    #[error("`{0}` is not a regular file")]
    NotAFile(String),
    /// A name that must not reach a disk.
    #[error("the file name `{name}` {reason}")]
    Name {
        /// The name, shortened.
        name: String,
        /// Reason of the refusal.
        reason: NameError,
    },
    /// A name twice, or a file where another one needs a folder.
    #[error("`{0}` is listed twice")]
    Duplicate(String),
    /// A private key in PEM: those are delivered to nodes separately, and held in memory.
    #[error("`{0}` holds a private key, which never belongs in a bundle")]
    PrivateKey(String),
    /// The file that a configuration begins with is missing.
    #[error("there is no file `proxy.kdl`")]
    NoEntryFile,
    /// The manifest is missing, or cannot be read.
    #[error("the manifest is missing or malformed")]
    BadManifest,
    /// The archive has another format, by its number.
    #[error("the bundle has format {0}, which is not known here")]
    Format(u32),
    /// A file that the manifest does not list.
    #[error("`{0}` is not in the manifest")]
    Unlisted(String),
    /// A file that is in the manifest only.
    #[error("`{0}` is in the manifest and not in the archive")]
    Missing(String),
    /// A file with other bytes than in the manifest.
    #[error("`{0}` has another hash or size than the manifest says")]
    HashMismatch(String),
    /// The configuration is of a newer language.
    #[error("the bundle needs schema version {0}")]
    SchemaTooNew(u32),
    /// The configuration needs a newer proxy.
    #[error("the bundle needs proxy version {0}")]
    ProxyTooOld(String),
    /// The digest is not of this archive.
    #[error("the archive has another digest")]
    Digest,
    /// The signature is not of this text by this key.
    #[error("the signature does not match")]
    Signature,
}

/// Reason to refuse a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a single byte.
    #[error("is empty")]
    Empty,
    /// It does not fit a header.
    #[error("is longer than {MAX_NAME_BYTES} bytes, or has a part longer than 100")]
    TooLong,
    /// Too many folders.
    #[error("has more than {MAX_DEPTH} parts")]
    TooDeep,
    /// It begins at the root of a disk.
    #[error("is absolute")]
    Absolute,
    /// It leaves the folder of the bundle, or is not in its shortest form.
    #[error("has a part that is empty, `.` or `..`")]
    Dots,
    /// A character that some reader takes for a separator or an end.
    #[error("has a control character, a backslash, or is not UTF-8")]
    Character,
}
