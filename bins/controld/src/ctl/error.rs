//! Errors of `controld ctl` commands, and their exit codes.

use crate::ctl::output::escape::inline;
use control_wire::{ErrorBody, ErrorCode, ErrorResponse};
use std::fmt::Write as _;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CtlError {
    /// The command line is incomplete or wrong; exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The control plane responded with an error; exit code 1.
    #[error("{}", status_text(*.status, .error))]
    Refused { status: u16, error: Box<ErrorBody> },
    /// The response is an error without the interface's body, as from a gateway; exit code 1.
    #[error("the server: answered {status} without a reason")]
    Unexplained { status: u16 },
    /// No complete response; exit code 1.
    #[error("{server}: {cause}")]
    Unanswered {
        server: String,
        cause: String,
        outage: Outage,
    },
    /// Any other failure; exit code 1.
    #[error("{what}: {cause}")]
    Failed { what: String, cause: String },
}

/// The step of a request at which the server was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// There is no connection; the request was not sent.
    Unconnected,
    /// The connection failed later; the request may have been executed.
    Broken,
    /// The time for the response is over; the request may be in progress.
    Late,
}

impl CtlError {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    pub(crate) fn failed(what: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        Self::Failed {
            what: what.into(),
            cause: cause.to_string(),
        }
    }

    /// Creates an error from an unsuccessful response.
    pub(crate) fn refused(status: u16, body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(ErrorResponse { error }) => Self::Refused {
                status,
                error: Box::new(error),
            },
            Err(_) => Self::Unexplained { status },
        }
    }

    /// Status of the response; `None` without one.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } | Self::Unexplained { status } => Some(*status),
            Self::Usage(_) | Self::Unanswered { .. } | Self::Failed { .. } => None,
        }
    }

    /// Returns true if a repetition may succeed: the server was lost, or reports an outage of its
    /// own or a limit of requests.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
            || self
                .status()
                .is_some_and(|status| status == 429 || 500 <= status)
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Refused { .. }
            | Self::Unexplained { .. }
            | Self::Unanswered { .. }
            | Self::Failed { .. } => 1,
        }
    }
}

fn status_text(status: u16, error: &ErrorBody) -> String {
    let ErrorBody {
        code,
        message,
        correlation_id,
        retry_after,
        details,
    } = error;
    let (message, correlation_id) = (inline(message), inline(correlation_id));
    let mut text = format!("{code}: {message} (status {status}, correlation id {correlation_id})");
    for detail in details {
        let (field, reason) = (inline(&detail.field), inline(&detail.reason));
        write!(text, "\n  {field}: {reason}").unwrap_or_default();
    }
    if *code == ErrorCode::AuthenticationFailed {
        let remedy = "name a valid key with --key-file, or keep one with `controld ctl login`";
        write!(text, "\n  {remedy}").unwrap_or_default();
    }
    if let Some(seconds) = retry_after {
        write!(text, "\n  try again in {seconds} s").unwrap_or_default();
    }
    text
}
