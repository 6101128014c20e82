//! Retries: conditions and choice of the next target.

use super::attempts::Attempts;
use http::StatusCode;
use proxy_clock::{TICK, Timer};
use proxy_errors::Problem;
use proxy_model::RetryCause;
use proxy_pool::SendError;

impl Attempts<'_, '_> {
    /// Takes one attempt from the route's retry policy after `cause`; false if none is left.
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

    /// Returns true if a failed connect may be followed by a connect to another target. Nothing was
    /// sent, so neither the route's `attempts` nor the retry budget is charged. No connect begins
    /// after the timeout of the response's head.
    fn may_connect_elsewhere(&mut self) -> bool {
        let policy = &self.to.route.retry;
        let ticks = self
            .timers
            .clock()
            .now()
            .0
            .saturating_sub(self.forwarded_at.0);
        let is_allowed = policy.is_on(RetryCause::ConnectFailure);
        if !is_allowed || TICK.saturating_mul(ticks) >= self.to.route.timeouts.response {
            return false;
        }
        self.exchange.record().retry.cause = Some(RetryCause::ConnectFailure);
        true
    }

    /// Takes a retry after a pooled connection that the target was closing when the request was
    /// sent.
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

    /// Returns true if a response with `status` is dropped, because another target is tried.
    pub(super) fn takes_retry_after(&mut self, status: StatusCode) -> bool {
        let cause = match status {
            StatusCode::BAD_GATEWAY => RetryCause::BadGateway,
            StatusCode::SERVICE_UNAVAILABLE => RetryCause::ServiceUnavailable,
            StatusCode::GATEWAY_TIMEOUT => RetryCause::GatewayTimeout,
            _ => return false,
        };
        if !self.keeps_request() || !self.take_retry(cause) {
            return false;
        }
        self.record_retry();
        self.exchange.observe_outcome(self.to.upstream, true);
        true
    }

    /// Returns true if the request is kept whole until the status of its response is known.
    pub(super) fn keeps_request(&self) -> bool {
        self.replayable && self.to.route.retry.is_on_statuses()
    }

    /// The cause of a retry after `fault`, which happened before a byte of the response; `None` if
    /// the request must not be sent again. Retries are allowed if no byte of the request was sent,
    /// or if its method is idempotent and it has no body.
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

    /// The target to try after the connect to `failed` failed. Nothing was sent, so any method may
    /// be retried.
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
