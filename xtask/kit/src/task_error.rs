//! Errors of developer tasks.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use thiserror::Error;

/// Reason for the failure of a task.
#[derive(Debug, Error)]
pub enum TaskError {
    /// A program could not be started.
    #[error("cannot run {program}")]
    Start {
        /// Name of the program.
        program: String,
        /// Cause.
        source: io::Error,
    },
    /// A program failed.
    #[error("{program} failed ({status})")]
    Ended {
        /// Command line.
        program: String,
        /// Exit status.
        status: ExitStatus,
    },
    /// A file could not be read or written.
    #[error("cannot read or write {path}", path = path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Any other error of the operating system.
    #[error("cannot {action}")]
    System {
        /// Refused action, as an infinitive.
        action: &'static str,
        /// Cause.
        source: io::Error,
    },
    /// A program's output was not the expected JSON.
    #[error("{program} did not print JSON")]
    Json {
        /// Name of the program.
        program: &'static str,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
    /// The task ran and found a failure.
    #[error("{0}")]
    Failed(String),
    /// The task has already reported its failure.
    #[error("failed, as said above")]
    AlreadyReported,
}

impl TaskError {
    /// Returns the message with all causes, on one line.
    pub fn message(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(inner) = cause {
            line.push_str(": ");
            line.push_str(&inner.to_string());
            cause = inner.source();
        }
        line
    }
}
