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
    /// A thread cannot be started, or its sockets cannot be duplicated.
    #[error("cannot start a worker: {0}")]
    Thread(#[source] io::Error),
    /// The operating system's random generator failed.
    #[error("{0}")]
    Random(#[source] io::Error),
    /// The thread that waits for disks has ended.
    #[error("cannot wait for a disk: {0}")]
    Disk(#[source] io::Error),
    /// A worker does not respond.
    #[error("a worker does not answer")]
    Unresponsive,
}
