//! The registry: creates metrics by name and worker, and sums them.

mod family;
mod limit_source;
mod series;

use crate::metrics::{
    AgentMetrics, Exemplar, Exemplars, Gauge, MetricGroup, RouteMetrics, SharedCounter,
    TargetMetrics, UpstreamMetrics, WorkerMetrics, WorkerTotal,
};
use crate::names::metric::{CounterOf, GaugeOf};
use crate::scrape::snapshot::{Snapshot, TargetName};
use family::{Family, Name};
pub use limit_source::LimitSource;
pub use series::GaugeSource;
use series::SeriesTable;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

/// Default of [`RegistrySettings::max_series`].
pub const DEFAULT_MAX_SERIES: usize = 10_000;

/// A search for unused names visits every name; after one without result, this many names are
/// refused before the next search.
const REFUSALS_BETWEEN_SWEEPS: u64 = 64;

/// Settings of a registry.
#[derive(Clone, Copy, Debug)]
pub struct RegistrySettings {
    /// Names of failure reasons; metrics take a reason by its index here. `other` is not in the
    /// list: it is used for indexes beyond it.
    pub reasons: &'static [&'static str],
    /// Maximum number of names with separate series: routes, upstreams, targets, agents, and label
    /// sets of single counters and gauges, together. A name has a bounded number of series.
    pub max_series: usize,
}

/// Creates metrics by name and sums them over workers.
///
/// A name registered twice has one set of metrics, so counts continue across reloads. Unreferenced
/// metrics keep their counts until their slot is needed; then the counts move to the label value
/// `overflow`, like counts of names without a slot.
///
/// Metrics belong to the worker they were created for: only its thread writes to them. Creation
/// takes a lock, which a scrape holds while it lists the names, for well below a millisecond; keep
/// the returned metrics.
#[derive(Debug)]
pub struct Registry {
    reasons: &'static [&'static str],
    max_series: usize,
    state: Lock,
}

#[expect(
    clippy::disallowed_types,
    reason = "taken once per name and worker and by scrapes, never per request"
)]
type Lock = std::sync::Mutex<RegistryState>;

#[derive(Debug, Default)]
struct RegistryState {
    workers: Vec<Arc<WorkerMetrics>>,
    routes: Family<Arc<str>, RouteMetrics>,
    upstreams: Family<Arc<str>, UpstreamMetrics>,
    targets: Family<TargetName, TargetMetrics>,
    agents: Family<Arc<str>, AgentMetrics>,
    series: SeriesTable,
    limits: Option<Arc<dyn LimitSource>>,
    exemplars: Exemplars,
    refused: u64,
    next_sweep: u64,
}

impl Registry {
    /// A registry without names.
    pub fn new(settings: RegistrySettings) -> Self {
        let RegistrySettings {
            reasons,
            max_series,
        } = settings;
        Self {
            reasons,
            max_series,
            state: Lock::default(),
        }
    }

    /// Metrics of worker `index`.
    pub fn worker(&self, index: usize) -> Arc<WorkerMetrics> {
        let mut state = self.lock();
        let missing = (index + 1).saturating_sub(state.workers.len());
        let fresh = || Arc::new(WorkerMetrics::new(self.reasons.len()));
        state.workers.extend((0..missing).map(|_| fresh()));
        state.workers.get(index).map_or_else(fresh, Arc::clone)
    }

    /// Metrics of a route on a worker.
    pub fn route(&self, worker: usize, id: &str) -> Arc<RouteMetrics> {
        self.metrics(worker, id.into(), |state| &mut state.routes)
    }

    /// Metrics of an upstream on a worker.
    pub fn upstream(&self, worker: usize, name: &str) -> Arc<UpstreamMetrics> {
        self.metrics(worker, name.into(), |state| &mut state.upstreams)
    }

    /// Metrics of a target on a worker.
    pub fn target(&self, worker: usize, upstream: &str, address: &str) -> Arc<TargetMetrics> {
        let name = TargetName {
            upstream: upstream.into(),
            address: address.into(),
        };
        self.metrics(worker, name, |state| &mut state.targets)
    }

    /// Metrics of an agent on a worker.
    pub fn agent(&self, worker: usize, name: &str) -> Arc<AgentMetrics> {
        self.metrics(worker, name.into(), |state| &mut state.agents)
    }

    /// The counter with these label values. Any thread may count.
    pub fn counter<const N: usize>(
        &self,
        counter: &CounterOf<N>,
        values: [&str; N],
    ) -> Arc<SharedCounter> {
        let metric = &counter.metric;
        let mut state = self.lock();
        if let Some(found) = state.series.find_counter(metric, &values) {
            return found;
        }
        if N == 0 || state.has_place(self.max_series) {
            state.series.add_counter(metric, &values)
        } else {
            state.series.overflow_counter(metric)
        }
    }

    /// Registers `cell` as the counter with these label values, replacing the previous one.
    pub fn show<const N: usize>(
        &self,
        counter: &CounterOf<N>,
        values: [&str; N],
        cell: &Arc<SharedCounter>,
    ) {
        let mut state = self.lock();
        let cell = Arc::clone(cell);
        state.series.show_counter(&counter.metric, &values, cell);
    }

    /// Shows the value of `source` as the gauge with these label values, for as long as the source
    /// is held elsewhere. A gauge without a slot is never shown.
    pub fn show_gauge<const N: usize>(
        &self,
        gauge: &GaugeOf<N>,
        values: [&str; N],
        source: Weak<dyn GaugeSource>,
    ) {
        let mut state = self.lock();
        if state.has_place(self.max_series) {
            state.series.show_source(&gauge.metric, &values, source);
        }
    }

    /// The gauge with these label values, exposed while a reference to it exists. Any thread may
    /// set it. A gauge without a slot is never exposed.
    pub fn gauge<const N: usize>(&self, gauge: &GaugeOf<N>, values: [&str; N]) -> Arc<Gauge> {
        let metric = &gauge.metric;
        let mut state = self.lock();
        if let Some(found) = state.series.find_gauge(metric, &values) {
            return found;
        }
        if N == 0 || state.has_place(self.max_series) {
            state.series.add_gauge(metric, &values)
        } else {
            Arc::default()
        }
    }

    /// Reads the use of limits from `source` from now on.
    pub fn set_limits(&self, source: Arc<dyn LimitSource>) {
        self.lock().limits = Some(source);
    }

    /// Shows a request of `route` as the exemplar of its duration's bucket.
    pub fn set_exemplar(&self, route: &str, exemplar: Exemplar) {
        let max = self.max_series;
        self.lock().exemplars.set(route, exemplar, max);
    }

    /// Removes all exemplars.
    pub fn clear_exemplars(&self) {
        self.lock().exemplars = Exemplars::default();
    }

    /// All metrics, summed over workers.
    pub fn snapshot(&self) -> Snapshot {
        let mut state = self.lock();
        let workers = state.workers.clone();
        let routes = state.routes.view();
        let upstreams = state.upstreams.view();
        let targets = state.targets.view();
        let agents = state.agents.view();
        let series = state.series.values();
        let series_dropped = state.refused;
        let limits = state.limits.clone();
        let exemplars = state.exemplars.clone();
        drop(state);

        let mut total = WorkerTotal::default();
        for metrics in &workers {
            metrics.add_to(&mut total);
        }
        let mut snapshot = Snapshot {
            workers: total,
            routes: routes.totals(),
            upstreams: upstreams.totals(),
            targets: targets.totals(),
            agents: agents.totals(),
            limits: Vec::new(),
            reasons: self.reasons,
            series_dropped,
            series,
            exemplars,
        };
        snapshot.limits = limits.map_or_else(Vec::new, |limits| limits.uses(&snapshot));
        snapshot
    }

    fn metrics<K: Name, C: MetricGroup>(
        &self,
        worker: usize,
        name: K,
        family: fn(&mut RegistryState) -> &mut Family<K, C>,
    ) -> Arc<C> {
        let mut state = self.lock();
        if let Some(found) = family(&mut state).find(&name, worker) {
            return found;
        }
        if family(&mut state).knows(&name) || state.has_place(self.max_series) {
            family(&mut state).add(name, worker)
        } else {
            family(&mut state).add_overflow(worker)
        }
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegistryState {
    /// Returns true if a slot for one more name is available, evicting unused names if necessary.
    fn has_place(&mut self, max: usize) -> bool {
        if self.names() >= max && self.refused >= self.next_sweep {
            self.routes.evict();
            self.upstreams.evict();
            self.targets.evict();
            self.agents.evict();
            self.series.evict();
            if self.names() >= max {
                self.next_sweep = self.refused + REFUSALS_BETWEEN_SWEEPS;
            }
        }
        let has_place = self.names() < max;
        self.refused += u64::from(!has_place);
        has_place
    }

    fn names(&self) -> usize {
        self.routes.len()
            + self.upstreams.len()
            + self.targets.len()
            + self.agents.len()
            + self.series.len()
    }
}
