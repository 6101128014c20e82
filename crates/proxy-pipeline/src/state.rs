//! What a worker owns, and what all workers see.

use crate::correlation::IdSource;
use crate::date::DateCache;
use crate::disk::Disks;
use crate::host_value::HostValue;
use crate::removal::Removals;
use crate::request_body::RequestBody;
use crate::time::Time;
use proxy_clock::{Clock, TimerRegistry};
use proxy_files::Directory;
use proxy_framing::HeadLimits;
use proxy_limits::ConcurrencyLimit;
use proxy_model::{Observability, Route, Service, StaticFiles};
use proxy_plan::{Plan, TargetIdentity, UpstreamPlan};
use proxy_pool::{ConnectSettings, Pool};
use proxy_telemetry::{
    AccessFormat, EscapedFields, Lifecycle, OptionalField, Registry, RouteTable, TargetMetrics,
    UpstreamMetrics, WorkerLog, WorkerMetrics,
};
use proxy_upstream::HealthyTargets;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// What all workers see at once.
#[derive(Debug)]
pub struct Shared {
    /// Requests in flight over all workers.
    pub in_flight: ConcurrencyLimit,
    /// Client connections over all workers.
    pub connections: ConcurrencyLimit,
    /// What the process says of itself.
    pub lifecycle: Arc<Lifecycle>,
}

/// What one worker owns. Not `Send`.
#[derive(Debug)]
pub struct Worker {
    /// State seen by all workers.
    pub shared: Arc<Shared>,
    /// The worker's time, exactly.
    pub time: Time,
    /// The worker's time, in ticks.
    pub clock: Rc<Clock>,
    /// The deadlines of all its connections and streams.
    pub timers: Rc<TimerRegistry>,
    /// Idle connections to targets.
    pub pool: Rc<Pool<RequestBody>>,
    /// What it counts.
    pub metrics: Arc<WorkerMetrics>,
    /// What it writes down.
    pub logs: RefCell<Logs>,
    /// Whether its connections are to end.
    pub draining: Cell<Draining>,
    pub(crate) ids: IdSource,
    pub(crate) date: DateCache,
    pub(crate) host: HostValue,
    pub(crate) disks: Disks,
    active: RefCell<Rc<ActivePlan>>,
    /// Counts the plans that were adopted after the first.
    pub(crate) reloads: Cell<u32>,
    pub(crate) removals: RefCell<Removals>,
}

/// How a worker's connections are to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draining {
    /// They are not.
    No,
    /// With their next response, so that no client finds its connection closed under a request.
    Gently,
    /// As soon as nothing is in flight on them.
    Promptly,
}

/// A worker's ends of the logs.
#[derive(Debug)]
pub struct Logs {
    /// One line per request.
    pub access: WorkerLog,
    /// Failures and limits met.
    pub errors: WorkerLog,
    /// Whether those are written that no operator has to act on.
    pub warnings: bool,
}

impl Logs {
    /// Logs that go nowhere.
    #[must_use]
    pub fn off() -> Self {
        Self {
            access: WorkerLog::off(),
            errors: WorkerLog::off(),
            warnings: false,
        }
    }

    /// Hands over what has been written down.
    pub fn flush(&mut self) {
        self.access.flush();
        self.errors.flush();
    }
}

/// A plan as one worker carries it out.
#[derive(Debug)]
pub struct ActivePlan {
    /// The plan.
    pub plan: Arc<Plan>,
    pub(crate) routes: RouteTable,
    pub(crate) upstreams: Vec<ActiveUpstream>,
    /// Whether header limits are answered 431.
    pub(crate) standard_statuses: bool,
    /// How requests are written down; none where they are not.
    pub(crate) access_format: Option<AccessFormat>,
    /// Routes as access records have them, by position; none where there are no records.
    pub(crate) route_fields: EscapedFields,
    pub(crate) response_limits: HeadLimits,
    /// By position of the route; none for those that serve no files.
    pub(crate) folders: Vec<Option<Arc<Directory>>>,
    /// Made when a stream of an older plan asks.
    route_ids: OnceCell<HashSet<Arc<str>>>,
    target_identities: OnceCell<HashSet<Arc<TargetIdentity>>>,
}

/// An upstream as one worker calls it.
#[derive(Debug)]
pub(crate) struct ActiveUpstream {
    pub(crate) rr_counter: Cell<u32>,
    pub(crate) ready: RefCell<HealthyTargets>,
    pub(crate) metrics: Arc<UpstreamMetrics>,
    pub(crate) targets: Vec<Arc<TargetMetrics>>,
    pub(crate) connectors: UpstreamConnectors,
    /// Its targets as access records have them, by position; none where there are no records.
    pub(crate) target_fields: EscapedFields,
    /// The same without a target.
    pub(crate) upstream_field: EscapedFields,
}

/// How an upstream's targets are reached, by target.
#[derive(Clone, Debug)]
pub struct UpstreamConnectors {
    /// By position of the target.
    pub targets: Vec<ConnectSettings>,
}

impl ActivePlan {
    /// `plan` for the worker of this number, with the ways to its upstreams' targets.
    #[must_use]
    pub fn new(
        plan: Arc<Plan>,
        connectors: Vec<UpstreamConnectors>,
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
            routes: RouteTable::new(Arc::clone(registry), worker, ids.collect()),
            upstreams,
            standard_statuses: *model.limits.standard_statuses,
            access_format,
            route_fields,
            response_limits: RESPONSE_LIMITS,
            folders: model.routes.iter().map(folder).collect(),
            route_ids: OnceCell::new(),
            target_identities: OnceCell::new(),
            plan,
        }
    }

    /// Looks again which targets are healthy.
    pub fn refresh(&self) {
        for (upstream, active) in self.plan.upstreams().iter().zip(&self.upstreams) {
            let states = upstream.targets.iter().map(|target| &target.state);
            active.ready.borrow_mut().refresh(states);
        }
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
    /// Tells the metrics how many idle connections there are.
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

impl ActiveUpstream {
    fn new(
        upstream: &UpstreamPlan,
        connectors: UpstreamConnectors,
        registry: &Registry,
        worker: usize,
    ) -> Self {
        let targets = upstream.targets.iter();
        let metrics = targets
            .clone()
            .map(|target| registry.target(worker, &upstream.name, &target.label));
        Self {
            // Workers begin at different targets, or a few requests would all go to the first.
            rr_counter: Cell::new(u32::try_from(worker).unwrap_or_default()),
            ready: RefCell::new(HealthyTargets::of(
                targets.clone().map(|target| &target.state),
            )),
            metrics: registry.upstream(worker, &upstream.name),
            targets: metrics.collect(),
            connectors,
            target_fields: EscapedFields::default(),
            upstream_field: EscapedFields::default(),
        }
    }
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
        Self {
            shared,
            time,
            timers: Rc::default(),
            pool: Rc::new(Pool::new(Rc::clone(&clock))),
            clock,
            metrics,
            logs: RefCell::new(logs),
            draining: Cell::new(Draining::No),
            ids,
            date: DateCache::default(),
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

    /// The plan that new requests start under.
    #[must_use]
    #[inline]
    pub fn active(&self) -> Rc<ActivePlan> {
        Rc::clone(&self.active.borrow())
    }

    /// Puts `active` in force for requests that start from now on. Streams whose route or target it
    /// lacks may go on for the time that it gives to drain.
    pub fn apply(&self, active: ActivePlan) {
        let time = *active.plan.model().system.graceful_shutdown_timeout;
        let end = self.clock.after(time);
        let mut removals = self.removals.borrow_mut();
        removals.apply(&self.active.borrow().plan, &active.plan, end);
        self.active.replace(Rc::new(active));
        self.reloads.set(self.reloads.get().wrapping_add(1));
        self.disks.forget_idle();
    }

    /// Ends the streams whose route or target is gone and whose time is over.
    pub fn end_removed(&self) {
        if self.removals.borrow_mut().expire(self.clock.now()) {
            self.timers.wake_all();
        }
    }
}

/// What a target may send before it is taken to be broken.
const RESPONSE_LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 64 * 1024,
    max_header_count: 256,
    max_name_bytes: 1024,
    max_value_bytes: 32 * 1024,
    max_target_bytes: 1024,
};

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

fn access_format(observability: &Observability) -> Option<AccessFormat> {
    let redact = observability.redact_query.iter();
    observability.access_log.enabled.then(|| AccessFormat {
        fields: vec![OptionalField::UserAgent, OptionalField::Referer],
        redact_query: redact.map(|name| name.value.clone()).collect(),
    })
}
