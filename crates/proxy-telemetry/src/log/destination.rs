//! Destinations of a log.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The destination of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Path of a file, opened for appending and created if it does not exist.
    File(PathBuf),
    /// No destination: records are not encoded.
    Off,
}

/// The right to write to a stream.
#[expect(
    clippy::disallowed_types,
    reason = "only the threads that write logs wait for it, and the stream makes them wait as well"
)]
pub(crate) type StreamLock = std::sync::Mutex<()>;

static STDOUT: StreamLock = StreamLock::new(());
static STDERR: StreamLock = StreamLock::new(());

impl Destination {
    /// The lock that logs of the process hold while they write to a shared stream. Each log opens a
    /// file for appending, which is atomic.
    pub(crate) fn turn(&self) -> Option<&'static StreamLock> {
        match self {
            Self::Stdout => Some(&STDOUT),
            Self::Stderr => Some(&STDERR),
            Self::File(_) | Self::Off => None,
        }
    }

    /// Opens the destination; `None` for [`Destination::Off`].
    pub(crate) fn open(&self) -> io::Result<Option<File>> {
        match self {
            // A duplicate of the descriptor, because the handles of the standard library have a
            // lock and a buffer, and hide some errors.
            Self::Stdout => Ok(Some(io::stdout().as_fd().try_clone_to_owned()?.into())),
            Self::Stderr => Ok(Some(io::stderr().as_fd().try_clone_to_owned()?.into())),
            Self::File(path) => append_to(path).map(Some),
            Self::Off => Ok(None),
        }
    }
}

pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    proxy_setting_files::open_for_appending(path)
}
