//! Compiled retry policy.

use proxy_model::{Retry, RetryCause};
use std::time::Duration;

/// Retry policy of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPlan {
    /// Maximum number of times that one request is sent again.
    pub attempts: u32,
    /// Share of the upstream's requests that may be sent again, 0 to 100 percent.
    pub budget_percent: u32,
    /// Maximum time of one attempt until its response begins.
    pub per_try_timeout: Option<Duration>,
    causes: u8,
}

/// Default policy: one retry after a failed connect or a connection that closed without a response;
/// at most a fifth of the requests.
const UNWRITTEN: RetryPlan = RetryPlan {
    attempts: 1,
    budget_percent: 20,
    per_try_timeout: None,
    causes: bit(RetryCause::ConnectFailure) | bit(RetryCause::Reset),
};

impl RetryPlan {
    pub(crate) fn compile(retry: Option<&Retry>) -> Self {
        let Some(retry) = retry else {
            return UNWRITTEN;
        };
        let Retry {
            place: _,
            attempts,
            on,
            budget_percent,
            per_try_timeout,
        } = retry;
        let causes = on.iter().map(|cause| bit(*cause));
        Self {
            attempts: **attempts,
            budget_percent: **budget_percent,
            per_try_timeout: per_try_timeout.map(|time| *time),
            causes: causes.fold(0, |all, one| all | one),
        }
    }

    /// Returns true if a request is sent again after `cause`.
    #[inline]
    #[must_use]
    pub const fn is_on(&self, cause: RetryCause) -> bool {
        self.causes & bit(cause) != 0
    }

    /// Returns true if some statuses of targets cause a retry.
    #[must_use]
    pub const fn is_on_statuses(&self) -> bool {
        self.is_on(RetryCause::BadGateway)
            || self.is_on(RetryCause::ServiceUnavailable)
            || self.is_on(RetryCause::GatewayTimeout)
    }
}

const fn bit(cause: RetryCause) -> u8 {
    match cause {
        RetryCause::ConnectFailure => 1,
        RetryCause::Reset => 2,
        RetryCause::Timeout => 4,
        RetryCause::BadGateway => 8,
        RetryCause::ServiceUnavailable => 16,
        RetryCause::GatewayTimeout => 32,
    }
}
