//! The control thread's view of the running proxy: workers, sockets, and the plan in force.

use crate::disk_thread::DiskThread;
use crate::handover::Label;
use crate::heartbeat;
use crate::inherited_sockets::InheritedSockets;
use crate::listen::BindError;
use crate::listener_set::ListenerSet;
use crate::logs::OpenLogs;
use crate::pools::{ConnectionLimits, LimitTransaction};
use crate::target_health::TargetHealth;
use crate::tls::{CertificateChanges, CertificateManager, LoadedTls};
use crate::worker::{self, Command, Common, Handle, ListenerUpdate, PlanUpdate, SocketAssignment};
use crate::worker_pool::{WorkerHealth, WorkerPool};
use proxy_config::Diagnostic;
use proxy_limits::ConcurrencyLimit;
use proxy_model::{BindAddress, LogLevel, Model};
use proxy_pipeline::{Draining, Shared, UpstreamConnectors};
use proxy_plan::{Plan, TargetRegistry, TargetTransaction};
use proxy_telemetry::{EventFields, Lifecycle, Registry};
use socket2::Socket;
use std::io;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Why a configuration that is right by itself cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Certificates, keys or roots cannot be used; at least one fault.
    #[error("certificates cannot be used")]
    Tls(Vec<Diagnostic>),
    /// A log cannot be opened.
    #[error("{}", .0.message)]
    Log(Diagnostic),
    /// A thread cannot be started, or given its sockets.
    #[error("cannot start a worker: {0}")]
    Thread(#[source] io::Error),
    /// The thread that waits for disks has ended.
    #[error("cannot wait for a disk: {0}")]
    Disk(#[source] io::Error),
    /// A worker does not answer.
    #[error("a worker does not answer")]
    Unresponsive,
}

/// The running proxy.
#[derive(Debug)]
pub(crate) struct Server {
    common: Common,
    disk: DiskThread,
    workers: WorkerPool,
    targets: TargetRegistry,
    listeners: ListenerSet,
    limits: ConnectionLimits,
    logs: OpenLogs,
    certificates: CertificateManager,
    inherited: InheritedSockets,
    health: TargetHealth,
    plan: Arc<Plan>,
}

/// A plan and what it needs beside itself, read and compiled. Nothing that is in force was touched.
struct Preparation {
    plan: Arc<Plan>,
    targets: TargetTransaction,
    limits: LimitTransaction,
    loaded_tls: LoadedTls,
    /// Unless those that are open serve on.
    logs: Option<OpenLogs>,
}

/// A plan with all that it needs of the system: from here on nothing can fail. Dropped instead of
/// committed, it leaves everything as it was.
struct Transaction {
    prepared: Preparation,
    /// How many workers there are to be.
    count: usize,
    listeners: ListenerSet,
    /// Workers to begin with it.
    spawned: Vec<Handle>,
    /// Of each worker: those that take connections, the recruits, those that leave.
    assignments: Vec<Vec<SocketAssignment>>,
}

impl Server {
    /// Binds every listener and starts the workers; until then nothing is served, after it everything.
    /// `relieve_predecessor` comes between all that can fail and the first client.
    pub(crate) async fn start(
        model: Arc<Model>,
        registry: Arc<Registry>,
        lifecycle: Arc<Lifecycle>,
        (disk, inherited): (DiskThread, InheritedSockets),
        relieve_predecessor: impl AsyncFnOnce(),
    ) -> Result<Self, ApplyError> {
        let certificates = CertificateManager::new();
        let loaded_tls = certificates.load(&model, now()).await;
        let loaded_tls = loaded_tls.map_err(ApplyError::Tls)?;
        let (targets, limits) = (TargetRegistry::default(), ConnectionLimits::default());
        let mut named = targets.begin();
        let plan = Arc::new(Plan::compile(1, model, &mut named));
        crate::dns::first(&plan, &named, now()).await;
        let (in_flight, connections) = worker::shared_limits(&plan);
        let shared = Shared {
            in_flight,
            connections,
            lifecycle,
        };
        let logs = open_logs(&disk, &plan, &registry).await?;
        let common = Common {
            shared: Arc::new(shared),
            registry,
        };
        let prepared = Preparation {
            limits: limits.prepare(&plan),
            plan: Arc::clone(&plan),
            targets: named,
            loaded_tls,
            logs: None,
        };
        let mut server = Self {
            common,
            disk,
            workers: WorkerPool::default(),
            targets,
            listeners: ListenerSet::default(),
            limits,
            logs,
            certificates,
            inherited,
            health: TargetHealth::default(),
            plan,
        };
        let transaction = server.open(prepared).await?;
        relieve_predecessor().await;
        server.commit(transaction).await;
        Ok(server)
    }

    /// The plan in force.
    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// What all workers see at once.
    pub(crate) fn shared(&self) -> &Shared {
        &self.common.shared
    }

    /// The sockets that were there before this process and wait for a setting.
    pub(crate) fn inherited(&mut self) -> &mut InheritedSockets {
        &mut self.inherited
    }

    /// Where each listener of the plan in force is bound, in the plan's order.
    pub(crate) fn bound(&self) -> impl Iterator<Item = &BindAddress> {
        self.listeners.bound()
    }

    /// Puts `model` in force everywhere, or nowhere: what can fail comes first and touches nothing that
    /// is in force.
    pub(crate) async fn apply(&mut self, model: Arc<Model>) -> Result<(), ApplyError> {
        let loaded_tls = self.certificates.load(&model, now()).await;
        let loaded_tls = loaded_tls.map_err(ApplyError::Tls)?;
        let generation = self.plan.generation() + 1;
        let mut targets = self.targets.begin();
        let plan = Arc::new(Plan::compile(generation, model, &mut targets));
        let logs = if self.logs.are_those_of(&plan.model().observability) {
            None
        } else {
            Some(open_logs(&self.disk, &plan, &self.common.registry).await?)
        };
        crate::dns::first(&plan, &targets, now()).await;
        let prepared = Preparation {
            limits: self.limits.prepare(&plan),
            plan,
            targets,
            loaded_tls,
            logs,
        };
        let transaction = self.open(prepared).await?;
        let before = self.listeners.clone();
        self.commit(transaction).await;
        self.listeners.set_backlogs(&before);
        Ok(())
    }

    /// Does what else can fail before `prepared` is put in force: sockets are bound, workers started
    /// and asked whether they answer.
    async fn open(&mut self, prepared: Preparation) -> Result<Transaction, ApplyError> {
        let model = prepared.plan.model();
        let count = worker_count(model);
        let listeners = self.arrange(&prepared.plan, count).await?;
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

    /// The sockets for `plan`. The files of Unix sockets are looked at and bound by the disk thread; if
    /// the process ends meanwhile, what it inherited is closed with it.
    async fn arrange(&mut self, plan: &Arc<Plan>, count: usize) -> Result<ListenerSet, ApplyError> {
        let (listeners, plan) = (self.listeners.clone(), Arc::clone(plan));
        let mut inherited = std::mem::take(&mut self.inherited);
        let arranging = self.disk.run(move || {
            let arranged = listeners.arrange(plan.model(), count, &mut inherited);
            (arranged, inherited)
        });
        let (arranged, inherited) = arranging.await.map_err(ApplyError::Disk)?;
        self.inherited = inherited;
        Ok(arranged?)
    }

    /// Puts everything of `transaction` in force. Nothing here can fail.
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
            limits,
            loaded_tls,
            logs,
        } = prepared;
        self.listeners = listeners;
        let fresh_logs = logs.is_some();
        match logs {
            Some(logs) => self.logs = logs,
            None => self.logs.reopen(),
        }
        self.set_shared_limits(&plan);
        self.targets.commit(targets);
        self.limits.commit(limits, &plan);
        let new_workers = spawned.len();
        self.workers.add(spawned);
        let plan_updates = self.plan_updates(
            &plan,
            assignments,
            &loaded_tls,
            (count, new_workers, fresh_logs),
        );
        self.certificates.apply(loaded_tls, &self.common.registry);
        self.health = TargetHealth::of(&plan, &self.common.registry);
        self.plan = plan;
        self.workers.publish(plan_updates).await;
        self.workers.scale_down(count);
    }

    fn set_shared_limits(&self, plan: &Plan) {
        let limits = &plan.model().limits;
        let Shared {
            in_flight,
            connections,
            lifecycle: _,
        } = &*self.common.shared;
        set(in_flight, *limits.max_in_flight_requests);
        set(connections, *limits.max_total_connections);
    }

    /// What each worker is told about `plan`; `workers` is how many there are to be, how many are new,
    /// and whether all get new ends of the logs.
    fn plan_updates(
        &mut self,
        plan: &Arc<Plan>,
        assignments: Vec<Vec<SocketAssignment>>,
        loaded_tls: &LoadedTls,
        workers: (usize, usize, bool),
    ) -> Vec<PlanUpdate> {
        let (count, new_workers, fresh_logs) = workers;
        let pools = self.limits.pool_settings(plan, count);
        let connectors = connectors(plan, loaded_tls, &self.limits);
        let serving = self.workers.len();
        let new = serving.saturating_sub(new_workers)..serving;
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
                    pools: pools.clone(),
                    listeners: listeners.collect(),
                    logs: (fresh_logs || new.contains(&worker)).then(|| self.logs.worker()),
                }
            });
        plan_updates.collect()
    }

    /// Begins to take certificates that changed on disk into use.
    pub(crate) fn check_certificates(&self) -> JoinHandle<CertificateChanges> {
        self.certificates.check(now())
    }

    /// Tells what a look at the certificates has found.
    pub(crate) fn reload_certificates(&mut self, changed: CertificateChanges) {
        self.certificates
            .reload_changed(changed, &self.common.registry, now());
    }

    /// Looks whether every worker runs. Gives the number of one that has died.
    pub(crate) fn check_workers(&mut self) -> Option<usize> {
        let WorkerHealth { silent, died } = self.workers.check(heartbeat::now());
        self.common.shared.lifecycle.set_silent_workers(silent);
        died
    }

    /// Lets every worker look again which targets are healthy.
    pub(crate) fn refresh(&self) {
        self.health.publish();
        self.workers.send_all(|| Command::Refresh);
    }

    /// Writes an event to the error log that is configured.
    pub(crate) fn log_event(&mut self, level: LogLevel, message: &str, fields: &EventFields) {
        self.logs.tell(level, message, fields);
    }

    /// Opens log files again that were moved away.
    pub(crate) fn reopen_logs(&self) {
        self.logs.reopen();
    }

    /// From now on the sockets are this process's alone.
    pub(crate) fn finish_handover(&mut self) {
        self.listeners.set_backlogs(&ListenerSet::default());
        self.listeners.keep_files(false);
        self.inherited.close_unclaimed();
        self.inherited.log_unclaimed();
    }

    /// Every listening socket, to be passed on to another process.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (Label, &Socket)> {
        self.listeners.sockets().chain(self.inherited.unclaimed())
    }

    /// Accepts no more, and lets workers leave when their last connection ends.
    ///
    /// Every listening socket is closed before the first idle connection: a client that connects again
    /// at once is refused, not accepted into a queue and reset.
    pub(crate) async fn drain(&mut self) {
        self.common.shared.lifecycle.drain();
        self.listeners = ListenerSet::default();
        self.inherited = InheritedSockets::default();
        self.workers.stop_accepting().await;
        self.workers.send_all(|| Command::Drain(Draining::Promptly));
    }

    /// The same when another process accepts from the same sockets: no client is to notice.
    pub(crate) fn hand_over(&mut self) {
        self.common.shared.lifecycle.drain();
        self.listeners.keep_files(true);
        self.listeners = ListenerSet::default();
        self.inherited = InheritedSockets::default();
        self.workers.send_all(|| Command::Drain(Draining::Gently));
    }

    /// Whether every worker has left.
    pub(crate) fn is_over(&self) -> bool {
        self.workers.is_over()
    }

    /// Ends everything now.
    pub(crate) async fn stop(self) {
        self.workers.stop().await;
        self.logs.close();
    }
}

/// Opens the logs of `plan`. A pipe without a reader, or a disk that does not answer, holds up the disk
/// thread alone.
async fn open_logs(
    disk: &DiskThread,
    plan: &Arc<Plan>,
    registry: &Arc<Registry>,
) -> Result<OpenLogs, ApplyError> {
    let (plan, registry) = (Arc::clone(plan), Arc::clone(registry));
    let opening = disk.run(move || OpenLogs::open(&plan.model().observability, &registry));
    let opened = opening.await.map_err(ApplyError::Disk)?;
    opened.map_err(ApplyError::Log)
}

fn set(gauge: &ConcurrencyLimit, max: u32) {
    gauge.set_max(max);
}

fn connectors(
    plan: &Plan,
    loaded_tls: &LoadedTls,
    limits: &ConnectionLimits,
) -> Vec<UpstreamConnectors> {
    let upstreams = plan.upstreams().iter().zip(&loaded_tls.upstreams);
    upstreams
        .map(|(upstream, tls)| crate::connectors::of(upstream, tls.as_ref(), limits))
        .collect()
}

/// Workers to start: as many as there are cores where the configuration leaves it open.
fn worker_count(model: &Model) -> usize {
    match *model.system.worker_threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count as usize,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the control thread tells the time"
)]
pub(crate) fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
