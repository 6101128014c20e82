//! Forwarding of a request to a target.

mod acquired;
mod attempts;
mod blame;
pub(crate) mod destination;
pub(crate) mod held_request;
mod http1;
mod http2;
mod interim_fields;
pub(crate) mod relayed;
pub(crate) mod request_head;
mod retry;
pub(crate) mod shadow;
pub(crate) mod upgrade;
mod upstream_connection;
mod written_back;

use crate::exchange::Exchange;
use crate::failure::{connect_problem, unfit_response};
use crate::headers::header_limits::FieldLimits;
use crate::headers::{header_edits, http2_fields};
use crate::health::reachability;
use crate::policy::{circuit_breaker, grpc_timeout, sticky_cookie};
use crate::record::exchange_record::{ExchangeKind, TargetOutcome};
use crate::response::body::{Body, Interruption};
use crate::response::{held_response, response_head};
use crate::upload::client_body::ClientBody;
use crate::upload::request_body::{BodyLimits, Progress, RequestBody, UploadTimeouts};
use crate::worker::active_plan::ActivePlan;
use crate::worker::balancer_view::WorkerView;
use acquired::{Acquired, PooledConnection, UpstreamConnection};
use attempts::{Answered, AttemptOutcome, Attempts};
use bytes::Bytes;
use destination::{Destination, within_try};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::Body as _;
use proxy_clock::{RequestTimers, Tick};
use proxy_errors::{Blame, Detail, Problem, Reason};
use proxy_framing::RequestKind;
use proxy_health::BreakerPermit;
use proxy_http1::recycle_map;
use proxy_plan::{RoutePlan, UpstreamPlan, UpstreamStates};
use proxy_pool::{ConnectError, ExpectedResponse, ResponseBody};
use proxy_upstream::LoadBalancer;
use request_head::Length;
use std::rc::Rc;
use std::time::Duration;
use upgrade::RequestedUpgrade;

/// Forwards the request of `exchange` and returns the target's response.
pub(crate) async fn send(
    exchange: &mut Exchange,
    to: Destination<'_>,
) -> Result<Response<Body>, Problem> {
    let mut body = exchange.body.take().filter(|body| !body.is_end_stream());
    let timers = exchange.timers(to.total);
    // A streaming gRPC client may send only heartbeats.
    let any_rate = to.upstream.http2 && exchange.is_grpc;
    if to.route.buffer_requests
        && let Some(unread) = body.take()
    {
        let (reading, progress) = upload(exchange, to.route, any_rate, unread, &timers);
        exchange.record().upload = Some(progress);
        let limit = to.route.max_body_buffer_bytes;
        let holding = held_request::buffer_request(exchange, limit, &to.upstream.name, reading);
        let held = Box::pin(holding).await?;
        timers.stop();
        body = Some(held).filter(|body| !body.is_end_stream());
    }
    circuit_breaker::admit(exchange, to.route, to.upstream)?;
    let to = chosen_now(exchange, to);
    let length = match (&body, exchange.head.headers.content_length()) {
        (Some(_), None) => Length::Chunked,
        (Some(_), Some(_)) => Length::Known,
        (None, _) => Length::None,
    };
    let (headers, requested) = request_head::apply(exchange, to, length);
    let expected = expected(exchange, to, requested.is_some());
    let replayable = may_repeat(&exchange.head.method, body.is_some());
    let (body, upload) = match body {
        Some(body) => {
            let (body, progress) = upload(exchange, to.route, any_rate, body, &timers);
            keep_decided_fields(exchange, to.route, &progress);
            (body, Some(progress))
        }
        None => (RequestBody::default(), None),
    };
    exchange.record().upload.clone_from(&upload);
    release_slow_probe(exchange, to.route, upload.as_deref());
    let active = Rc::clone(exchange.active());
    advance(exchange, &active, to.upstream, to.choice.target);
    let mut attempts = Attempts {
        pool: Rc::clone(&exchange.worker().pool),
        forwarded_at: timers.clock().now(),
        request: exchange.take_request(headers, body),
        exchange,
        active,
        to,
        timers,
        expected,
        replayable,
        upload,
        tried: Vec::new(),
        began_at: Tick::default(),
        retries: 0,
        fresh: false,
        was_closing: false,
    };
    let answered = match attempts.run(requested.as_ref()).await {
        Ok(answered) => answered,
        Err(problem) => {
            attempts.settle_failure(&problem);
            return Err(problem);
        }
    };
    let status = answered.status();
    let built = if to.route.buffer_responses {
        // Only a complete response is a success of its upstream.
        Box::pin(attempts.hold_response(answered, requested.as_ref())).await
    } else {
        attempts.build_response(answered, requested.as_ref())
    };
    attempts.settle(status, &built);
    built
}

/// Chooses the target again for a request that may have waited since the decision: targets may have
/// failed, and requests that wait together would all get the target that was next at their beginning.
#[inline]
fn chosen_now<'p>(exchange: &Exchange, to: Destination<'p>) -> Destination<'p> {
    if may_have_waited(exchange, to.route) {
        choose_again(exchange, to)
    } else {
        to
    }
}

/// Returns true if the request may have waited for anything since its beginning.
#[inline]
fn may_have_waited(exchange: &Exchange, route: &RoutePlan) -> bool {
    route.buffer_requests
        || route.agents.is_some()
        || route.credentials.is_some()
        || route.cache.is_some()
        || exchange.completion.record.waits.queued().is_some()
}

/// The target that the balancer chooses now; the earlier one if none is usable.
#[cold]
fn choose_again<'p>(exchange: &Exchange, mut to: Destination<'p>) -> Destination<'p> {
    let worker = exchange.worker();
    let view = WorkerView {
        worker,
        active: exchange.active(),
        now: worker.time.elapsed(),
    };
    let balancer = to.upstream.balancing.balancer;
    let state = view.balancer(to.upstream);
    let chosen = state.and_then(|state| balancer.choose(&state, &to.choice.request, &[]));
    to.choice.target = chosen.unwrap_or(to.choice.target);
    to
}

/// Makes the upload remove fields from the trailers that the route or agents have set in the head.
fn keep_decided_fields(exchange: &mut Exchange, route: &RoutePlan, upload: &Progress) {
    let mut names = std::mem::take(&mut exchange.agent_fields);
    names.extend(header_edits::names(&route.request_headers).cloned());
    if !names.is_empty() {
        upload.decide_fields(names.into());
    }
}

/// Releases the probe slot of a half-open breaker while the client still sends this probe's body.
fn release_slow_probe(exchange: &mut Exchange, route: &RoutePlan, upload: Option<&Progress>) {
    let Some((breaker, upload)) = route.breaker.as_ref().zip(upload) else {
        return;
    };
    let record = exchange.record();
    if let Some(permit) = record.breaker.take_if(|permit| permit.is_probe()) {
        upload.hold_probe(breaker, permit);
    }
}

impl Attempts<'_, '_> {
    /// Sends the request until a target responds or it must not be sent again.
    async fn run(&mut self, requested: Option<&RequestedUpgrade>) -> Result<Answered, Problem> {
        let mut target = self.to.choice.target;
        loop {
            self.began_at = self.timers.clock().now();
            self.was_closing = false;
            self.exchange.record_attempt(self.to.upstream.index, target);
            let Acquired {
                connection,
                target: reached,
            } = match self.acquire(target).await {
                Ok(acquired) => acquired,
                Err(fault) => {
                    target = self.after_failed_connect(target, &fault)?;
                    continue;
                }
            };
            if reached != target {
                self.exchange.move_attempt(reached);
                target = reached;
            }
            self.exchange.connected();
            let began = self.began(&connection);
            if let Some(total) = self.to.total
                && self.exchange.is_grpc
            {
                let spent = began.saturating_sub(self.exchange.began());
                grpc_timeout::pass_on(self.request.headers_mut(), total.saturating_sub(spent));
            }
            if self.exchange.completion.record.trace.is_some() {
                self.exchange.write_parent(self.request.headers_mut());
            }
            let outcome = match connection {
                UpstreamConnection::Http1(pooled) => self.send_http1(pooled).await,
                UpstreamConnection::Http2(stream_slot) => {
                    self.send_http2(stream_slot, requested).await
                }
            };
            // Decided by the status alone: the response is large, and would be moved twice.
            let tried = if let AttemptOutcome::Answered(answered) = &outcome
                && self.takes_retry_after(answered.status())
            {
                AttemptOutcome::RetryNext
            } else {
                outcome
            };
            match tried {
                AttemptOutcome::Answered(answered) => {
                    self.answered(began);
                    recycle_map(std::mem::take(self.request.headers_mut()));
                    return Ok(answered);
                }
                AttemptOutcome::RetrySame => {}
                AttemptOutcome::RetryNext => {
                    self.tried.push(target);
                    target = self.untried().unwrap_or(target);
                }
                AttemptOutcome::Failed(problem) => {
                    self.record_failure(&problem);
                    return Err(problem);
                }
            }
        }
    }

    /// The target to connect to after `fault` of a connect to `target`, which is recorded.
    #[cold]
    fn after_failed_connect(&mut self, target: u16, fault: &ConnectError) -> Result<u16, Problem> {
        let upstream = self.to.upstream;
        let label = upstream.targets.get(usize::from(target));
        let label = label.map_or("", |target| &target.label);
        let problem = connect_problem(fault, &upstream.name, label);
        if problem.reason().blame() == Blame::Target {
            reachability::failed(self.exchange.worker(), upstream, target, fault);
        }
        self.next_target(target, problem)
    }

    /// Start of the attempt. The first one on a pooled connection uses the start of the exchange if
    /// the request did not wait: the difference is the time of deciding, which is not worth another
    /// reading of the clock.
    fn began(&self, connection: &UpstreamConnection) -> Duration {
        let at_hand = matches!(connection, UpstreamConnection::Http1(pooled) if pooled.at_hand);
        let is_first = self.tried.is_empty() && self.exchange.completion.record.retry.count == 0;
        if at_hand && is_first && !may_have_waited(self.exchange, self.to.route) {
            return self.exchange.began();
        }
        self.exchange.worker().time.elapsed()
    }

    fn answered(&mut self, began: Duration) {
        let now = self.exchange.worker().time.elapsed();
        let took = now.saturating_sub(began);
        self.exchange.record().upstream_took = Some(took);
        self.observe_latency(took, now);
        if let Some((upstream, _)) = self.exchange.last_attempt() {
            upstream.metrics.answered(took);
        }
    }

    /// Reports the latency of the target, if the load balancer uses it.
    #[inline]
    fn observe_latency(&self, took: Duration, now: Duration) {
        let upstream = self.to.upstream;
        if upstream.balancing.balancer != LoadBalancer::PeakEwma {
            return;
        }
        let called = self.exchange.completion.record.parts.upstream;
        let target = called.and_then(|(_, target)| upstream.targets.get(usize::from(target)));
        if let Some(target) = target {
            let now_ns = self.exchange.worker().time.process_ns(now);
            target.state.latency().observe(took, now_ns);
        }
    }

    /// The response, with as much of its body as may be buffered.
    async fn hold_response(
        &mut self,
        answered: Answered,
        requested: Option<&RequestedUpgrade>,
    ) -> Result<Response<Body>, Problem> {
        let mut response = self.build_response(answered, requested)?;
        let buffer = self.exchange.worker().body_buffer();
        let max_bytes = self.to.route.max_body_buffer_bytes;
        match held_response::buffer_response(&mut response, buffer, max_bytes).await {
            Ok(()) => Ok(response),
            Err(Interruption::Own(problem)) => Err(problem),
            Err(Interruption::Upstream(fault)) => Err(self.problem(&fault)),
        }
    }

    /// Records a response with `status`, and settles the breaker's permit: a success only once its
    /// body has arrived. `built` has the problem of a response that cannot be forwarded.
    fn settle(&mut self, status: StatusCode, built: &Result<Response<Body>, Problem>) {
        let response = match built {
            Ok(response) => response,
            Err(problem) => {
                self.record_failure(problem);
                return self.settle_failure(problem);
            }
        };
        let failed = status.is_server_error();
        if !failed && response.body().awaits_target() && self.postpone_outcome(response) {
            return;
        }
        self.exchange.observe_outcome(self.to.upstream, failed);
        circuit_breaker::record_outcome(self.exchange, Some(failed));
    }

    /// Postpones the outcome of a response that has only begun to the end of its body. Returns
    /// whether nothing is to be recorded yet. A client that reads slowly does not hold the probe
    /// slot of a half-open breaker.
    #[cold]
    fn postpone_outcome(&mut self, response: &Response<Body>) -> bool {
        let record = self.exchange.record();
        if record.kind != ExchangeKind::Request {
            return false;
        }
        if held_response::is_stream(response) {
            record.target_outcome = TargetOutcome::OnFailure;
            return false;
        }
        record.target_outcome = TargetOutcome::AtEnd;
        if record.breaker.as_ref().is_none_or(BreakerPermit::is_probe) {
            circuit_breaker::record_outcome(self.exchange, Some(false));
        }
        true
    }

    /// Settles the breaker's permit of a request that failed, and takes its head back for its
    /// record.
    fn settle_failure(&mut self, problem: &Problem) {
        self.exchange.restore_target(&mut self.request);
        let failed = self.is_targets_fault(problem.reason()).then_some(true);
        circuit_breaker::record_outcome(self.exchange, failed);
    }

    /// Writes locations and cookies back, if the route rewrites paths.
    #[inline]
    fn write_back(&self, headers: &mut HeaderMap) {
        let Some(rewrite) = &self.to.route.rewrite else {
            return;
        };
        let edits = header_edits::for_request(self.exchange.edits.as_deref(), self.to.route);
        // After a failed connect it is another one than was chosen.
        let reached = self.exchange.completion.record.parts.upstream;
        let reached = reached.map_or(self.to.choice.target, |(_, target)| target);
        let target = self.to.upstream.targets.get(usize::from(reached));
        let names = written_back::Names {
            origin: self.exchange.client_origin.as_deref().unwrap_or_default(),
            set_host: written_back::set_host(edits),
            target: target.map_or("", |target| &target.authority),
        };
        written_back::apply(rewrite, names, headers);
    }

    fn build_response(
        &mut self,
        answered: Answered,
        requested: Option<&RequestedUpgrade>,
    ) -> Result<Response<Body>, Problem> {
        let route = self.to.route;
        if let Some((status, headers)) = answered.by_http2() {
            check_http2_head(status, headers, &self.to.upstream.name)?;
        }
        let (mut head, body) = match answered {
            Answered::Http1(_, PooledConnection { mut connection, .. }) => {
                let (mut head, fields) = connection.take_answer().into_parts();
                self.exchange.record().verbatim = fields;
                if head.status == StatusCode::SWITCHING_PROTOCOLS {
                    if !connection.has_sent_all() {
                        // The rest of the body would be taken for bytes of the tunnel.
                        let detail = Detail::text("a switch before the end of the request");
                        return Err(Problem::new(Reason::UnaskedUpgrade, detail));
                    }
                    self.write_back(&mut head.headers);
                    return upgrade::switch(self.exchange, route, connection, head, requested);
                }
                let pool = Rc::clone(&self.pool);
                (head, ResponseBody::new(connection, pool))
            }
            Answered::Http2(response, call) => {
                let (head, stream) = response.into_parts();
                (head, ResponseBody::streamed(stream, call))
            }
            Answered::Tunnel(response, tunnel) => {
                let (mut head, ()) = response.into_parts();
                self.write_back(&mut head.headers);
                return upgrade::open(self.exchange, route, tunnel, head, requested);
            }
            Answered::Refusal(response) => {
                let (mut head, ()) = response.into_parts();
                self.write_back(&mut head.headers);
                upgrade::remove_content_fields(&mut head.headers);
                response_head::apply(self.exchange.response_edits(route), &mut head);
                return Ok(Response::from_parts(head, Body::bytes(Bytes::new())));
            }
        };
        if head.status.is_success() && requested.is_some_and(RequestedUpgrade::is_bootstrapped) {
            // The client would take it for the beginning of its tunnel.
            let detail = Detail::name(&*self.to.upstream.name);
            return Err(Problem::new(Reason::UpgradeDeclined, detail));
        }
        self.write_back(&mut head.headers);
        let client = self.exchange.head.version;
        let required = response_head::required_upgrade(&head, client);
        response_head::apply(self.exchange.response_edits(route), &mut head);
        if let Some(protocols) = required.filter(|_| !self.exchange.is_for_store) {
            response_head::require_upgrade(protocols, &mut head.headers);
        }
        let Destination {
            upstream, choice, ..
        } = &self.to;
        if !self.exchange.is_for_store {
            sticky_cookie::apply(self.exchange, upstream, choice, &mut head.headers);
        }
        self.timers.stop();
        if let Some(upload) = &self.upload {
            upload.response_began();
        }
        let body = Body::upstream(body, self.timers.clone(), route.timeouts.read);
        Ok(Response::from_parts(head, body))
    }
}

/// Refuses a response over HTTP/2 that would be invalid over HTTP/1.1.
#[inline]
fn check_http2_head(
    status: StatusCode,
    headers: &HeaderMap,
    upstream: &str,
) -> Result<(), Problem> {
    if status.as_u16() > 599 {
        // There is no such class. [RFC 9110 §15]
        return Err(Problem::new(Reason::BadStatusLine, Detail::name(upstream)));
    }
    http2_fields::check(headers).map_err(|unfit| unfit_response(unfit, upstream))
}

/// Advances the worker's rotation past `target`.
fn advance(exchange: &Exchange, active: &ActivePlan, upstream: &UpstreamPlan, target: u16) {
    let view = WorkerView {
        worker: exchange.worker(),
        active,
        now: exchange.began(),
    };
    if let Some(state) = view.balancer(upstream) {
        upstream.balancing.balancer.advance(&state, target);
    }
}

/// Forwards a request body within the route's limits and timeouts; with `any_rate`, any progress
/// resets the timer.
pub(crate) fn upload(
    exchange: &Exchange,
    route: &RoutePlan,
    any_rate: bool,
    body: ClientBody,
    timers: &RequestTimers,
) -> (RequestBody, Rc<Progress>) {
    let body_idle = exchange
        .listener()
        .map_or(route.timeouts.read, |listener| listener.body_idle_timeout);
    let timeouts = UploadTimeouts {
        body_idle,
        any_rate,
        write: route.timeouts.read,
        response: within_try(route, route.timeouts.response),
    };
    let limits = BodyLimits {
        max_bytes: route.max_body_bytes,
        setting: route.max_body_setting,
        trailers: FieldLimits::from(&exchange.active().plan.model().limits),
    };
    RequestBody::new(body, limits, timeouts, timers.clone())
}

/// Returns true if the proxy may retry a request: no body and an idempotent method. [RFC 9110
/// §9.2.2]
fn may_repeat(method: &Method, has_body: bool) -> bool {
    !has_body && method.is_idempotent()
}

/// The kind of response to expect. Its fields are forwarded as received if nothing edits them and
/// the client uses HTTP/1.x.
fn expected(exchange: &Exchange, to: Destination<'_>, upgrade: bool) -> ExpectedResponse {
    ExpectedResponse {
        to: kind(&exchange.head.method, upgrade),
        is_verbatim: to.route.is_plain()
            && exchange.client().exclusive
            && to.upstream.balancing.sticky.is_none()
            && !advertises_http3(exchange)
            && !invalidates(exchange),
    }
}

/// Returns true if the response gets an `Alt-Svc` field, which replaces the upstream's.
#[inline]
fn advertises_http3(exchange: &Exchange) -> bool {
    let listener = exchange.listener();
    listener.is_some_and(|listener| listener.alt_svc.is_some())
}

/// Returns true if the response may invalidate stored responses, including the URLs in its fields.
#[inline]
fn invalidates(exchange: &Exchange) -> bool {
    exchange.active().plan.cache().is_some() && !exchange.head.method.is_safe()
}

fn kind(method: &Method, upgrade: bool) -> RequestKind {
    match (upgrade, *method == Method::HEAD) {
        (true, _) => RequestKind::Upgrade,
        (false, true) => RequestKind::Head,
        (false, false) => RequestKind::Other,
    }
}
