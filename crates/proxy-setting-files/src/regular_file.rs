//! Bounded reading of regular files.

use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A regular file, opened for reading.
#[derive(Debug)]
pub struct RegularFile {
    file: File,
    metadata: Metadata,
}

/// The reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A folder, a device, a pipe or a socket.
    #[error("not a regular file")]
    NotRegular,
    /// The file is larger than the limit.
    #[error("larger than {limit_bytes} bytes")]
    TooLarge {
        /// Maximum in bytes.
        limit_bytes: u64,
    },
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The contents of the regular file at `path`, of at most `limit_bytes`.
///
/// # Errors
/// [`ReadError`].
pub fn read(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, ReadError> {
    let mut contents = Vec::new();
    RegularFile::open(path)?.read_to_end(limit_bytes, &mut contents)?;
    Ok(contents)
}

impl RegularFile {
    /// Opens the file at `path`, through any links. It never waits for the other end of a pipe.
    ///
    /// # Errors
    /// [`ReadError`] except [`ReadError::TooLarge`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(path).map_err(|error| {
            // A socket.
            if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
                return ReadError::NotRegular;
            }
            ReadError::Io(error)
        })?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ReadError::NotRegular);
        }
        Ok(Self { file, metadata })
    }

    /// Its metadata at the time of opening.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Appends the whole contents to `contents`, which is grown once, so that no copy of a key stays
    /// in memory, unless the file grows meanwhile.
    ///
    /// # Errors
    /// [`ReadError::TooLarge`] for more than `limit_bytes`, and errors of reading.
    pub fn read_to_end(self, limit_bytes: u64, contents: &mut Vec<u8>) -> Result<(), ReadError> {
        let too_large = ReadError::TooLarge { limit_bytes };
        if limit_bytes < self.metadata.len() {
            return Err(too_large);
        }
        // One byte more than needed, for the read that finds the end.
        let room = self.metadata.len().saturating_add(1);
        contents.reserve(usize::try_from(room).unwrap_or_default());
        let read = self
            .file
            .take(limit_bytes.saturating_add(1))
            .read_to_end(contents)?;
        if u64::try_from(read).is_ok_and(|read| limit_bytes < read) {
            return Err(too_large);
        }
        Ok(())
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            ReadError::TooLarge { .. } => Self::new(io::ErrorKind::FileTooLarge, error),
            ReadError::NotRegular => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_regular_files_are_read_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mkfifoat(CWD, at("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        symlink(at("pipe"), at("link")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for path in [
            at("pipe"),
            at("link"),
            at("socket"),
            at("."),
            "/dev/null".into(),
        ] {
            let error = read(&path, 1024).unwrap_err();
            assert!(matches!(error, ReadError::NotRegular), "{path:?}: {error}");
        }
        let error = read(&at("none"), 1024).unwrap_err();
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_may_be_as_large_as_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [7; 1024]).unwrap();
        assert_eq!(read(&path, 1024).unwrap(), [7; 1024]);
        let error = read(&path, 1023).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { limit_bytes: 1023 }));
        // Files of `/proc` have the size 0.
        assert!(
            !read(Path::new("/proc/self/status"), 65536)
                .unwrap()
                .is_empty()
        );
        assert!(read(Path::new("/proc/self/status"), 10).is_err());
    }
}
