//! What is written down, and where.

use crate::place::Setting;
use std::fmt;
use std::path::PathBuf;

/// The `observability` block.
#[derive(Clone, Debug)]
pub struct Observability {
    /// One line per request.
    pub access_log: AccessLog,
    /// Everything else.
    pub error_log: ErrorLog,
    /// Query parameters whose values are never written, in lower case.
    pub redact_query: Vec<Setting<String>>,
}

/// One line of JSON per request.
#[derive(Clone, Debug)]
pub struct AccessLog {
    /// Whether it is written at all.
    pub enabled: Setting<bool>,
    /// Where to.
    pub path: Setting<LogTarget>,
    /// Lines that wait for a slow disk before more are dropped and counted.
    pub buffer_lines: Setting<u32>,
}

/// Faults, limits hit, reloads.
#[derive(Clone, Debug)]
pub struct ErrorLog {
    /// The least important records written.
    pub level: Setting<LogLevel>,
    /// Where to.
    pub path: Setting<LogTarget>,
}

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, appended to and opened again on SIGUSR1 and on reload.
    File(PathBuf),
}

/// How important a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// An operator must act.
    Error,
    /// A limit was hit, or a fault recovered from.
    Warn,
    /// Starts, reloads, drains.
    Info,
    /// Decisions, for development.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("stdout"),
            Self::Stderr => f.write_str("stderr"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
