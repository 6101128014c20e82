//! Destinations of a log.

use super::syslog::Syslog;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
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
    /// The local socket of a syslog server.
    SyslogSocket(PathBuf),
    /// A syslog server by UDP.
    SyslogServer(SocketAddr),
    /// No destination: records are not encoded.
    Off,
}

/// An open destination.
pub(crate) struct OpenDestination {
    pub(crate) out: Box<dyn Write + Send>,
    /// Path of a file that can be opened again.
    pub(crate) path: Option<PathBuf>,
    pub(crate) is_pipe: bool,
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
            Self::File(_) | Self::SyslogSocket(_) | Self::SyslogServer(_) | Self::Off => None,
        }
    }

    /// Opens the destination; `None` for [`Destination::Off`].
    pub(crate) fn open(&self) -> io::Result<Option<OpenDestination>> {
        let file: File = match self {
            // A duplicate of the descriptor, because the handles of the standard library have a
            // lock and a buffer, and hide some errors.
            Self::Stdout => io::stdout().as_fd().try_clone_to_owned()?.into(),
            Self::Stderr => io::stderr().as_fd().try_clone_to_owned()?.into(),
            Self::File(path) => append_to(path)?,
            Self::SyslogSocket(path) => return Ok(Some(Syslog::local(path.clone())?.into())),
            Self::SyslogServer(server) => return Ok(Some(Syslog::remote(*server)?.into())),
            Self::Off => return Ok(None),
        };
        Ok(Some(OpenDestination {
            is_pipe: file.metadata()?.file_type().is_fifo(),
            out: Box::new(file),
            path: match self {
                Self::File(path) => Some(path.clone()),
                Self::Stdout
                | Self::Stderr
                | Self::SyslogSocket(_)
                | Self::SyslogServer(_)
                | Self::Off => None,
            },
        }))
    }
}

impl From<Syslog> for OpenDestination {
    fn from(syslog: Syslog) -> Self {
        Self {
            out: Box::new(syslog),
            path: None,
            is_pipe: false,
        }
    }
}

pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    proxy_setting_files::open_for_appending(path)
}
