//! The control thread's state of the running proxy: workers, sockets, and the active plan.

mod opening;
mod shared_state;
mod transaction;

use crate::config::delivery::PrivateKeys;
use crate::error::apply_error::ApplyError;
use crate::observe::limit_uses::LimitUses;
use crate::observe::logs::OpenLogs;
use crate::observe::memory_watch::{self, MemoryWatch};
use crate::observe::otlp::{Exporters, open_collector};
use crate::reload::former_plans::FormerPlans;
use crate::reload::limit_registry::LimitRegistry;
use crate::reload::plan_gauges::PlanGauges;
use crate::runtime::disk_thread::DiskThread;
use crate::runtime::system_clock::now;
use crate::sockets::handover::{HealthSnapshot, Label};
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::sockets::socket_assignment::SocketAssignment;
use crate::targets::connectors;
use crate::targets::dns::NameTable;
use crate::targets::key_sets::KeySetTasks;
use crate::targets::pools::ConnectionLimits;
use crate::targets::probes::Prober;
use crate::targets::reconnection::{Observers, Reconnections};
use crate::targets::target_health::TargetHealth;
use crate::tls::{AcmeTasks, CertificateChanges, CertificateManager, LoadedTls};
use crate::worker::worker_pool::{WorkerHealth, WorkerPool, worker_count};
use crate::worker::{
    AddressUpdate, Command, Common, HandedConnection, ListenerUpdate, PlanUpdate, heartbeat,
};
use opening::{arrange, open_logs};
use proxy_dns::Answer;
use proxy_model::{BindAddress, LogLevel, Model};
use proxy_pipeline::{ChallengeTokens, Draining, IdSource, RouteLimits, Shared, Time, random_key};
use proxy_plan::{Plan, TargetRegistry};
use proxy_telemetry::{EventFields, Lifecycle, LineRing, Registry};
use proxy_upstream::StickyKey;
use socket2::Socket;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use transaction::{Preparation, Transaction};

pub(crate) use opening::{Opened, Opening};

/// Results of background tasks, for the control loop.
#[derive(Debug)]
pub(crate) enum TaskResults {
    /// Results of one or more DNS look-ups.
    Names(Vec<Answer>),
    /// A check of the certificates.
    Certificates(CertificateChanges),
}

/// The running proxy. Its background tasks end with it.
#[derive(Debug)]
pub(crate) struct Server {
    common: Common,
    disk: DiskThread,
    workers: WorkerPool,
    targets: TargetRegistry,
    names: NameTable,
    listeners: ListenerSet,
    limits: ConnectionLimits,
    route_limits: LimitRegistry,
    memory: MemoryWatch,
    logs: OpenLogs,
    /// The recorded heads.
    recording: Arc<LineRing>,
    certificates: CertificateManager,
    /// `None` in a rehearsal: challenges are answered by the serving listeners.
    acme: Option<AcmeTasks>,
    inherited: InheritedSockets,
    health: TargetHealth,
    gauges: PlanGauges,
    prober: Prober,
    reconnections: Reconnections,
    key_sets: KeySetTasks,
    exporters: Exporters,
    plan: Arc<Plan>,
    former_plans: FormerPlans,
}

/// The use of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Clients are served.
    Serving,
    /// A bundle's live tests are running; it serves no client.
    Rehearsal,
}

/// The inputs of [`Server::start`].
pub(crate) struct ServerParts<'k> {
    pub(crate) model: Arc<Model>,
    /// Private keys that are held in memory.
    pub(crate) keys: &'k PrivateKeys,
    pub(crate) purpose: Purpose,
    pub(crate) registry: Arc<Registry>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) disk: DiskThread,
    pub(crate) inherited: InheritedSockets,
    /// The set to which every listener is added.
    pub(crate) listeners: ListenerSet,
    /// Empty unless this process replaces another one.
    pub(crate) snapshot: HealthSnapshot,
    /// Challenges that the listeners answer.
    pub(crate) challenges: ChallengeTokens,
}

impl Server {
    /// Opens every listener and starts the workers, all or nothing. `relieve_predecessor` runs
    /// between the last step that can fail and the first accept.
    pub(crate) async fn start(
        mut parts: ServerParts<'_>,
        relieve_predecessor: impl AsyncFnOnce(),
    ) -> Result<Self, ApplyError> {
        let certificates = CertificateManager::new();
        let loading = certificates.begin_load();
        let loaded_tls = loading.run(&parts.model, parts.keys, now()).await;
        let loaded_tls = loaded_tls.map_err(ApplyError::Tls)?;
        let sticky_key = StickyKey(random_key().map_err(ApplyError::Random)?);
        let (targets, limits) = (TargetRegistry::new(sticky_key), ConnectionLimits::default());
        let names = NameTable::new(&parts.model, Arc::clone(&parts.registry));
        let answers = names.first_look_ups().run(&parts.model).await;
        let looked_up = names.prepare(&parts.model, answers, now());
        let recording = Arc::<LineRing>::default();
        let logs = open_logs(&parts.disk, &parts.model, &parts.registry, &recording).await?;
        let (listeners, inherited) = (parts.listeners, &mut parts.inherited);
        let arranged = arrange(&parts.disk, listeners.clone(), &parts.model, inherited).await?;
        let named = targets.begin();
        let mut named = named.with_resolution(looked_up.resolution.clone());
        let plan = Arc::new(Plan::compile(1, parts.model, &mut named));
        parts.snapshot.restore(&plan);
        let health_changes = Arc::<Notify>::default();
        let prober = Prober::new(Arc::clone(&health_changes));
        let ids = IdSource::from_system().map_err(ApplyError::Thread)?;
        let mut shared = shared_state::new(&plan, ids.key_seed(), health_changes, parts.lifecycle);
        shared.challenges = parts.challenges;
        let route_limits = LimitRegistry::new(ids.key_seed());
        let now_ns = Time::shared_ns(&shared.clock);
        let acme = acme_tasks(parts.purpose, &shared, &certificates, &parts.registry);
        let common = Common {
            shared: Arc::new(shared),
            registry: parts.registry,
        };
        let prepared = Preparation {
            limits: limits.prepare(&plan),
            route_limits: route_limits.prepare(&plan, now_ns),
            plan: Arc::clone(&plan),
            targets: named,
            names: looked_up,
            loaded_tls,
            logs: None,
            collector: open_collector(&parts.disk, plan.model()).await?,
        };
        let mut server = Self {
            key_sets: KeySetTasks::new(&common.registry, &common.shared.lifecycle),
            memory: MemoryWatch::new(Arc::clone(&common.shared.memory), &common.registry),
            exporters: Exporters::new(parts.purpose == Purpose::Serving, &common.shared, &ids),
            common,
            disk: parts.disk,
            workers: WorkerPool::default(),
            targets,
            names,
            listeners,
            limits,
            route_limits,
            logs,
            recording,
            certificates,
            acme,
            inherited: parts.inherited,
            health: TargetHealth::default(),
            gauges: PlanGauges::default(),
            prober,
            reconnections: Reconnections::default(),
            plan,
            former_plans: FormerPlans::default(),
        };
        let transaction = server.open(prepared, arranged).await?;
        relieve_predecessor().await;
        server.commit(transaction).await;
        Ok(server)
    }

    /// The next results of background tasks, as soon as there are any.
    pub(crate) async fn next_results(&mut self) -> TaskResults {
        tokio::select! {
            answers = self.names.next() => TaskResults::Names(answers),
            changes = self.certificates.next() => TaskResults::Certificates(changes),
        }
    }

    /// Applies and reports `results`. Returns whether the plan has changed.
    pub(crate) fn adopt(&mut self, results: TaskResults) -> bool {
        match results {
            TaskResults::Names(answers) => self.adopt_answers(answers),
            TaskResults::Certificates(changes) => {
                self.certificates
                    .report(changes, &self.common.registry, now());
                false
            }
        }
    }

    fn adopt_answers(&mut self, answers: Vec<Answer>) -> bool {
        if !self.names.adopt(answers, now()) {
            return false;
        }
        let targets = self.targets.begin();
        let mut targets = targets.with_resolution(self.names.resolution().clone());
        let plan = Arc::new(self.plan.resolved(&mut targets));
        let limits = self.limits.prepare(&plan);
        self.targets.commit_addresses(targets);
        self.limits.commit(limits, &plan);
        let loaded_tls = self.certificates.loaded();
        let update = AddressUpdate {
            plan: Arc::clone(&plan),
            connectors: connectors::for_plan(&plan, loaded_tls, &self.limits),
            pools: self.limits.pool_settings(&plan),
        };
        self.prober.apply(&plan, loaded_tls);
        self.key_sets.apply(&plan, loaded_tls);
        TargetHealth::extend_overrides(&self.plan, &plan);
        self.health = TargetHealth::new(&plan, &self.common.registry, &self.health);
        self.replace_plan(plan);
        self.show_limits();
        let update = || Command::ApplyAddresses(Box::new(update.clone()));
        self.workers.send_all(update);
        true
    }

    /// The active plan.
    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// State shared by all workers.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.common.shared
    }

    /// The inherited sockets that no setting has claimed.
    pub(crate) fn inherited(&mut self) -> &mut InheritedSockets {
        &mut self.inherited
    }

    /// The bound address of each listener of the active plan, in the plan's order.
    pub(crate) fn bound(&self) -> impl Iterator<Item = &BindAddress> {
        self.listeners.bound()
    }

    /// Begins a reload. The returned step may wait, and does not access the server.
    pub(crate) fn opening(&self) -> Opening {
        Opening {
            disk: self.disk.clone(),
            certificates: self.certificates.begin_load(),
            names: self.names.first_look_ups(),
            logs: self.logs.settings(),
            listeners: self.listeners.clone(),
            registry: Arc::clone(&self.common.registry),
            recording: Arc::clone(&self.recording),
        }
    }

    /// The recorded heads.
    pub(crate) fn recording(&self) -> &Arc<LineRing> {
        &self.recording
    }

    /// Applies `opened` completely or not at all: steps that can fail come first and change nothing
    /// active. No other reload may have been applied since `opened` was begun.
    pub(crate) async fn apply(&mut self, opened: Opened) -> Result<(), ApplyError> {
        let Opened {
            model,
            loaded_tls,
            names,
            logs,
            listeners,
            collector,
        } = opened;
        let generation = self.plan.generation() + 1;
        let names = self.names.prepare(&model, names, now());
        let targets = self.targets.begin();
        let mut targets = targets.with_resolution(names.resolution.clone());
        let plan = Arc::new(Plan::compile(generation, model, &mut targets));
        let prepared = Preparation {
            limits: self.limits.prepare(&plan),
            route_limits: self.route_limits.prepare(&plan, self.process_ns()),
            plan,
            targets,
            names,
            loaded_tls,
            logs,
            collector,
        };
        let transaction = self.open(prepared, listeners).await?;
        let before = self.listeners.clone();
        self.commit(transaction).await;
        self.listeners.set_backlogs(&before);
        Ok(())
    }

    /// Performs the remaining steps that can fail: starts workers, probes all workers, and listens.
    async fn open(
        &mut self,
        prepared: Preparation,
        listeners: ListenerSet,
    ) -> Result<Transaction, ApplyError> {
        let count = worker_count(prepared.plan.model());
        let spawned = self.workers.spawn(count, &self.common).await;
        let spawned = spawned.map_err(ApplyError::Thread)?;
        self.workers.probe().await?;
        let owned_sockets = self.workers.owned_sockets(&spawned);
        let assignments = listeners
            .assignments(count, owned_sockets)
            .map_err(ApplyError::Thread)?;
        listeners.listen()?;
        Ok(Transaction {
            prepared,
            count,
            listeners,
            spawned,
            assignments,
        })
    }

    /// Activates `transaction`. Infallible.
    async fn commit(&mut self, transaction: Transaction) {
        let Transaction {
            prepared,
            count,
            listeners,
            spawned,
            assignments,
        } = transaction;
        let Preparation {
            plan,
            targets,
            names,
            limits,
            route_limits,
            loaded_tls,
            logs,
            collector,
        } = prepared;
        self.listeners = listeners;
        let fresh_logs = logs.is_some();
        match logs {
            Some(logs) => self.logs = logs,
            None => self.logs.reopen(),
        }
        self.recording.resize(recorded_bytes(plan.model()));
        shared_state::set_limits(&self.common.shared, &plan);
        let change = self.memory.apply(&plan.model().limits);
        memory_watch::log_change(change, &mut self.logs);
        self.targets.commit(targets);
        self.names.commit(names);
        TargetHealth::end_overrides(&plan);
        self.limits.commit(limits, &plan);
        let route_states = Arc::clone(&route_limits.routes);
        let registry = Arc::clone(&self.common.registry);
        self.route_limits.commit(route_limits, &plan, &registry);
        let new_workers = spawned.len();
        self.workers.add(spawned);
        let serving = self.workers.len();
        let new = serving.saturating_sub(new_workers)..serving;
        let gets_logs = |worker| fresh_logs || new.contains(&worker);
        let plan_updates =
            self.plan_updates(&plan, assignments, &loaded_tls, &route_states, gets_logs);
        self.certificates.apply(loaded_tls, &self.common.registry);
        self.health = TargetHealth::new(&plan, &self.common.registry, &self.health);
        self.prober.apply(&plan, self.certificates.loaded());
        self.key_sets.apply(&plan, self.certificates.loaded());
        self.exporters.apply(plan.model(), collector);
        self.gauges = PlanGauges::new(&plan, &self.common.registry);
        self.replace_plan(plan);
        self.show_limits();
        self.workers.publish(plan_updates).await;
        self.workers.scale_down(count);
        // The listeners answer challenges now.
        if let Some(acme) = &mut self.acme {
            acme.apply(self.plan.model());
        }
    }

    fn stop_acme(&mut self) {
        if let Some(acme) = &mut self.acme {
            acme.stop();
        }
    }

    fn replace_plan(&mut self, plan: Arc<Plan>) {
        let former = std::mem::replace(&mut self.plan, plan);
        self.former_plans.keep(former);
    }

    /// Frees replaced plans that no request uses.
    pub(crate) fn free_former_plans(&mut self) {
        self.former_plans.free(&self.disk);
    }

    /// Shows the limits of the active plan in statistics and metrics.
    fn show_limits(&self) {
        self.common.registry.set_limits(Arc::new(LimitUses {
            limits: self.plan.model().limits.clone(),
            shared: Arc::clone(&self.common.shared),
            routes: self.route_limits.connections(),
            idle: self.limits.idle(),
        }));
    }

    /// Measures the memory in use, and reports when load shedding begins or ends.
    pub(crate) fn check_memory(&mut self) {
        let change = self.memory.check();
        memory_watch::log_change(change, &mut self.logs);
    }

    /// Time until [`Self::check_memory`] is due.
    pub(crate) fn memory_interval(&self) -> Duration {
        self.memory.interval()
    }

    /// The clock of all state that workers share, in nanoseconds.
    fn process_ns(&self) -> u64 {
        Time::shared_ns(&self.common.shared.clock)
    }

    /// Maintains rate limits without requests. Must be called at least every five minutes.
    pub(crate) fn settle_rate_limits(&mut self) {
        self.route_limits.settle(self.process_ns());
    }

    /// Counts the keys that full rate limits have dropped, and reports changes of breakers.
    pub(crate) fn count_evictions(&mut self) {
        self.route_limits.count_evictions();
        self.gauges.breakers.report(&self.common.registry);
    }

    /// The update for each worker about `plan`. `gets_logs` returns true for a worker that gets new ends of the logs.
    fn plan_updates(
        &mut self,
        plan: &Arc<Plan>,
        assignments: Vec<Vec<SocketAssignment>>,
        loaded_tls: &LoadedTls,
        limits: &Arc<[RouteLimits]>,
        gets_logs: impl Fn(usize) -> bool,
    ) -> Vec<PlanUpdate> {
        let pools = self.limits.pool_settings(plan);
        let connectors = connectors::for_plan(plan, loaded_tls, &self.limits);
        let plan_updates = assignments
            .into_iter()
            .enumerate()
            .map(|(worker, assignments)| {
                let listeners = assignments.into_iter().zip(&loaded_tls.listeners);
                let listeners = listeners.map(|(assignment, tls)| ListenerUpdate {
                    assignment,
                    tls: tls.clone(),
                });
                PlanUpdate {
                    plan: Arc::clone(plan),
                    connectors: connectors.clone(),
                    limits: Arc::clone(limits),
                    pools: pools.clone(),
                    listeners: listeners.collect(),
                    logs: gets_logs(worker).then(|| self.logs.worker()),
                }
            });
        plan_updates.collect()
    }

    /// Checks that every worker runs. Returns the number of one that has died.
    pub(crate) fn check_workers(&mut self) -> Option<usize> {
        let WorkerHealth { silent, died } = self.workers.check(heartbeat::now());
        self.common.shared.lifecycle.set_silent_workers(silent);
        died
    }

    /// Hands a connection over to a worker, each worker in turn.
    pub(crate) fn accept(&mut self, connection: HandedConnection) {
        self.workers.send_next(Command::Accept(connection));
    }

    /// Returns targets to load balancing after their ejection has ended.
    pub(crate) fn end_ejections(&mut self) {
        if TargetHealth::end_ejections(&self.plan) {
            self.refresh();
        }
        let shared = &self.common.shared;
        let observers = Observers {
            changes: &shared.target_changes,
            wake: &shared.health_changes,
        };
        let loaded_tls = self.certificates.loaded();
        self.reconnections
            .begin(&self.plan, loaded_tls, &self.limits, observers);
    }

    /// Makes every worker recompute its healthy targets, and logs the changes.
    pub(crate) fn refresh(&mut self) {
        for event in self.health.publish() {
            event.log();
            let (level, message, fields) = event.record();
            self.log_event(level, message, &fields);
        }
        self.workers.send_all(|| Command::Refresh);
    }

    /// Writes an event to the configured error log.
    pub(crate) fn log_event(&mut self, level: LogLevel, message: &str, fields: &EventFields) {
        self.logs.tell(level, message, fields);
    }

    /// Reopens log files that were moved away.
    pub(crate) fn reopen_logs(&self) {
        self.logs.reopen();
    }

    /// Takes ownership of the sockets from the predecessor.
    pub(crate) fn finish_handover(&mut self) {
        self.listeners.set_backlogs(&ListenerSet::default());
        self.listeners.keep_files(false);
        self.inherited.close_unclaimed(&self.disk);
        self.inherited.log_unclaimed();
    }

    /// Every listening socket, for handing over to another process.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (Label, &Socket)> {
        self.listeners.sockets().chain(self.inherited.unclaimed())
    }

    /// Stops accepting, and lets workers end with their last connection.
    pub(crate) async fn drain(&mut self) {
        self.begin_drain();
        self.stop_acme();
        self.listeners.close();
        self.inherited = InheritedSockets::default();
        self.workers.stop_accepting().await;
        self.workers.send_all(|| Command::Drain(Draining::Promptly));
    }

    /// Like [`Self::drain`], while a successor accepts from the same sockets: clients are not
    /// affected.
    pub(crate) fn hand_over(&mut self) {
        self.begin_drain();
        self.stop_acme();
        self.listeners.keep_files(true);
        self.listeners.close();
        self.inherited = InheritedSockets::default();
        self.workers.send_all(|| Command::Drain(Draining::Gently));
    }

    fn begin_drain(&mut self) {
        self.common.shared.lifecycle.drain();
        let time = *self.plan.model().system.graceful_shutdown_timeout;
        self.exporters.begin_drain(self.process_ns(), time);
    }

    /// Returns true if every worker has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.workers.is_over()
    }

    /// Ends all workers at once. After a drain, spans and metrics are exported in the time that is left of it.
    pub(crate) async fn stop(mut self) {
        self.workers.stop().await;
        let now_ns = Time::shared_ns(&self.common.shared.clock);
        self.exporters.flush(now_ns).await;
        self.logs.close();
    }
}

/// The tasks that obtain certificates; `None` in a rehearsal.
fn acme_tasks(
    purpose: Purpose,
    shared: &Shared,
    certificates: &CertificateManager,
    registry: &Arc<Registry>,
) -> Option<AcmeTasks> {
    let tasks = AcmeTasks::new(
        shared.challenges.clone(),
        certificates.challenges().clone(),
        Arc::clone(registry),
        Arc::clone(&shared.lifecycle),
    );
    (purpose == Purpose::Serving).then_some(tasks)
}

/// Memory for recorded heads; 0 if none are recorded.
fn recorded_bytes(model: &Model) -> usize {
    let recording = model.observability.recording.as_ref();
    let kept = recording.map_or(0, |recording| *recording.keep_bytes);
    usize::try_from(kept).unwrap_or(usize::MAX)
}
