//! State of all attempts to send one request, and the records of each attempt.

use super::acquired::PooledConnection;
use super::destination::{Destination, within_try};
use crate::exchange::Exchange;
use crate::failure::exchange_problem;
use crate::upload::request_body::{Progress, RequestBody};
use crate::worker::active_plan::ActivePlan;
use crate::worker::balancer_view::WorkerView;
use h2::RecvStream;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use proxy_clock::{RequestTimers, Tick, Timer};
use proxy_errors::Problem;
use proxy_plan::UpstreamStates;
use proxy_pool::{ExpectedResponse, Http2Request, Pool, SendError, Tunnel};
use std::rc::Rc;

/// State of all attempts to send one request.
pub(super) struct Attempts<'e, 'p> {
    pub(super) exchange: &'e mut Exchange,
    /// Kept in one place, because it is large and futures that pass it on would each hold a copy.
    pub(super) request: Request<RequestBody>,
    pub(super) active: Rc<ActivePlan>,
    pub(super) pool: Rc<Pool<RequestBody>>,
    pub(super) to: Destination<'p>,
    pub(super) timers: RequestTimers,
    pub(super) expected: ExpectedResponse,
    pub(super) replayable: bool,
    pub(super) upload: Option<Rc<Progress>>,
    pub(super) tried: Vec<u16>,
    /// The attempts after the first, without those that follow a failed connect.
    pub(super) retries: u32,
    /// The beginning of the first attempt.
    pub(super) forwarded_at: Tick,
    /// The beginning of the attempt, connecting included.
    pub(super) began_at: Tick,
    /// The next attempt needs a new connection: a kept one has just ended under the request.
    pub(super) fresh: bool,
    /// A kept HTTP/2 connection has ended in good order under the request, which its target has not
    /// processed: not the target's failure.
    pub(super) was_closing: bool,
}

pub(super) enum AttemptOutcome {
    Answered(Answered),
    /// The connection was unusable; no target failed.
    RetrySame,
    /// The target has not processed the request.
    RetryNext,
    Failed(Problem),
}

/// The response, by protocol. Small, because it is moved several times.
pub(super) enum Answered {
    /// The status; the head is in the connection.
    Http1(StatusCode, PooledConnection),
    Http2(Box<Response<RecvStream>>, Box<Http2Request<RequestBody>>),
    Tunnel(Box<Response<()>>, Tunnel),
    /// The target's refusal of a tunnel.
    Refusal(Box<Response<()>>),
}

impl Answered {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Http1(status, _) => *status,
            Self::Tunnel(response, _) | Self::Refusal(response) => response.status(),
            Self::Http2(response, _) => response.status(),
        }
    }

    /// Status and fields of a response over HTTP/2.
    pub(super) fn by_http2(&self) -> Option<(StatusCode, &HeaderMap)> {
        match self {
            Self::Http1(..) => None,
            Self::Http2(response, _) => Some((response.status(), response.headers())),
            Self::Tunnel(response, _) | Self::Refusal(response) => {
                Some((response.status(), response.headers()))
            }
        }
    }
}

impl Attempts<'_, '_> {
    /// A target that was not tried yet, if there is one; a backup target if all main targets were
    /// tried.
    pub(super) fn untried(&self) -> Option<u16> {
        let worker = self.exchange.worker();
        let view = WorkerView {
            worker,
            active: &self.active,
            now: worker.time.elapsed(),
        };
        let state = view.balancer(self.to.upstream)?;
        let balancer = self.to.upstream.balancing.balancer;
        let request = &self.to.choice.request;
        if let Some(chosen) = balancer.choose(&state, request, &self.tried) {
            return Some(chosen);
        }
        let backups = state.into_waiting_backups();
        let chosen = balancer.choose(&backups, request, &self.tried)?;
        // First attempts do not move this rotation.
        balancer.advance(&backups, chosen);
        Some(chosen)
    }

    /// Starts the timer of the request's body, or without a body the timer of the response.
    pub(super) fn start_timer(&self) {
        let timeouts = &self.to.route.timeouts;
        if self.upload.is_some() {
            self.timers.start(Timer::UpstreamWrite, timeouts.read);
        } else {
            let wait = within_try(self.to.route, timeouts.response);
            self.timers.start(Timer::ResponseHeader, wait);
        }
    }

    /// Returns true if the client accepts interim responses. HTTP/1.0 has one response for each
    /// request. [RFC 9110 §15.2]
    pub(super) fn client_takes_interim(&self) -> bool {
        self.exchange.head.version >= Version::HTTP_11
    }

    pub(super) fn record_retry(&mut self) {
        self.exchange.record().retry.count += 1;
        if let Some((upstream, _)) = self.exchange.last_attempt() {
            upstream.metrics.retries.add(1);
        }
    }

    #[cold]
    pub(super) fn record_refused_retry(&mut self) {
        self.exchange.record().retry.is_refused = true;
        if let Some((upstream, _)) = self.exchange.last_attempt() {
            upstream.metrics.retries_refused.add(1);
        }
    }

    pub(super) fn record_stale(&self) {
        if let Some((upstream, _)) = self.exchange.last_attempt() {
            upstream.metrics.pool_stale.add(1);
        }
    }

    pub(super) fn record_failure(&self, problem: &Problem) {
        let reason = problem.reason();
        if !self.is_targets_fault(reason) {
            return;
        }
        if let Some((upstream, _)) = self.exchange.last_attempt() {
            upstream
                .metrics
                .failed(u16::try_from(reason.index()).unwrap_or(u16::MAX));
        }
        self.exchange.observe_outcome(self.to.upstream, true);
    }

    pub(super) fn problem(&self, fault: &SendError) -> Problem {
        let upload = self.upload.as_ref();
        let upload = upload.and_then(|progress| progress.fault.get());
        let unread = self.exchange.client().fault.get();
        exchange_problem(fault, &self.to.upstream.name, upload, unread)
    }
}
