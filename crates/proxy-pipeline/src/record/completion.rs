//! The end of an exchange, normal or not: permits are released and its record is written.

use crate::failure::{exchange_problem, malformed_body, timeout_problem};
use crate::headers::names;
use crate::limits::request_permits::{RequestPermits, RoutePermit};
use crate::record::agent_record::{AgentRecord, UNNUMBERED};
use crate::record::error_log::{ErrorContext, log_problem};
use crate::record::exchange_record::{ExchangeKind, ExchangeRecord, TargetOutcome};
use crate::worker::cache_counters::CacheOutcome;
use crate::worker::connection_info::ConnectionInfo;
use crate::worker::plan_parts::Origin;
use crate::worker::removed_parts::ReloadWatch;
use crate::worker::state::{Draining, Worker};
use agent_protocol::Completion;
use http::{HeaderMap, HeaderName};
use proxy_errors::{Blame, Detail, Problem, Reason};
use proxy_limits::ClientKey;
use proxy_model::RetryCause;
use proxy_pool::SendError;
use proxy_telemetry::{AccessLogHead, AccessRecord, Outcome, Protocol};
use std::rc::Rc;
use std::time::Duration;

/// Ends the exchange on drop.
#[derive(Debug)]
pub(crate) struct CompletionGuard {
    pub(crate) worker: Rc<Worker>,
    pub(crate) origin: Origin,
    pub(crate) watch: ReloadWatch,
    pub(crate) client: Rc<ConnectionInfo>,
    pub(crate) record: ExchangeRecord,
}

impl CompletionGuard {
    /// The problem of a response that ended early; the client's own error has precedence.
    pub(crate) fn interrupted(&self, fault: &SendError) -> Problem {
        let upload = self.record.upload.as_ref();
        let upload = upload.and_then(|progress| progress.fault.get());
        exchange_problem(fault, self.upstream_name(), upload, self.client.fault.get())
    }

    /// Name of the last upstream, else of the route's; empty if there is none.
    pub(crate) fn upstream_name(&self) -> &str {
        self.origin
            .upstream_name(self.record.parts)
            .unwrap_or_default()
    }

    /// Removes the fields from a target's trailers that the route, an agent or the proxy decided on
    /// in the head.
    #[cold]
    pub(crate) fn remove_edited(&self, trailers: &mut HeaderMap) {
        let by_route = self.origin.edited_fields(self.record.parts);
        let by_agents = self.record.agents.as_ref();
        let is_edited = |name: &HeaderName| {
            names::is_own(name)
                || by_route.is_some_and(|fields| fields.has(name))
                || by_agents.is_some_and(|agents| agents.response_fields.contains(name))
        };
        while let Some(name) = trailers.keys().find(|name| is_edited(name)) {
            let name = name.clone();
            trailers.remove(name);
        }
    }

    /// Counts the request at its target.
    pub(crate) fn enter_target(&mut self) {
        if !std::mem::replace(&mut self.record.connected, true)
            && let Some(target) = self.origin.target_metrics(self.record.parts)
        {
            target.active.add(1);
        }
    }

    /// Ends the count at the target.
    pub(crate) fn leave_target(&mut self) {
        if std::mem::take(&mut self.record.connected)
            && let Some(target) = self.origin.target_metrics(self.record.parts)
        {
            target.active.sub(1);
        }
    }

    /// Counts the exchange as a connection from now on, and no longer as a request in flight. A
    /// tunnel over an HTTP/2 stream takes a separate permit from the route's connection limit; if
    /// none is left, it keeps counting as a request.
    pub(crate) fn become_tunnel(&mut self) {
        if !self.client.exclusive {
            let limit = self.origin.route_connections(self.record.parts);
            let client = || ClientKey::from(self.record.client_ip);
            let Some(permit) = limit.and_then(|limit| limit.acquire(client).ok()) else {
                return;
            };
            self.record.permits.route = Some(RoutePermit::Own(permit));
        }
        self.record.kind = ExchangeKind::Tunnel;
        self.record.permits.in_flight = None;
        self.worker.metrics.requests_in_flight.sub(1);
        self.worker.metrics.tunnels.add(1);
    }

    /// The problem for which the stream must end now, because its route or target was removed.
    #[inline]
    pub(crate) fn removed(&mut self) -> Option<Problem> {
        let reloads = self.worker.reloads.get();
        if self.watch.is_quiet(reloads) {
            return None;
        }
        self.check_reloads(reloads)
    }

    #[cold]
    fn check_reloads(&mut self, reloads: u32) -> Option<Problem> {
        self.origin.extract(self.record.parts);
        let lost = self.origin.lost(self.record.parts, &self.worker.active());
        let removals = self.worker.removals.borrow();
        let reason = self.watch.check(reloads, lost.as_ref(), &removals)?;
        Some(Problem::new(reason, Detail::None))
    }

    /// Counts the time until the first byte of a streamed body.
    #[cold]
    pub(crate) fn count_stream(&self) {
        if self.record.kind == ExchangeKind::Request {
            let waited = self.worker.time.elapsed().saturating_sub(self.record.began);
            self.origin.route_metrics(self.record.parts).stream(waited);
        }
    }

    fn settle(&mut self) {
        let metrics = &self.worker.metrics;
        match self.record.kind {
            ExchangeKind::Request => metrics.requests_in_flight.sub(1),
            ExchangeKind::Tunnel => metrics.tunnels.sub(1),
            ExchangeKind::Copy => return self.leave_target(),
        }
        let now = self.worker.time.elapsed();
        self.client
            .in_flight
            .set(self.client.in_flight.get().saturating_sub(1));
        if !self.watch.is_current(self.worker.former.get()) {
            metrics.requests_of_former_configurations.sub(1);
        }
        self.record.permits = RequestPermits::default();
        self.record.load = None;
        let aborted = self.attribute_to_client();
        if self.record.target_outcome != TargetOutcome::AtHead {
            self.record_target_outcome();
        }
        self.leave_target();
        let status = self.status();
        let is_ours = |problem: &Problem| problem.reason().blame() != Blame::Client;
        let failed =
            self.record.problem.as_deref().is_some_and(is_ours) && !aborted || status >= 500;
        let took = now.saturating_sub(self.record.began);
        let outcome = Outcome {
            status,
            took,
            bytes_in: self.bytes_in(),
            bytes_out: self.record.bytes_out,
            failed,
            aborted,
        };
        self.origin
            .route_metrics(self.record.parts)
            .record(&outcome);
        if let Some(problem) = &self.record.problem {
            let reason = u16::try_from(problem.reason().index()).unwrap_or(u16::MAX);
            self.origin.route_metrics(self.record.parts).fail(reason);
            self.record_problem(problem, status, took);
        }
        let recorded_head = self.record.recorded_head.take();
        let access_head = self.record.access_head.take();
        if access_head.is_some() || recorded_head.is_some() {
            self.record_access(access_head, recorded_head, &outcome, now);
        }
        if self.record.trace.is_some() {
            self.export_span(&outcome, now);
        }
        if self.record.agents.is_some() {
            self.complete_agents(&outcome);
        }
    }

    #[cold]
    fn complete_agents(&mut self, outcome: &Outcome) {
        let problem = self.record.problem.as_deref();
        let reason = problem.map(|problem| problem.reason().as_str());
        let completion = Completion {
            id: UNNUMBERED,
            status: self.record.status.map(|status| status.as_u16()),
            reason: reason.map(Into::into),
            request_bytes: outcome.bytes_in,
            response_bytes: outcome.bytes_out,
            duration_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
        };
        if let Some(agents) = &mut self.record.agents {
            agents.complete(&completion);
        }
    }

    /// Attributes an exchange without a complete response, and without another cause, to the
    /// client, unless this worker ends. Returns whether it did.
    fn attribute_to_client(&mut self) -> bool {
        let record = &mut self.record;
        if record.problem.is_none() && (record.status.is_none() || !record.complete) {
            let problem = match self.client.timed_out.get() {
                Some((timer, after)) => timeout_problem(timer, after),
                None if self.client.malformed.get() => malformed_body(violation(record.protocol)),
                None if self.worker.draining.get() == Draining::Cut => {
                    Problem::new(Reason::Draining, Detail::None)
                }
                None => Problem::new(Reason::ClientAborted, Detail::None),
            };
            record.problem = Some(Box::new(problem));
        }
        let problem = record.problem.as_ref();
        problem.is_some_and(|problem| problem.reason() == Reason::ClientAborted)
    }

    /// The status of the response; of an exchange without one, 499 if the client ended it.
    fn status(&self) -> u16 {
        let problem = self.record.problem.as_deref();
        let cut = problem.filter(|problem| problem.reason() == Reason::Draining);
        let status = self.record.status.or(cut.map(Problem::status));
        status.map_or(499, |status| status.as_u16())
    }

    fn bytes_in(&self) -> u64 {
        let upload = self.record.upload.as_ref();
        upload.map_or(0, |progress| progress.bytes.get()) + self.record.tunnelled_in
    }

    #[cold]
    fn record_problem(&self, problem: &Problem, status: u16, took: Duration) {
        let upstream = self.upstream_name();
        let error_head = self.record.error_head.as_deref();
        let context = ErrorContext {
            at: self.worker.time.unix(self.record.began + took),
            took,
            correlation_id: self.record.correlation_id.as_str(),
            trace_id: self.record.trace.as_deref().map(|trace| &trace.id),
            client_ip: self.record.client_ip,
            status,
            upstream: Some(upstream).filter(|name| !name.is_empty()),
            target: self.origin.target_label(self.record.parts),
            head: self.record.access_head.as_ref().or(error_head),
            route: self.origin.route_id(self.record.parts),
        };
        log_problem(&self.worker, problem, &context);
    }

    /// The context of a limit that the request reached at `now`, for its record.
    pub(crate) fn limit_context(&self, problem: &Problem, now: Duration) -> ErrorContext<'_> {
        ErrorContext {
            at: self.worker.time.unix(now),
            took: Duration::ZERO,
            correlation_id: self.record.correlation_id.as_str(),
            trace_id: self.record.trace.as_deref().map(|trace| &trace.id),
            client_ip: self.record.client_ip,
            status: problem.status().as_u16(),
            upstream: None,
            target: None,
            head: None,
            route: self.origin.route_id(self.record.parts),
        }
    }

    /// Writes the request's line to the access log and to the recording, if they are enabled.
    fn record_access(
        &self,
        access_head: Option<AccessLogHead>,
        recorded_head: Option<Box<AccessLogHead>>,
        outcome: &Outcome,
        now: Duration,
    ) {
        let record = &self.record;
        let peer = &self.client.peer;
        let other_ip = (record.client_ip != peer.ip).then(|| record.client_ip.to_string());
        let client_ip = other_ip.as_deref().map(str::as_bytes);
        let problem = record.problem.as_deref();
        let entry = AccessRecord {
            at: self.worker.time.unix(now),
            correlation_id: record.correlation_id.as_bytes(),
            route: self.origin.route_field(record.parts),
            target: self.origin.target_field(record.parts),
            client_ip: client_ip.unwrap_or(peer.ip_value.as_bytes()),
            status: outcome.status,
            took: outcome.took,
            bytes_in: outcome.bytes_in,
            bytes_out: outcome.bytes_out,
            protocol: record.protocol,
            reason: problem.map(|problem| problem.reason().as_str()),
            error_type: problem.map(|problem| problem.error_type().name()),
            retries: record.retry.count,
            retry_cause: record.retry.cause.map(RetryCause::name),
            is_retry_refused: record.retry.is_refused,
            queued: record.waits.queued(),
            connecting: record.waits.connecting(),
            upstream_took: record.upstream_took,
            cache: record.cache.map(CacheOutcome::name),
            trace_id: record.trace.as_deref().map(|trace| &trace.id[..]),
            agent: record
                .agents
                .as_deref()
                .and_then(AgentRecord::access_fields),
        };
        let logs = &mut *self.worker.logs.borrow_mut();
        if let Some(access_head) = access_head {
            logs.access.access(&entry, access_head);
        }
        if let Some(recorded_head) = recorded_head {
            logs.recording.access(&entry, *recorded_head);
        }
    }
}

/// The reason of a malformed message of `protocol`.
fn violation(protocol: Protocol) -> Reason {
    if protocol == Protocol::Http3 {
        return Reason::Http3ProtocolError;
    }
    Reason::Http2ProtocolError
}

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Exchange;
    use crate::headers::correlation::IdSource;
    use crate::headers::forwarded_headers::Peer;
    use crate::limits::in_flight_limit::InFlightLimit;
    use crate::record::exchange_record::AgreedUpgrade;
    use crate::response::body::Body;
    use crate::response::tunnel::SwitchedConnection;
    use crate::response::upgradable_response::Reply;
    use crate::upload::client_body::ClientBody;
    use crate::worker::active_plan::{ActivePlan, UpstreamConnectors};
    use crate::worker::challenge_tokens::ChallengeTokens;
    use crate::worker::connection_info::RequestStream;
    use crate::worker::state::{Logs, Shared};
    use crate::worker::time::Time;
    use http::{Request, Response};
    use proxy_clock::{Deadline, ProcessClock};
    use proxy_limits::{ConcurrencyLimit, ConnectionsByClient, KeySeed};
    use proxy_plan::{Plan, TargetRegistry};
    use proxy_pool::Tunnel;
    use proxy_pool::{ConnectSettings, UpstreamStream};
    use proxy_telemetry::{Lifecycle, Registry, RegistrySettings};
    use std::cell::Cell;
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::{Arc, Weak};
    use std::time::SystemTime;
    use tokio::net::TcpStream;

    fn registry() -> Arc<Registry> {
        Arc::new(Registry::new(RegistrySettings {
            reasons: &[],
            max_series: 10,
        }))
    }

    /// A plan with one route and one target.
    fn active(generation: u64, route: &str, registry: &Arc<Registry>) -> ActivePlan {
        let text = format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
             routes {{ route \"{route}\" {{ upstream \"u\" }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"127.0.0.1:81\" }} }}"
        );
        let loaded = proxy_config::parse(&text, "test.kdl").unwrap();
        let mut targets = TargetRegistry::default().begin();
        let plan = Plan::compile(generation, Arc::new(loaded.model), &mut targets);
        let settings = ConnectSettings {
            timeout: Duration::ZERO,
            tls: None,
            limit: None,
            proxy_header: None,
        };
        let connectors = vec![UpstreamConnectors {
            targets: vec![settings],
        }];
        ActivePlan::new(Arc::new(plan), connectors, Arc::default(), registry, 0)
    }

    #[test]
    fn accepted_credentials_outlast_new_addresses_of_a_name() {
        let registry = registry();
        let earlier = active(1, "a", &registry);
        let seed = || KeySeed { low: 1, high: 2 };
        let cache = earlier.credential_cache(0, seed);
        let connectors = earlier.upstreams.iter().map(|one| one.connectors.clone());
        let plan = Arc::clone(&earlier.plan);
        let resolved = earlier.resolved(plan, connectors.collect(), &registry, 0);
        assert!(Rc::ptr_eq(&resolved.credential_cache(0, seed), &cache));
    }

    fn worker(active: ActivePlan, registry: &Arc<Registry>) -> Rc<Worker> {
        let shared_registry = Arc::clone(registry);
        let lifecycle = Lifecycle::new(
            "1",
            "abc",
            shared_registry,
            SystemTime::UNIX_EPOCH,
            Duration::default,
        );
        let shared = Shared {
            in_flight: Arc::new(InFlightLimit::new(10, 10, KeySeed { low: 1, high: 2 })),
            connections: ConcurrencyLimit::new(10),
            health_changes: Arc::default(),
            target_changes: Arc::default(),
            clients: Arc::new(ConnectionsByClient::new(10, KeySeed { low: 1, high: 2 })),
            memory: Arc::default(),
            clock: ProcessClock::starting_at(0, Duration::ZERO),
            hashes: Arc::default(),
            challenges: ChallengeTokens::default(),
            lifecycle: Arc::new(lifecycle),
            spans: Arc::default(),
        };
        let metrics = registry.worker(0);
        let worker = Worker::new(
            Arc::new(shared),
            Time::start(),
            IdSource::new([7; 32]),
            active,
            metrics,
            Logs::off(),
        );
        Rc::new(worker)
    }

    async fn tunnel() -> Tunnel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
        Tunnel {
            transport: UpstreamStream::Tcp(stream.unwrap()),
            early: bytes::Bytes::new(),
            stream_slot: None,
        }
    }

    /// A request with a protocol switch that its target has agreed to.
    async fn agreed(worker: &Rc<Worker>) -> Exchange {
        let peer = Peer::new(Ipv4Addr::LOCALHOST.into(), false, &[]);
        let listener = Rc::new(Cell::new(0));
        let client = ConnectionInfo::new(listener, peer, true, Rc::default());
        let stream = RequestStream {
            client: Rc::new(client),
            deadline: Rc::<Deadline>::default(),
        };
        let (head, ()) = Request::new(()).into_parts();
        let mut exchange =
            Exchange::begin(Rc::clone(worker), stream, head, None, ClientBody::Empty);
        let plan = Rc::clone(exchange.active());
        exchange.set_route(&plan.plan.routes()[0]);
        exchange.record_attempt(0, 0);
        exchange.record().upgrade = Some(Box::new(AgreedUpgrade {
            tunnel: tunnel().await,
            permit: None,
            idle: Duration::from_mins(1),
        }));
        exchange
    }

    /// The tunnel that follows `response`, the one to `exchange`.
    fn finish(exchange: Exchange, response: Response<Body>) -> Option<Box<SwitchedConnection>> {
        let Exchange {
            completion,
            is_grpc,
            ..
        } = exchange;
        Reply::finish(completion, is_grpc, response).upgrade
    }

    #[tokio::test]
    async fn an_error_response_ends_the_upgrade_that_was_agreed_to() {
        let registry = registry();
        let worker = worker(active(1, "route", &registry), &registry);
        let mut exchange = agreed(&worker).await;

        let response = exchange.refuse(Problem::new(Reason::InternalError, Detail::None));

        assert!(finish(exchange, response).is_none());
    }

    #[tokio::test]
    async fn a_tunnel_outlives_the_plan_that_it_began_under() {
        let registry = registry();
        let worker = worker(active(1, "old", &registry), &registry);
        let plan: Weak<Plan> = Arc::downgrade(&worker.active().plan);
        let exchange = agreed(&worker).await;
        let response = Response::new(Body::bytes(bytes::Bytes::new()));
        let mut tunnel = finish(exchange, response).unwrap();
        assert!(plan.upgrade().is_some());

        worker.apply(active(2, "new", &registry));

        assert!(plan.upgrade().is_none(), "something holds the old plan");
        assert_eq!(tunnel.completion.upstream_name(), "u");
        assert_eq!(
            tunnel
                .completion
                .origin
                .route_id(tunnel.completion.record.parts),
            Some("old")
        );
        // The time to drain is not over.
        assert!(tunnel.completion.removed().is_none());
        worker.clock.advance_to(Duration::from_hours(1));
        worker.end_removed();
        let problem = tunnel.completion.removed().unwrap();
        assert_eq!(problem.reason().as_str(), "route_removed");
    }
}
