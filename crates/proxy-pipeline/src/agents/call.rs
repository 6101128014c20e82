//! One call of an agent: permits, timeout and metrics.

use super::decision;
use super::failure::AgentFailure;
use crate::exchange::Exchange;
use crate::record::error_log::{ReachedLimit, note_reached};
use crate::worker::active_plan::{ActiveAgent, ActivePlan};
use crate::worker::state::Worker;
use agent_protocol::{Decision, EventKind};
use proxy_agent::{AgentClient, BreakerResult, CallContext, CallError};
use proxy_clock::RequestTimers;
use proxy_clock::Timer;
use proxy_errors::Problem;
use proxy_health::{BreakerOpen, BreakerPermit};
use proxy_limits::{ClientKey, FairPermit};
use proxy_plan::AgentPlan;
use proxy_telemetry::{AgentDecision, AgentMetrics};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A call of an agent about one event.
#[derive(Debug)]
pub(super) struct AgentCall<'a> {
    agent: &'a Arc<AgentPlan>,
    own: Option<&'a ActiveAgent>,
    event: EventKind,
    client: ClientKey,
    context: CallContext,
}

/// The result of a call, and its duration.
#[derive(Debug)]
pub(super) struct CallOutcome<T> {
    pub(super) result: Result<T, AgentFailure>,
    pub(super) took: Duration,
}

/// A call in flight, counted in the agent's queue depth until dropped.
struct Pending<'a> {
    metrics: &'a AgentMetrics,
    permit: FairPermit,
}

impl<'a> AgentCall<'a> {
    /// A call about `event` of a request of the client at `client_ip`.
    pub(super) fn new(
        active: &'a ActivePlan,
        agent: &'a Arc<AgentPlan>,
        event: EventKind,
        client_ip: IpAddr,
    ) -> Self {
        Self {
            agent,
            own: active.agents.get(agent.index),
            event,
            client: ClientKey::from(client_ip),
            context: CallContext::default(),
        }
    }

    /// Facts about the call, for its metrics and for a denial that was read in part.
    pub(super) fn context(&self) -> &CallContext {
        &self.context
    }

    pub(super) fn client(&self) -> Option<&AgentClient> {
        self.own.map(|own| &*own.client)
    }

    /// Awaits `call` within the agent's time, if its breaker and its queue admit it.
    pub(super) async fn run<T: From<Decision>>(
        &self,
        worker: &Worker,
        timers: &RequestTimers,
        call: Option<impl Future<Output = Result<T, CallError>>>,
    ) -> CallOutcome<T> {
        let began = worker.time.elapsed();
        let (Some(own), Some(call)) = (self.own, call) else {
            let error = CallError::Unreachable("the agent is not in the plan".to_owned());
            let result = Err(AgentFailure::Call(error));
            return CallOutcome {
                result,
                took: Duration::ZERO,
            };
        };
        let admitted = self.admit(&own.metrics, worker.time.process_ns(began));
        let (breaker, pending) = match admitted {
            Ok(admitted) => admitted,
            Err(failure) => {
                return CallOutcome {
                    result: Err(failure),
                    took: Duration::ZERO,
                };
            }
        };
        let result = self.within(timers, call, &pending.permit).await;
        let result = result.or_else(|failure| {
            let denied = self.context.denial.take();
            denied.map(T::from).ok_or(failure)
        });
        drop(pending);
        let ended = worker.time.elapsed();
        record_outcome(breaker, &result, worker.time.process_ns(ended));
        CallOutcome {
            result,
            took: ended.saturating_sub(began),
        }
    }

    fn admit<'m>(
        &self,
        metrics: &'m AgentMetrics,
        now_ns: u64,
    ) -> Result<(Option<BreakerPermit>, Pending<'m>), AgentFailure> {
        let state = &self.agent.state;
        let breaker = state.breaker.as_ref().map(|breaker| breaker.admit(now_ns));
        let breaker = breaker
            .transpose()
            .map_err(|BreakerOpen { retry_after }| AgentFailure::BreakerOpen { retry_after })?;
        let permit = state.queue.acquire(self.client);
        let permit = permit.map_err(AgentFailure::QueueFull)?;
        metrics.queue_depth.add(1);
        let pending = Pending { metrics, permit };
        Ok((breaker, pending))
    }

    /// Awaits `call` until the agent's timeout, the request's own timeout, or the loss of its
    /// permit to another client.
    async fn within<T>(
        &self,
        timers: &RequestTimers,
        call: impl Future<Output = Result<T, CallError>>,
        permit: &FairPermit,
    ) -> Result<T, AgentFailure> {
        timers.start(Timer::Agent, self.agent.timeout);
        let mut call = pin!(call);
        let result = poll_fn(|cx| {
            if let Poll::Ready(answered) = call.as_mut().poll(cx) {
                return Poll::Ready(answered.map_err(AgentFailure::Call));
            }
            if let Poll::Ready(reached) = permit.poll_displaced(cx) {
                return Poll::Ready(Err(AgentFailure::QueueFull(reached)));
            }
            match timers.deadline().take_expired() {
                Some((timer, after)) => {
                    self.context.has_expired.set(timer == Timer::Agent);
                    Poll::Ready(Err(AgentFailure::TimedOut { timer, after }))
                }
                None => Poll::Pending,
            }
        });
        let result = result.await;
        timers.stop();
        result
    }

    /// Counts the outcome, and writes it into the request's record. `None` if the agent failed
    /// open.
    pub(super) fn record(
        &self,
        exchange: &mut Exchange,
        outcome: CallOutcome<Decision>,
    ) -> Result<Option<Decision>, Problem> {
        let CallOutcome { result, took } = outcome;
        let record = exchange.record().agents.get_or_insert_default();
        record.took += took;
        let metrics = self.own.map(|own| &*own.metrics);
        let name = Arc::clone(&self.agent.name);
        let failure = match result {
            Ok(decision) => {
                record.last = Some((name, decision.name()));
                if let Some(metrics) = metrics {
                    metrics.decided(self.event, metric_label(&decision), took);
                }
                return Ok(Some(decision));
            }
            Err(failure) => failure,
        };
        if let Some(metrics) = metrics {
            failure.count(metrics, self.event);
        }
        let fails_open = self.agent.fails_open && failure.outcome().obeys_failure_mode();
        record.last = Some((name, if fails_open { "failed_open" } else { "failed" }));
        let reached = failure.reached_limit();
        if let AgentFailure::Call(CallError::ServerError(answer)) = failure {
            if fails_open {
                return Ok(None);
            }
            return Err(decision::server_error(exchange, self.agent, *answer));
        }
        let problem = failure.into_problem(self.agent);
        if let Some(reached) = reached {
            note_limit(exchange, &problem, &reached);
        }
        if fails_open {
            return Ok(None);
        }
        Err(problem)
    }
}

/// Counts and logs that a call reached a limit, even if the agent fails open.
#[cold]
fn note_limit(exchange: &Exchange, problem: &Problem, reached: &ReachedLimit) {
    let worker = exchange.worker();
    let now = worker.time.elapsed();
    let context = exchange.completion.limit_context(problem, now);
    note_reached(worker, reached, &problem.log_message(), &context);
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.metrics.queue_depth.sub(1);
    }
}

/// Reports the result to the breaker. The request's own timeout is not a failure of the agent.
fn record_outcome<T>(permit: Option<BreakerPermit>, result: &Result<T, AgentFailure>, now_ns: u64) {
    let Some(permit) = permit else {
        return;
    };
    let verdict = result.as_ref().map_or_else(
        |failure| failure.outcome().breaker(),
        |_| BreakerResult::Success,
    );
    match verdict {
        BreakerResult::Success => permit.success(now_ns),
        BreakerResult::Failure => permit.failure(now_ns),
        BreakerResult::Nothing => None,
    };
}

fn metric_label(decision: &Decision) -> AgentDecision {
    match decision {
        Decision::Allow(_) => AgentDecision::Allow,
        Decision::Block(_) => AgentDecision::Block,
        Decision::Redirect(_) => AgentDecision::Redirect,
        Decision::Challenge(_) => AgentDecision::Challenge,
    }
}
