//! Reading of files of limited size, and detection of changes.

use crate::error::TlsError;
use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use proxy_setting_files::{ReadError, RegularFile};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

/// SHA-256 of all files of a certificate or a set of roots.
pub(crate) type Digest = [u8; SHA256_OUTPUT_LEN];

/// Maximum size of a file; a bundle of all public roots is far smaller.
const MAX_BYTES: u64 = 4 << 20;

/// Time within which two writes may get the same timestamp from a file system.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

/// Contents of a file, wiped on drop because they may be a key.
pub(crate) struct Contents(Zeroizing<Vec<u8>>);

impl Contents {
    /// Reads a regular file of at most 4 MiB.
    pub(crate) fn read(path: &Path) -> Result<Self, TlsError> {
        let file = || path.to_owned();
        let fault = |error: ReadError| match error {
            ReadError::NotRegular => TlsError::NotAFile { file: file() },
            ReadError::TooLarge { limit_bytes } => TlsError::TooLarge {
                file: file(),
                limit_bytes,
            },
            ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                TlsError::Missing { file: file() }
            }
            ReadError::Io(error) => TlsError::Unreadable {
                file: file(),
                kind: error.kind(),
            },
        };
        let mut bytes = Zeroizing::default();
        let opened = RegularFile::open(path).map_err(fault)?;
        opened.read_to_end(MAX_BYTES, &mut bytes).map_err(fault)?;
        Ok(Self(bytes))
    }

    /// Contents that are held in memory instead of a file.
    pub(crate) fn held(pem: &str) -> Self {
        Self(Zeroizing::new(pem.as_bytes().to_vec()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contents({} bytes)", self.0.len())
    }
}

/// Digest of several files, each of which may be absent.
pub(crate) fn digest<'a>(files: impl IntoIterator<Item = Option<&'a Contents>>) -> Digest {
    let mut context = Context::new(&SHA256);
    for file in files {
        let bytes = file.map(Contents::bytes);
        let length = bytes.map_or(u64::MAX, |bytes| bytes.len() as u64);
        context.update(&length.to_be_bytes());
        context.update(bytes.unwrap_or_default());
    }
    sha256(context)
}

/// SHA-256 of a certificate as DER, as shown to operators.
pub(crate) fn fingerprint(der: &[u8]) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(der);
    sha256(context)
}

fn sha256(context: Context) -> Digest {
    let mut digest = Digest::default();
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// Metadata of a file, which a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: SystemTime,
    device: u64,
    inode: u64,
    size_bytes: u64,
}

impl Stamp {
    /// Reads the metadata of the file at `path`, following links; `None` if it does not exist.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            modified: metadata.modified().ok()?,
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.len(),
        })
    }

    /// Returns true if every later write is certain to change the metadata.
    pub(crate) fn is_settled(self, now: SystemTime) -> bool {
        now.duration_since(self.modified)
            .is_ok_and(|age| TIMESTAMP_GRANULARITY < age)
    }
}
