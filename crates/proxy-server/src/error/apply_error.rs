//! The reason why a valid configuration cannot be applied.

use crate::listen::BindError;
use proxy_config::Diagnostic;
use std::io;

/// The reason why a valid configuration cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// An address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Certificates, keys or roots cannot be used; at least one diagnostic.
    #[error("certificates cannot be used")]
    Tls(Vec<Diagnostic>),
    /// A log cannot be opened.
    #[error("{}", .0.message)]
    Log(Diagnostic),
    /// A thread cannot be started, or its sockets cannot be duplicated. The message includes the
    /// system's error, which is therefore no source.
    #[error("cannot start a worker: {0}")]
    Thread(io::Error),
    /// The operating system's random generator failed.
    #[error("cannot read random bytes: {0}")]
    Random(io::Error),
    /// The thread that waits for disks has ended.
    #[error("cannot read files: {0}")]
    Disk(io::Error),
    /// A worker does not respond in time.
    #[error("a worker does not respond")]
    Unresponsive,
}
