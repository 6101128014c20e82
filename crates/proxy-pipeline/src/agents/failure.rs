//! Calls without a decision.

use crate::failure::timeout_problem;
use crate::record::error_log::ReachedLimit;
use agent_protocol::EventKind;
use proxy_agent::{AgentOutcome, CallError};
use proxy_clock::Timer;
use proxy_errors::{Detail, LimitType, Problem, Reason};
use proxy_limits::LimitReached;
use proxy_plan::AgentPlan;
use proxy_telemetry::{AgentMetrics, LimitSetting};
use std::time::Duration;

/// Error of a call without a decision.
#[derive(Debug)]
pub(super) enum AgentFailure {
    /// The agent's timeout or the request's expired.
    TimedOut { timer: Timer, after: Duration },
    /// The agent's circuit breaker refuses the call.
    BreakerOpen { retry_after: Duration },
    /// `max-agent-queue-depth` calls are unanswered.
    QueueFull(LimitReached),
    /// The agent could not be called, or its answer is wrong.
    Call(CallError),
}

/// `Retry-After` of a request that finds the queue of an agent full.
const QUEUE_RETRY: Duration = Duration::from_secs(1);

impl AgentFailure {
    /// The outcome for metrics and logs.
    pub(super) fn outcome(&self) -> AgentOutcome {
        match self {
            Self::TimedOut {
                timer: Timer::Total,
                ..
            } => AgentOutcome::RequestTimeout,
            Self::TimedOut { .. } => AgentOutcome::Timeout,
            Self::BreakerOpen { .. } => AgentOutcome::BreakerOpen,
            Self::QueueFull(_) => AgentOutcome::QueueFull,
            Self::Call(CallError::Overloaded(_)) => AgentOutcome::Overloaded,
            Self::Call(CallError::Unreachable(_)) => AgentOutcome::Unreachable,
            Self::Call(CallError::Closed) => AgentOutcome::Closed,
            Self::Call(CallError::BadReply(_) | CallError::TooLarge { .. }) => {
                AgentOutcome::BadReply
            }
            Self::Call(CallError::ServerError(_)) => AgentOutcome::ServerError,
        }
    }

    fn reason(&self) -> Reason {
        // Every failure has a reason.
        self.outcome().reason().unwrap_or(Reason::InternalError)
    }

    pub(super) fn count(&self, metrics: &AgentMetrics, event: EventKind) {
        let reason = self.reason();
        if reason == Reason::AgentTimeout {
            metrics.timed_out(event);
        }
        metrics.failed(u16::try_from(reason.index()).unwrap_or(u16::MAX));
    }

    /// The limit that the call reached, whether the request is refused or not.
    pub(super) fn reached_limit(&self) -> Option<ReachedLimit> {
        let (setting, limit_type, actual, limit) = match self {
            Self::QueueFull(full) => (
                LimitSetting::MaxAgentQueueDepth,
                LimitType::QueueDepth,
                u64::from(full.wanted()),
                u64::from(full.max),
            ),
            Self::Call(CallError::TooLarge {
                at_least_bytes,
                max_bytes,
            }) => (
                LimitSetting::MaxAgentResponse,
                LimitType::BufferSize,
                *at_least_bytes,
                *max_bytes,
            ),
            Self::TimedOut { .. } | Self::BreakerOpen { .. } | Self::Call(_) => return None,
        };
        Some(ReachedLimit {
            limit_type: Some(limit_type),
            actual,
            limit,
            setting: Some(setting.path()),
        })
    }

    /// The problem of a request refused because of the failure.
    pub(super) fn into_problem(self, agent: &AgentPlan) -> Problem {
        let reason = self.reason();
        let named = |text: String| Problem::new(reason, Detail::named(&*agent.name, text));
        match self {
            Self::TimedOut {
                timer: timer @ Timer::Total,
                after,
            } => timeout_problem(timer, after),
            Self::TimedOut { after, .. } => {
                named(format!("no answer within {} ms", after.as_millis()))
            }
            Self::BreakerOpen { retry_after } => {
                named("its circuit breaker is open".to_owned()).with_retry_after(retry_after)
            }
            Self::QueueFull(LimitReached { held, max }) => {
                named(format!("{held} calls without an answer, {max} allowed"))
                    .with_setting(LimitSetting::MaxAgentQueueDepth.path())
                    .with_retry_after(QUEUE_RETRY)
            }
            Self::Call(error @ CallError::TooLarge { .. }) => {
                named(error.to_string()).with_setting(LimitSetting::MaxAgentResponse.path())
            }
            Self::Call(error) => named(error.to_string()),
        }
    }
}
