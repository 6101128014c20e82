//! Whether a request is sent again, and where.

use super::attempts::{Answered, AttemptOutcome, Attempts};
use http::StatusCode;
use proxy_clock::{TICK, Timer};
use proxy_errors::Problem;
use proxy_model::RetryCause;
use proxy_pool::SendError;

impl Attempts<'_, '_> {
    /// Takes one of the request's attempts after `cause`, if its route's policy gives one.
    pub(super) fn take_retry(&mut self, cause: RetryCause) -> bool {
        let policy = &self.to.route.retry;
        if self.retries >= policy.attempts || !policy.is_on(cause) {
            return false;
        }
        if !self.spend_budget() {
            self.record_refused_retry();
            return false;
        }
        self.retries += 1;
        self.exchange.record().retry.cause = Some(cause);
        true
    }

    /// Whether another target may be connected to after one that could not be. Nothing was sent, so this
    /// is none of the route's `attempts`, and costs nothing of the budget. No further connect begins once
    /// the time until the response's head has passed.
    fn may_connect_elsewhere(&mut self) -> bool {
        let policy = &self.to.route.retry;
        let ticks = self
            .timers
            .clock()
            .now()
            .0
            .saturating_sub(self.forwarded_at.0);
        let is_allowed = policy.attempts > 0 && policy.is_on(RetryCause::ConnectFailure);
        if !is_allowed || TICK.saturating_mul(ticks) >= self.to.route.times.response {
            return false;
        }
        self.exchange.record().retry.cause = Some(RetryCause::ConnectFailure);
        true
    }

    /// The same after a kept connection that was ending when the request was sent on it: nothing but its
    /// own age is to blame.
    pub(super) fn take_stale_retry(&mut self) -> bool {
        let left = self.retries < self.to.route.retry.attempts;
        if left {
            self.retries += 1;
            self.exchange.record().retry.cause = Some(RetryCause::Reset);
        }
        left
    }

    fn spend_budget(&self) -> bool {
        let upstream = self.to.upstream;
        let time = &self.exchange.worker().time;
        let now_ns = time.process_ns(time.elapsed());
        if let Some(active) = self.active.upstreams.get(upstream.index) {
            active.settle_budget(&upstream.retry_budget, now_ns);
        }
        let percent = self.to.route.retry.budget_percent;
        upstream.retry_budget.try_retry(percent, now_ns)
    }

    /// What is to be done with an answer: it goes to the client, or another target is asked.
    pub(super) fn judge(&mut self, answered: Answered) -> AttemptOutcome {
        let status = answered.status();
        let cause = match status {
            StatusCode::BAD_GATEWAY => RetryCause::BadGateway,
            StatusCode::SERVICE_UNAVAILABLE => RetryCause::ServiceUnavailable,
            StatusCode::GATEWAY_TIMEOUT => RetryCause::GatewayTimeout,
            _ => return AttemptOutcome::Answered(answered),
        };
        if !self.keeps_request() || !self.take_retry(cause) {
            return AttemptOutcome::Answered(answered);
        }
        self.record_retry();
        self.exchange.observe_outcome(self.to.upstream, true);
        AttemptOutcome::RetryNext
    }

    /// Whether the request stays whole until its answer was looked at.
    pub(super) fn keeps_request(&self) -> bool {
        self.replayable && self.to.route.retry.is_on_statuses()
    }

    /// Whether the request may be sent again after `fault`, which came before a byte of an answer: nothing
    /// of it was sent, or its method is idempotent and it has no body.
    pub(super) fn cause_of(&self, fault: &SendError) -> Option<RetryCause> {
        match fault {
            SendError::UnsentRequest => Some(RetryCause::Reset),
            SendError::Closed(_) => self.replayable.then_some(RetryCause::Reset),
            SendError::TimedOut { timer, .. } => {
                let is_late = *timer == Timer::ResponseHeader;
                (is_late && self.replayable).then_some(RetryCause::Timeout)
            }
            SendError::BrokenHead
            | SendError::BadResponse(_)
            | SendError::RequestBody
            | SendError::Http2Request(_) => None,
        }
    }

    /// The target to ask after `failed` could not be connected to. Nothing was sent, so any method
    /// may go elsewhere.
    pub(super) fn next_target(&mut self, failed: u16, problem: Problem) -> Result<u16, Problem> {
        self.record_failure(&problem);
        self.tried.push(failed);
        let next = self.untried();
        match next {
            Some(target) if self.may_connect_elsewhere() => {
                self.record_retry();
                Ok(target)
            }
            Some(_) | None => Err(problem),
        }
    }
}
