//! One failure of one request.

use crate::detail::Detail;
use crate::error_type::ErrorType;
use crate::reason::Reason;
use http::StatusCode;
use std::time::Duration;

/// A reason with what is known about this one case: enough for the log record, the answer, and
/// the fields that go with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    reason: Reason,
    detail: Detail,
    status: StatusCode,
    retry_after: Option<Duration>,
    field: Option<Box<str>>,
    setting: Option<&'static str>,
}

impl Problem {
    /// A problem answered with the reason's own status and `Retry-After`.
    #[must_use]
    pub fn new(reason: Reason, detail: Detail) -> Self {
        Self {
            reason,
            detail,
            status: reason.status(),
            retry_after: reason.retry_after(),
            field: None,
            setting: reason.setting(),
        }
    }

    /// The header field of this name is to blame; for the log only.
    #[must_use]
    pub fn with_field(self, name: impl Into<Box<str>>) -> Self {
        Self {
            field: Some(name.into()),
            ..self
        }
    }

    /// What was counted against the limit may be more than is told.
    #[must_use]
    pub fn at_least(self) -> Self {
        let detail = match self.detail {
            Detail::Limit { current, limit } => Detail::LimitAtLeast { current, limit },
            other => other,
        };
        Self { detail, ..self }
    }

    /// The limit that was met is no setting, though others of its reason are.
    #[must_use]
    pub fn without_setting(self) -> Self {
        Self {
            setting: None,
            ..self
        }
    }

    /// Answered with `status` instead: an agent's own, or
    /// [`Reason::standard_status`] where that was asked for.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The client may come back after `wait`.
    #[must_use]
    pub fn with_retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    /// Why it failed.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// The type that owns the reason.
    #[must_use]
    pub const fn error_type(&self) -> ErrorType {
        self.reason.error_type()
    }

    /// What is known beyond the reason.
    #[must_use]
    pub const fn detail(&self) -> &Detail {
        &self.detail
    }

    /// The header field that is to blame, if one is.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The setting that a limit was met of, as the reference names it.
    #[must_use]
    pub const fn setting(&self) -> Option<&'static str> {
        self.setting
    }

    /// The status to answer with, or to log where there is no answer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Seconds for `Retry-After` and the body: rounded up, at least 1.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        let wait = self.retry_after?;
        let started = u64::from(wait.subsec_nanos() != 0);
        Some(wait.as_secs().saturating_add(started).max(1))
    }

    /// The value of `Proxy-Status` [RFC 9209], in which this proxy calls itself `proxy`; that must
    /// be a token.
    #[must_use]
    pub fn proxy_status(&self, proxy: &str) -> String {
        let (error, details) = (self.reason.proxy_status(), self.reason.as_str());
        format!("{proxy}; error={error}; details=\"{details}\"")
    }
}
