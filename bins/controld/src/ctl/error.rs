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
    /// No response, or an unreadable one; exit code 1.
    #[error("{what}: {cause}")]
    Failed { what: String, cause: String },
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
            Err(_) => Self::failed("the server", format!("answered {status} without a reason")),
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Refused { .. } | Self::Failed { .. } => 1,
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
