//! A failure of a request.

use crate::detail::Detail;
use crate::error_type::ErrorType;
use crate::reason::Reason;
use http::StatusCode;
use std::time::Duration;

/// A reason with the details of one case: the data of the log record, the response, and its header
/// fields.
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
    /// A problem with the reason's own status and `Retry-After`.
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

    /// Sets the header field that caused the problem; for the log only.
    #[must_use]
    pub fn with_field(self, name: impl Into<Box<str>>) -> Self {
        Self {
            field: Some(name.into()),
            ..self
        }
    }

    /// Marks the counted value as a lower bound: the actual value may be larger.
    #[must_use]
    pub fn at_least(self) -> Self {
        let Detail::Limit { current, limit } = self.detail else {
            return self;
        };
        let detail = Detail::LimitAtLeast { current, limit };
        Self { detail, ..self }
    }

    /// States that the exceeded limit is fixed, although the reason has a setting.
    #[must_use]
    pub fn without_setting(self) -> Self {
        Self {
            setting: None,
            ..self
        }
    }

    /// Sets the setting of the exceeded limit, for a reason with limits of several settings.
    #[must_use]
    pub fn with_setting(self, setting: &'static str) -> Self {
        Self {
            setting: Some(setting),
            ..self
        }
    }

    /// Removes the name of the component, which clients must not see.
    #[must_use]
    pub fn without_name(&self) -> Self {
        let mut problem = self.clone();
        if matches!(problem.detail, Detail::Named { .. }) {
            problem.detail = Detail::None;
        }
        problem
    }

    /// Sets another status: an agent's own, or [`Reason::standard_status`] if configured.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Sets the time after which the client may retry.
    #[must_use]
    pub fn with_retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    /// Reason of the failure.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// The type of the reason.
    #[must_use]
    pub const fn error_type(&self) -> ErrorType {
        self.reason.error_type()
    }

    /// Details of this case.
    #[must_use]
    pub const fn detail(&self) -> &Detail {
        &self.detail
    }

    /// The header field that caused the problem, if any.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The setting of the exceeded limit, as in the reference.
    #[must_use]
    pub const fn setting(&self) -> Option<&'static str> {
        self.setting
    }

    /// The status of the response, or for the log if there is no response.
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

    /// The value of `Proxy-Status` [RFC 9209]; `proxy` is the proxy's own name, which must be a
    /// token.
    #[must_use]
    pub fn proxy_status(&self, proxy: &str) -> String {
        let (error, details) = (self.reason.proxy_status(), self.reason.as_str());
        format!("{proxy}; error={error}; details=\"{details}\"")
    }
}
