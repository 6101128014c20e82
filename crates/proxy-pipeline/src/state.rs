//! State of a worker, and state shared by all workers.

use crate::admission::Admission;
use crate::correlation::IdSource;
use crate::date::DateCache;
use crate::disk::Disks;
use crate::host_value::HostValue;
use crate::in_flight_limit::InFlightLimit;
use crate::removal::Removals;
use crate::request_body::RequestBody;
use crate::route_limits::RouteLimits;
use crate::shadow_counters::{MAX_COPIES, ShadowCounters};
use crate::time::Time;
use crate::trace_context::Sampling;
use proxy_agent::AgentClient;
use proxy_clock::{Clock, ProcessClock, TimerRegistry};
use proxy_files::Directory;
use proxy_framing::HeadLimits;
use proxy_limits::{ConcurrencyLimit, ConnectionsByClient, MemoryLimit, RetryBudget};
use proxy_model::{Observability, Route, Service, StaticFiles, TraceContext};
use proxy_plan::{Plan, TargetIdentity, UpstreamPlan};
use proxy_pool::{ConnectSettings, Pool};
use proxy_telemetry::{
    AccessFormat, AgentMetrics, EscapedFields, Lifecycle, OptionalField, Registry, RouteTable,
    TargetMetrics, UpstreamMetrics, WorkerLog, WorkerMetrics,
};
use proxy_upstream::{ActiveRequest, HealthyTargets, Rotation, TargetState};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// State shared by all workers.
#[derive(Debug)]
pub struct Shared {
    /// Requests in flight over all workers.
    pub in_flight: Arc<InFlightLimit>,
    /// Client connections over all workers.
    pub connections: ConcurrencyLimit,
    /// Client connections of each client over all workers.
    pub clients: ConnectionsByClient,
    /// Whether the process uses too much memory.
    pub memory: Arc<MemoryLimit>,
    /// The time that state of all workers goes by.
    pub clock: ProcessClock,
    /// Told when a worker has ejected a target: all workers are to look again.
    pub health_changes: Arc<Notify>,
    /// State of the process.
    pub lifecycle: Arc<Lifecycle>,
}

/// State of one worker. Not `Send`.
#[derive(Debug)]
pub struct Worker {
    /// State shared by all workers.
    pub shared: Arc<Shared>,
    /// The worker's precise time.
    pub time: Time,
    /// The worker's coarse clock, in ticks.
    pub clock: Rc<Clock>,
    /// The deadlines of all its connections and streams.
    pub timers: Rc<TimerRegistry>,
    /// Connections to targets.
    pub pool: Rc<Pool<RequestBody>>,
    /// The worker's metrics.
    pub metrics: Arc<WorkerMetrics>,
    /// The worker's ends of the logs.
    pub logs: RefCell<Logs>,
    /// The requests that it serves, and those that wait for that.
    pub admission: Rc<Admission>,
    /// The copies of requests under way.
    pub(crate) shadows: ConcurrencyLimit,
    /// Whether its connections are to end.
    pub draining: Cell<Draining>,
    /// Idle connections that are to close, so that new ones get their descriptors.
    idle_to_close: Cell<u32>,
    pub(crate) ids: IdSource,
    pub(crate) date: DateCache,
    pub(crate) host: HostValue,
    pub(crate) disks: Disks,
    active: RefCell<Rc<ActivePlan>>,
    /// Number of plans applied after the first.
    pub(crate) reloads: Cell<u32>,
    pub(crate) removals: RefCell<Removals>,
}

/// How a worker's connections end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draining {
    /// They do not.
    No,
    /// With their next response, so that no client loses a request on an idle connection.
    Gently,
    /// As soon as they have no request in flight.
    Promptly,
}

/// A worker's ends of the logs.
#[derive(Debug)]
pub struct Logs {
    /// One line per request.
    pub access: WorkerLog,
    /// Failures and reached limits.
    pub errors: WorkerLog,
    /// Warnings are written too.
    pub warnings: bool,
}

impl Logs {
    /// Logs that are off.
    #[must_use]
    pub fn off() -> Self {
        Self {
            access: WorkerLog::off(),
            errors: WorkerLog::off(),
            warnings: false,
        }
    }

    /// Sends pending lines.
    pub fn flush(&mut self) {
        self.access.flush();
        self.errors.flush();
    }
}

/// A plan with one worker's state for it.
#[derive(Debug)]
pub struct ActivePlan {
    /// The plan.
    pub plan: Arc<Plan>,
    pub(crate) routes: RouteTable,
    pub(crate) upstreams: Vec<ActiveUpstream>,
    /// By position of the agent.
    pub(crate) agents: Vec<ActiveAgent>,
    /// By position of the route.
    pub(crate) limits: Arc<[RouteLimits]>,
    /// By position of the route; `None` for routes without copies.
    pub(crate) shadows: Vec<Option<ShadowCounters>>,
    /// Header limits are answered 431.
    pub(crate) standard_statuses: bool,
    /// How traces begin here; `None` begins none.
    pub(crate) traces: Option<Sampling>,
    /// Format of access records; `None` if the log is off.
    pub(crate) access_format: Option<AccessFormat>,
    /// Routes in the form of access records, by index; empty if the log is off.
    pub(crate) route_fields: EscapedFields,
    pub(crate) response_limits: HeadLimits,
    /// By index of the route; `None` for routes without static files.
    pub(crate) folders: Vec<Option<Arc<Directory>>>,
    /// Created when a stream of an older plan needs it.
    route_ids: OnceCell<HashSet<Arc<str>>>,
    target_identities: OnceCell<HashSet<Arc<TargetIdentity>>>,
}

/// An agent with one worker's state for it.
#[derive(Debug)]
pub(crate) struct ActiveAgent {
    pub(crate) client: Rc<AgentClient>,
    pub(crate) metrics: Arc<AgentMetrics>,
}

/// An upstream with one worker's state for it.
#[derive(Debug)]
pub(crate) struct ActiveUpstream {
    pub(crate) rotation: Rotation,
    /// Requests, retries not included, that the retry budget has been told of.
    budgeted: Cell<u64>,
    pub(crate) ready: RefCell<HealthyTargets>,
    pub(crate) metrics: Arc<UpstreamMetrics>,
    pub(crate) targets: Vec<Arc<TargetMetrics>>,
    pub(crate) connectors: UpstreamConnectors,
    /// Its targets in the form of access records, by index; empty if the log is off.
    pub(crate) target_fields: EscapedFields,
    /// The upstream without a target in that form.
    pub(crate) upstream_field: EscapedFields,
}

/// Connection settings of an upstream's targets.
#[derive(Clone, Debug)]
pub struct UpstreamConnectors {
    /// By index of the target.
    pub targets: Vec<ConnectSettings>,
}

impl ActivePlan {
    /// `plan` for the worker with this number, with the connectors of its upstreams and the limits of
    /// its routes.
    #[must_use]
    pub fn new(
        plan: Arc<Plan>,
        connectors: Vec<UpstreamConnectors>,
        limits: Arc<[RouteLimits]>,
        registry: &Arc<Registry>,
        worker: usize,
    ) -> Self {
        let ids = plan.routes().iter().map(|route| Arc::clone(&route.id));
        let upstreams = plan.upstreams().iter().zip(connectors);
        let upstreams = upstreams.map(|(upstream, connectors)| {
            ActiveUpstream::new(upstream, connectors, registry, worker)
        });
        let mut upstreams: Vec<_> = upstreams.collect();
        let model = plan.model();
        let access_format = access_format(&model.observability);
        let mut route_fields = EscapedFields::default();
        if access_format.is_some() {
            route_fields = EscapedFields::of_routes(plan.routes().iter().map(|route| &*route.id));
            for (upstream, active) in plan.upstreams().iter().zip(&mut upstreams) {
                let labels = upstream.targets.iter().map(|target| &*target.label);
                active.target_fields = EscapedFields::of_targets(&upstream.name, labels);
                active.upstream_field = EscapedFields::of_upstream(&upstream.name);
            }
        }
        Self {
            shadows: plan
                .routes()
                .iter()
                .map(|route| ShadowCounters::of(route, registry))
                .collect(),
            routes: RouteTable::new(Arc::clone(registry), worker, ids.collect()),
            upstreams,
            agents: active_agents(&plan, registry, worker),
            limits,
            standard_statuses: *model.limits.standard_statuses,
            traces: traces(&model.observability.trace_context),
            access_format,
            route_fields,
            response_limits: RESPONSE_LIMITS,
            folders: model.routes.iter().map(folder).collect(),
            route_ids: OnceCell::new(),
            target_identities: OnceCell::new(),
            plan,
        }
    }

    /// The same configuration with other addresses of names, in `plan`, for the same worker.
    #[must_use]
    pub fn resolved(
        &self,
        plan: Arc<Plan>,
        connectors: Vec<UpstreamConnectors>,
        registry: &Arc<Registry>,
        worker: usize,
    ) -> Self {
        Self::new(plan, connectors, Arc::clone(&self.limits), registry, worker)
    }

    /// Takes over the connections to agents of `earlier` that this plan has too.
    fn adopt_agents(&mut self, earlier: &Self) {
        for own in &mut self.agents {
            let known = earlier.agents.iter();
            let mut known = known.map(|agent| &agent.client);
            if let Some(known) = known.find(|known| known.endpoint() == own.client.endpoint()) {
                own.client = Rc::clone(known);
            }
        }
    }

    /// Recomputes the healthy targets.
    pub fn refresh(&self) {
        for (upstream, active) in self.plan.upstreams().iter().zip(&self.upstreams) {
            active.ready.borrow_mut().refresh(weighted_states(upstream));
        }
    }

    /// Counts a request that the target has in hand from now on, where load balancing looks at that.
    #[inline]
    pub(crate) fn begin_request(&self, upstream: usize, target: u16) -> Option<ActiveRequest> {
        let upstream = self.plan.upstreams().get(upstream)?;
        if !upstream.balancing.balancer.reads_load() {
            return None;
        }
        let target = upstream.targets.get(usize::from(target))?;
        Some(target.state.load().begin())
    }

    pub(crate) fn has_route(&self, id: &str) -> bool {
        let all = || {
            let routes = self.plan.routes().iter();
            routes.map(|route| Arc::clone(&route.id)).collect()
        };
        self.route_ids.get_or_init(all).contains(id)
    }

    pub(crate) fn has_target(&self, identity: &TargetIdentity) -> bool {
        let all = || {
            let upstreams = self.plan.upstreams().iter();
            let targets = upstreams.flat_map(|upstream| &upstream.targets);
            targets.map(|target| Arc::clone(&target.identity)).collect()
        };
        self.target_identities.get_or_init(all).contains(identity)
    }
}

impl ActivePlan {
    /// Tells the retry budgets how many requests there were.
    pub fn settle_budgets(&self, now_ns: u64) {
        for (upstream, active) in self.plan.upstreams().iter().zip(&self.upstreams) {
            active.settle_budget(&upstream.retry_budget, now_ns);
        }
    }

    /// Updates the metrics of idle connections.
    pub fn publish_pools(&self, pool: &Pool<RequestBody>) {
        for (upstream, active) in self.plan.upstreams().iter().zip(&self.upstreams) {
            if upstream.http2 {
                let open = upstream.targets.iter();
                let open = open.map(|target| pool.http2_pool().open(target.id));
                let (size, idle) = open.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
                active.metrics.pool_size.set(size as u64);
                active.metrics.pool_idle.set(idle as u64);
                continue;
            }
            let idle = upstream.targets.iter().map(|target| {
                let idle = pool.idle(target.id);
                u64::try_from(idle).unwrap_or(u64::MAX)
            });
            let idle = idle.sum();
            let busy: u64 = active
                .targets
                .iter()
                .map(|metrics| metrics.active.get())
                .sum();
            active.metrics.pool_idle.set(idle);
            active.metrics.pool_size.set(idle + busy);
        }
    }
}

fn first_attempts(metrics: &UpstreamMetrics) -> u64 {
    metrics.attempts.get().wrapping_sub(metrics.retries.get())
}

impl ActiveUpstream {
    /// Tells the retry budget how many requests there were since it was last told.
    pub(crate) fn settle_budget(&self, budget: &RetryBudget, now_ns: u64) {
        let all = first_attempts(&self.metrics);
        let new = all.wrapping_sub(self.budgeted.replace(all));
        // A request between its first attempt and the count of its retry makes it fall by one.
        if matches!(new, 1..=0x7fff_ffff) {
            budget.record_requests(new, now_ns);
        }
    }

    fn new(
        upstream: &UpstreamPlan,
        connectors: UpstreamConnectors,
        registry: &Registry,
        worker: usize,
    ) -> Self {
        let targets = upstream.targets.iter();
        let cells = targets
            .clone()
            .map(|target| registry.target(worker, &upstream.name, &target.label));
        let metrics = registry.upstream(worker, &upstream.name);
        Self {
            budgeted: Cell::new(first_attempts(&metrics)),
            // Workers begin at different targets; otherwise the first requests would all go to the
            // first target.
            rotation: Rotation::new(
                upstream.targets.len(),
                u32::try_from(worker).unwrap_or_default(),
            ),
            ready: RefCell::new(HealthyTargets::of(weighted_states(upstream))),
            metrics,
            targets: cells.collect(),
            connectors,
            target_fields: EscapedFields::default(),
            upstream_field: EscapedFields::default(),
        }
    }
}

/// The state of each target, and its configured weight.
fn weighted_states(upstream: &UpstreamPlan) -> impl Iterator<Item = (&TargetState, u32)> {
    let targets = upstream.targets.iter();
    targets.map(|target| (&*target.state, target.weight))
}

impl Worker {
    /// A worker that starts with `active`.
    #[must_use]
    pub fn new(
        shared: Arc<Shared>,
        (time, ids): (Time, IdSource),
        active: ActivePlan,
        metrics: Arc<WorkerMetrics>,
        logs: Logs,
    ) -> Self {
        let clock = Rc::new(Clock::default());
        let limits = &active.plan.model().limits;
        let admission = Admission::new(Arc::clone(&shared.in_flight), limits, ids.key_seed());
        Self {
            shared,
            admission: Rc::new(admission),
            time,
            timers: Rc::default(),
            pool: Rc::new(Pool::new(Rc::clone(&clock))),
            clock,
            metrics,
            logs: RefCell::new(logs),
            draining: Cell::new(Draining::No),
            idle_to_close: Cell::new(0),
            ids,
            date: DateCache::default(),
            shadows: ConcurrencyLimit::new(MAX_COPIES),
            host: HostValue::default(),
            disks: Disks::default(),
            active: RefCell::new(Rc::new(active)),
            reloads: Cell::new(0),
            removals: RefCell::default(),
        }
    }

    /// Whether its connections are to end.
    #[inline]
    pub fn is_draining(&self) -> bool {
        self.draining.get() != Draining::No
    }

    /// Closes what is idle, since the process has no file descriptor left: connections to targets, and as
    /// many as 32 of clients.
    pub fn free_descriptors(&self) {
        self.pool.clear();
        self.idle_to_close.set(IDLE_CLOSED_AT_ONCE);
        self.timers.wake_all();
    }

    /// Ends the closing of idle connections, which is over by the next tick.
    pub fn keep_idle(&self) {
        self.idle_to_close.set(0);
    }

    /// Whether an idle connection of a client that asks is to close for its descriptor.
    #[inline]
    pub fn takes_descriptor(&self) -> bool {
        let left = self.idle_to_close.get();
        self.idle_to_close.set(left.saturating_sub(1));
        left > 0
    }

    /// The plan of new requests.
    #[must_use]
    #[inline]
    pub fn active(&self) -> Rc<ActivePlan> {
        Rc::clone(&self.active.borrow())
    }

    /// Activates `active` for new requests. Streams that depend on a removed route or target may
    /// continue for its grace period.
    pub fn apply(&self, mut active: ActivePlan) {
        active.adopt_agents(&self.active.borrow());
        let model = active.plan.model();
        self.admission.apply(&model.limits);
        let time = *model.system.graceful_shutdown_timeout;
        let end = self.clock.after(time);
        let mut removals = self.removals.borrow_mut();
        removals.apply(&self.active.borrow().plan, &active.plan, end);
        self.active.replace(Rc::new(active));
        self.reloads.set(self.reloads.get().wrapping_add(1));
        self.disks.forget_idle();
    }

    /// Ends streams with a removed route or target after their grace period.
    pub fn end_removed(&self) {
        if self.removals.borrow_mut().expire(self.clock.now()) {
            self.timers.wake_all();
        }
    }
}

/// Idle connections of clients that one shortage of descriptors closes on each worker.
const IDLE_CLOSED_AT_ONCE: u32 = 32;

/// Limits on a target's response head.
const RESPONSE_LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 64 * 1024,
    max_header_count: 256,
    max_name_bytes: 1024,
    max_value_bytes: 32 * 1024,
    max_target_bytes: 1024,
};

fn active_agents(plan: &Plan, registry: &Registry, worker: usize) -> Vec<ActiveAgent> {
    let agents = plan.agents().iter();
    let agents = agents.map(|agent| ActiveAgent {
        client: Rc::new(AgentClient::new(Arc::clone(&agent.endpoint))),
        metrics: registry.agent(worker, &agent.name),
    });
    agents.collect()
}

fn folder(route: &Route) -> Option<Arc<Directory>> {
    let StaticFiles {
        place: _,
        root,
        index,
        fallback,
        precompressed,
    } = match &route.service {
        Service::Static(files) => files,
        Service::Upstream(_) | Service::Builtin(_) => return None,
    };
    Some(Arc::new(Directory {
        root: root.value.clone(),
        index: index.as_str().into(),
        fallback: fallback.as_ref().map(|name| name.as_str().into()),
        precompressed: **precompressed,
    }))
}

fn traces(settings: &TraceContext) -> Option<Sampling> {
    let TraceContext {
        begin,
        sample_percent,
    } = settings;
    begin.then(|| Sampling::of(**sample_percent))
}

fn access_format(observability: &Observability) -> Option<AccessFormat> {
    let redact = observability.redact_query.iter();
    observability.access_log.enabled.then(|| AccessFormat {
        fields: vec![OptionalField::UserAgent, OptionalField::Referer],
        redact_query: redact.map(|name| name.value.clone()).collect(),
    })
}
