//! Where a log goes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The standard output.
    Stdout,
    /// The standard error output.
    Stderr,
    /// A file, appended to, made if it is not there.
    File(PathBuf),
    /// Nowhere: records are not even made.
    Off,
}

impl Destination {
    /// Opens it; none when the log is off.
    pub(crate) fn open(&self) -> io::Result<Option<File>> {
        match self {
            // A duplicate of the descriptor: the standard library's handles have a lock and a
            // buffer of their own, and hide some errors.
            Self::Stdout => Ok(Some(io::stdout().as_fd().try_clone_to_owned()?.into())),
            Self::Stderr => Ok(Some(io::stderr().as_fd().try_clone_to_owned()?.into())),
            Self::File(path) => append_to(path).map(Some),
            Self::Off => Ok(None),
        }
    }
}

pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
