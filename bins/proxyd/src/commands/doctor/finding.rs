//! Results of the checks of `proxyd doctor`.

use serde::Serialize;
use std::fmt;

/// Result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// Subject of the check, such as `listener main`.
    pub(super) subject: String,
    /// State found, with its figures.
    pub(super) state: String,
    /// Remedy; `None` if none is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// No action needed.
    Ok,
    /// The proxy serves, but with a limit below the configured one, or with failing requests.
    Warning,
    /// The proxy cannot start, or a listener or target cannot work.
    Fault,
}

impl Finding {
    pub(super) fn ok(subject: impl Into<String>, state: impl Into<String>) -> Self {
        Self {
            severity: Severity::Ok,
            subject: subject.into(),
            state: state.into(),
            remedy: None,
        }
    }

    pub(super) fn warning(
        subject: impl Into<String>,
        state: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            remedy: Some(remedy.into()),
            ..Self::ok(subject, state)
        }
    }

    pub(super) fn fault(
        subject: impl Into<String>,
        state: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Fault,
            ..Self::warning(subject, state, remedy)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Fault => "fault",
        };
        write!(f, "{severity:<8} {}: {}", self.subject, self.state)?;
        match &self.remedy {
            Some(remedy) => write!(f, "\n         {remedy}"),
            None => Ok(()),
        }
    }
}
