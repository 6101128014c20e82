//! A plan with one worker's state for it.

use crate::headers::trace_context::Sampling;
use crate::limits::route_limits::RouteLimits;
use crate::upload::request_body::RequestBody;
use crate::worker::cache_counters::CacheCounters;
use crate::worker::head_recording::HeadRecording;
use crate::worker::shadow_counters::ShadowCounters;
use proxy_agent::AgentClient;
use proxy_auth::CredentialCache;
use proxy_files::Directory;
use proxy_framing::HeadLimits;
use proxy_limits::{KeySeed, RetryBudget};
use proxy_model::{
    AccessLogFormat, COMMON_TIME, LogLinePart, Observability, Route, Service, StaticFiles,
    TraceContext,
};
use proxy_plan::{Plan, TargetIdentity, TargetPlan, UpstreamPlan};
use proxy_pool::{ConnectSettings, Pool};
use proxy_telemetry::{
    AccessFormat, AgentMetrics, EscapedFields, LineFormat, LineSyntax, OptionalField, Registry,
    RouteTable, TargetMetrics, UpstreamMetrics,
};
use proxy_upstream::{ActiveRequest, CandidateTarget, HealthyTargets, Rotation};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// A plan with one worker's state for it.
#[derive(Debug)]
pub struct ActivePlan {
    /// The plan that requests are decided by.
    pub plan: Arc<Plan>,
    pub(crate) routes: RouteTable,
    pub(crate) upstreams: Vec<ActiveUpstream>,
    /// State for each agent, by the agent's position.
    pub(crate) agents: Vec<ActiveAgent>,
    /// Indexed by route position, followed by the limits for requests without a route.
    pub(crate) limits: Arc<[RouteLimits]>,
    /// Counters of copies, by position of the route; `None` for routes without copies.
    pub(crate) shadows: Vec<Option<ShadowCounters>>,
    /// Counters of the cache, by position of the route; `None` for routes that do not cache.
    pub(crate) caches: Vec<Option<CacheCounters>>,
    /// Exceeded header limits are answered 431.
    pub(crate) standard_statuses: bool,
    /// Sampling of new traces; `None` begins none.
    pub(crate) traces: Option<Sampling>,
    pub(crate) exports_spans: bool,
    /// The recording of heads; `None` records none.
    pub(crate) recording: Option<HeadRecording>,
    /// Format of access records; `None` if the log is off.
    pub(crate) access_format: Option<AccessFormat>,
    /// Format of requests in error records.
    pub(crate) error_format: AccessFormat,
    /// Routes in the form of access records, by index; empty if the log is off.
    pub(crate) route_fields: EscapedFields,
    pub(crate) response_limits: HeadLimits,
    /// Open root folders of static files, by index of the route; `None` for routes without files.
    pub(crate) folders: Vec<Option<Arc<Directory>>>,
    /// Caches of accepted credentials, by index of the route; each is created with the first
    /// request that brings some.
    credential_caches: RefCell<HashMap<usize, Rc<RefCell<CredentialCache>>>>,
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
    /// The rotation of retries over backup targets while main targets take requests.
    pub(crate) backup_rotation: Rotation,
    /// Requests, without retries, already reported to the retry budget.
    budgeted: Cell<u64>,
    pub(crate) ready: RefCell<HealthyTargets>,
    /// Number of target changes that `ready` reflects.
    seen_changes: Cell<u64>,
    pub(crate) metrics: Arc<UpstreamMetrics>,
    pub(crate) targets: Vec<Arc<TargetMetrics>>,
    pub(crate) connectors: UpstreamConnectors,
    /// The targets in the form of access records, by index; empty if the log is off.
    pub(crate) target_fields: EscapedFields,
    /// The upstream alone in that form, for requests without an attempt.
    pub(crate) upstream_field: EscapedFields,
}

/// Connection settings of an upstream's targets.
#[derive(Clone, Debug)]
pub struct UpstreamConnectors {
    /// Settings by index of the target.
    pub targets: Vec<ConnectSettings>,
}

impl ActivePlan {
    /// `plan` for the worker with this number, with the connectors of its upstreams and the limits
    /// of its routes.
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
        let recording = HeadRecording::new(model);
        if access_format.is_some() || recording.is_some() {
            route_fields = EscapedFields::from_routes(plan.routes().iter().map(|route| &*route.id));
            for (upstream, active) in plan.upstreams().iter().zip(&mut upstreams) {
                let labels = upstream.targets.iter().map(|target| &*target.label);
                active.target_fields = EscapedFields::from_targets(&upstream.name, labels);
                active.upstream_field = EscapedFields::from_upstream(&upstream.name);
            }
        }
        Self {
            shadows: plan
                .routes()
                .iter()
                .map(|route| ShadowCounters::new(route, registry))
                .collect(),
            caches: plan
                .routes()
                .iter()
                .map(|route| CacheCounters::new(route, registry))
                .collect(),
            routes: RouteTable::new(Arc::clone(registry), worker, ids.collect()),
            upstreams,
            agents: active_agents(&plan, registry, worker),
            limits,
            standard_statuses: *model.limits.standard_statuses,
            traces: traces(&model.observability.trace_context),
            exports_spans: model
                .observability
                .otlp
                .as_ref()
                .is_some_and(|otlp| *otlp.traces),
            recording,
            access_format,
            error_format: AccessFormat {
                line: LineSyntax::Json,
                fields: Vec::new(),
                redact_query: redacted(&model.observability),
            },
            route_fields,
            response_limits: RESPONSE_LIMITS,
            folders: model.routes.iter().map(folder).collect(),
            credential_caches: RefCell::default(),
            route_ids: OnceCell::new(),
            target_identities: OnceCell::new(),
            plan,
        }
    }

    /// The configuration with other addresses of names, in `plan`, for the same worker.
    #[must_use]
    pub fn resolved(
        &self,
        plan: Arc<Plan>,
        connectors: Vec<UpstreamConnectors>,
        registry: &Arc<Registry>,
        worker: usize,
    ) -> Self {
        let limits = Arc::clone(&self.limits);
        Self {
            // The routes are the same: a correct password needs no second hash.
            credential_caches: self.credential_caches.clone(),
            ..Self::new(plan, connectors, limits, registry, worker)
        }
    }

    /// Adopts the connections to agents that `earlier` and this plan share.
    pub(crate) fn adopt_agents(&mut self, earlier: &Self) {
        for own in &mut self.agents {
            let known = earlier.agents.iter();
            let mut known = known.map(|agent| &agent.client);
            if let Some(known) = known.find(|known| known.endpoint() == own.client.endpoint()) {
                own.client = Rc::clone(known);
            }
        }
    }

    /// The accepted credentials of a route, for as long as this plan is active. `seed` is random.
    pub(crate) fn credential_cache(
        &self,
        route: usize,
        seed: impl FnOnce() -> KeySeed,
    ) -> Rc<RefCell<CredentialCache>> {
        let mut caches = self.credential_caches.borrow_mut();
        let cache = caches.entry(route).or_insert_with(|| {
            let KeySeed { low, high } = seed();
            let secret = [low.to_be_bytes(), high.to_be_bytes()].concat();
            Rc::new(RefCell::new(CredentialCache::new(&secret)))
        });
        Rc::clone(cache)
    }

    /// The position in the limits of requests without a route.
    pub(crate) fn unrouted(&self) -> usize {
        self.plan.routes().len()
    }

    /// Recomputes the healthy targets.
    pub fn refresh(&self) {
        for (upstream, active) in self.plan.upstreams().iter().zip(&self.upstreams) {
            active.ready.borrow_mut().refresh(candidates(upstream));
        }
    }

    /// Counts an active request at the target, if the load balancer uses the count.
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
    /// Reports the requests since the last call to the retry budgets.
    pub fn settle_budgets(&self, now_ns: u64) {
        for (upstream, active) in self.plan.upstreams().iter().zip(&self.upstreams) {
            active.settle_budget(&upstream.retry_budget, now_ns);
        }
    }

    /// Updates the metrics of idle connections.
    pub fn publish_pools(&self, pool: &Pool<RequestBody>) {
        for (upstream, active) in self.plan.upstreams().iter().zip(&self.upstreams) {
            if upstream.http2 {
                let (mut size, mut idle) = (0, 0);
                for target in &upstream.targets {
                    let open = pool.http2_pool().open(target.id);
                    size += open.all as u64;
                    idle += open.idle as u64;
                }
                active.metrics.pool_size.set(size);
                active.metrics.pool_idle.set(idle);
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
    /// Reports the requests since the last call to the retry budget.
    pub(crate) fn settle_budget(&self, budget: &RetryBudget, now_ns: u64) {
        let all = first_attempts(&self.metrics);
        let new = all.wrapping_sub(self.budgeted.replace(all));
        // A request between its first attempt and the count of its retry lowers the number by one.
        if matches!(new, 1..=0x7fff_ffff) {
            budget.record_requests(new, now_ns);
        }
    }

    /// Recomputes the healthy targets if `changes` has advanced.
    #[inline]
    pub(crate) fn catch_up(&self, upstream: &UpstreamPlan, changes: u64) {
        if self.seen_changes.get() != changes {
            self.recompute_ready(upstream, changes);
        }
    }

    #[cold]
    fn recompute_ready(&self, upstream: &UpstreamPlan, changes: u64) {
        // A choice in progress keeps the targets that it began with.
        if let Ok(mut ready) = self.ready.try_borrow_mut() {
            ready.refresh(candidates(upstream));
            self.seen_changes.set(changes);
        }
    }

    fn new(
        upstream: &UpstreamPlan,
        connectors: UpstreamConnectors,
        registry: &Registry,
        worker: usize,
    ) -> Self {
        let targets = upstream.targets.iter();
        let target_metrics = targets
            .clone()
            .map(|target| registry.target(worker, &upstream.name, &target.label));
        let metrics = registry.upstream(worker, &upstream.name);
        let has_backups = upstream.targets.iter().any(|target| target.is_backup);
        let backups = if has_backups {
            upstream.targets.len()
        } else {
            0
        };
        // Workers begin at different targets; otherwise the first requests would all go to the
        // first target.
        let turn = u32::try_from(worker).unwrap_or_default();
        Self {
            budgeted: Cell::new(first_attempts(&metrics)),
            rotation: Rotation::new(upstream.targets.len(), turn),
            backup_rotation: Rotation::new(backups, turn),
            ready: RefCell::new(HealthyTargets::new(candidates(upstream))),
            // The first check recomputes, which is harmless.
            seen_changes: Cell::default(),
            metrics,
            targets: target_metrics.collect(),
            connectors,
            target_fields: EscapedFields::default(),
            upstream_field: EscapedFields::default(),
        }
    }
}

/// The targets that the balancer chooses from.
fn candidates(upstream: &UpstreamPlan) -> impl Iterator<Item = CandidateTarget<'_>> {
    upstream.targets.iter().map(TargetPlan::candidate)
}

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
        Service::Upstream(_) | Service::Builtin(_) | Service::Redirect(_) | Service::Respond(_) => {
            return None;
        }
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
    begin.then(|| Sampling::from_percent(**sample_percent))
}

fn access_format(observability: &Observability) -> Option<AccessFormat> {
    let access_log = &observability.access_log;
    access_log.enabled.then(|| AccessFormat {
        line: line_syntax(&access_log.format),
        fields: vec![OptionalField::UserAgent, OptionalField::Referer],
        redact_query: redacted(observability),
    })
}

fn line_syntax(format: &AccessLogFormat) -> LineSyntax {
    let line = match format {
        AccessLogFormat::Json => return LineSyntax::Json,
        AccessLogFormat::Combined => return LineSyntax::Combined,
        AccessLogFormat::Line(line) => line,
    };
    let parts = line.parts().iter();
    let format = parts.fold(LineFormat::default(), |format, part| match part {
        LogLinePart::Text(text) => format.text(text),
        LogLinePart::Field(COMMON_TIME) => format.common_time(),
        LogLinePart::Field(field) => format.field(field),
    });
    LineSyntax::Custom(Arc::new(format))
}

fn redacted(observability: &Observability) -> Vec<String> {
    let names = observability.redact_query.iter();
    names.map(|name| name.value.clone()).collect()
}
