//! Errors of tasks.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use thiserror::Error;

/// The reason why a task failed.
#[derive(Debug, Error)]
pub enum TaskError {
    /// A program could not be started.
    #[error("cannot run {program}")]
    Start {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// A program ran and did not succeed.
    #[error("{program} failed ({status})")]
    Ended {
        /// The program with its arguments.
        program: String,
        /// Its exit status.
        status: ExitStatus,
    },
    /// A file could not be read or written.
    #[error("cannot read or write {path}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The operating system refused something else.
    #[error("cannot {action}")]
    System {
        /// The refused action, an infinitive.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A program's output was not the expected JSON.
    #[error("{program} did not print JSON")]
    Json {
        /// The program.
        program: &'static str,
        /// The parser's error.
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
    /// The message with all its causes, on one line.
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
