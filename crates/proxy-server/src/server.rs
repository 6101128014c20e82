//! The control thread's view of the running proxy: workers, sockets, and the plan in force.

use crate::handover::Label;
use crate::heartbeat;
use crate::inherited_sockets::InheritedSockets;
use crate::listen::BindError;
use crate::listener_set::ListenerSet;
use crate::logs::OpenLogs;
use crate::pools::{ConnectionLimits, LimitTransaction};
use crate::target_health::TargetHealth;
use crate::tls::{CertificateManager, LoadedTls, Looked};
use crate::worker::{self, Command, Common, Handle, ListenerUpdate, PlanUpdate, SocketAssignment};
use crate::worker_pool::{Vitals, WorkerPool};
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
    /// A worker does not answer.
    #[error("a worker does not answer")]
    WriteError,
}

/// The running proxy.
#[derive(Debug)]
pub(crate) struct Server {
    common: Common,
    staff: WorkerPool,
    targets: TargetRegistry,
    doors: ListenerSet,
    limits: ConnectionLimits,
    logs: OpenLogs,
    vault: CertificateManager,
    heritage: InheritedSockets,
    health: TargetHealth,
    plan: Arc<Plan>,
}

/// A plan and what it needs beside itself, read and compiled. Nothing that is in force was touched.
struct Preparation {
    plan: Arc<Plan>,
    targets: TargetTransaction,
    limits: LimitTransaction,
    holdings: LoadedTls,
    /// Unless those that are open serve on.
    logs: Option<OpenLogs>,
}

/// A plan with all that it needs of the system: from here on nothing can fail. Dropped instead of
/// committed, it leaves everything as it was.
struct Transaction {
    prepared: Preparation,
    /// How many workers there are to be.
    count: usize,
    doors: ListenerSet,
    /// Workers to begin with it.
    recruits: Vec<Handle>,
    /// Of each worker: those that take connections, the recruits, those that leave.
    shares: Vec<Vec<SocketAssignment>>,
}

impl Server {
    /// Binds every listener and starts the workers; until then nothing is served, after it everything.
    /// `relief` comes between all that can fail and the first client.
    pub(crate) async fn start(
        model: Arc<Model>,
        registry: Arc<Registry>,
        lifecycle: Arc<Lifecycle>,
        heritage: InheritedSockets,
        relief: impl AsyncFnOnce(),
    ) -> Result<Self, ApplyError> {
        let vault = CertificateManager::new();
        let holdings = vault.load(&model, now()).await;
        let holdings = holdings.map_err(ApplyError::Tls)?;
        let (targets, limits) = (TargetRegistry::default(), ConnectionLimits::default());
        let mut named = targets.begin();
        let plan = Arc::new(Plan::compile(1, model, &mut named));
        crate::dns::first(&plan, &named, now()).await;
        let (in_flight, connections) = worker::gauges(&plan);
        let shared = Shared {
            in_flight,
            connections,
            lifecycle,
        };
        let logs =
            OpenLogs::open(&plan.model().observability, &registry).map_err(ApplyError::Log)?;
        let common = Common {
            shared: Arc::new(shared),
            registry,
        };
        let prepared = Preparation {
            limits: limits.prepare(&plan),
            plan: Arc::clone(&plan),
            targets: named,
            holdings,
            logs: None,
        };
        let mut server = Self {
            common,
            staff: WorkerPool::default(),
            targets,
            doors: ListenerSet::default(),
            limits,
            logs,
            vault,
            heritage,
            health: TargetHealth::default(),
            plan,
        };
        let transaction = server.open(prepared).await?;
        relief().await;
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
    pub(crate) fn heritage(&mut self) -> &mut InheritedSockets {
        &mut self.heritage
    }

    /// Where each listener of the plan in force is bound, in the plan's order.
    pub(crate) fn bound(&self) -> impl Iterator<Item = &BindAddress> {
        self.doors.bound()
    }

    /// Puts `model` in force everywhere, or nowhere: what can fail comes first and touches nothing that
    /// is in force.
    pub(crate) async fn apply(&mut self, model: Arc<Model>) -> Result<(), ApplyError> {
        let holdings = self.vault.load(&model, now()).await;
        let holdings = holdings.map_err(ApplyError::Tls)?;
        let generation = self.plan.generation() + 1;
        let mut targets = self.targets.begin();
        let plan = Arc::new(Plan::compile(generation, model, &mut targets));
        let observability = &plan.model().observability;
        let logs = if self.logs.are_those_of(observability) {
            None
        } else {
            let opened = OpenLogs::open(observability, &self.common.registry);
            Some(opened.map_err(ApplyError::Log)?)
        };
        crate::dns::first(&plan, &targets, now()).await;
        let prepared = Preparation {
            limits: self.limits.prepare(&plan),
            plan,
            targets,
            holdings,
            logs,
        };
        let transaction = self.open(prepared).await?;
        let before = self.doors.clone();
        self.commit(transaction).await;
        self.doors.queue(&before);
        Ok(())
    }

    /// Does what else can fail before `prepared` is put in force: sockets are bound, workers started
    /// and asked whether they answer.
    async fn open(&mut self, prepared: Preparation) -> Result<Transaction, ApplyError> {
        let model = prepared.plan.model();
        let count = worker_count(model);
        let doors = self.doors.arrange(model, count, &mut self.heritage)?;
        let recruits = self.staff.recruits(count, &self.common).await;
        let recruits = recruits.map_err(ApplyError::Thread)?;
        self.staff.probe().await?;
        let held = self.staff.held(&recruits);
        let shares = doors.shares(count, held).map_err(ApplyError::Thread)?;
        doors.listen()?;
        Ok(Transaction {
            prepared,
            count,
            doors,
            recruits,
            shares,
        })
    }

    /// Puts everything of `transaction` in force. Nothing here can fail.
    async fn commit(&mut self, transaction: Transaction) {
        let Transaction {
            prepared,
            count,
            doors,
            recruits,
            shares,
        } = transaction;
        let Preparation {
            plan,
            targets,
            limits,
            holdings,
            logs,
        } = prepared;
        self.doors = doors;
        let fresh_logs = logs.is_some();
        match logs {
            Some(logs) => self.logs = logs,
            None => self.logs.reopen(),
        }
        self.bound_shared(&plan);
        self.targets.commit(targets);
        self.limits.commit(limits, &plan);
        let newcomers = recruits.len();
        self.staff.hire(recruits);
        let adoptions = self.adoptions(&plan, shares, &holdings, (count, newcomers, fresh_logs));
        self.vault.adopt(holdings, &self.common.registry);
        self.health = TargetHealth::of(&plan, &self.common.registry);
        self.plan = plan;
        self.staff.publish(adoptions).await;
        self.staff.retire(count);
    }

    fn bound_shared(&self, plan: &Plan) {
        let limits = &plan.model().limits;
        let Shared {
            in_flight,
            connections,
            lifecycle: _,
        } = &*self.common.shared;
        set(in_flight, *limits.max_in_flight_requests);
        set(connections, *limits.max_total_connections);
    }

    /// What each worker is told about `plan`; `staff` is how many there are to be, how many are new,
    /// and whether all get new ends of the logs.
    fn adoptions(
        &mut self,
        plan: &Arc<Plan>,
        shares: Vec<Vec<SocketAssignment>>,
        holdings: &LoadedTls,
        staff: (usize, usize, bool),
    ) -> Vec<PlanUpdate> {
        let (count, newcomers, fresh_logs) = staff;
        let pools = self.limits.pool_settings(plan, count);
        let links = links(plan, holdings, &self.limits);
        let serving = self.staff.len();
        let new = serving.saturating_sub(newcomers)..serving;
        let adoptions = shares.into_iter().enumerate().map(|(worker, shares)| {
            let doors = shares.into_iter().zip(&holdings.listeners);
            let doors = doors.map(|(share, tls)| ListenerUpdate {
                share,
                tls: tls.clone(),
            });
            PlanUpdate {
                plan: Arc::clone(plan),
                links: links.clone(),
                pools: pools.clone(),
                doors: doors.collect(),
                logs: (fresh_logs || new.contains(&worker)).then(|| self.logs.worker()),
            }
        });
        adoptions.collect()
    }

    /// Begins to take certificates that changed on disk into use.
    pub(crate) fn look_at_certificates(&self) -> JoinHandle<Looked> {
        self.vault.look(now())
    }

    /// Tells what a look at the certificates has found.
    pub(crate) fn tend_certificates(&mut self, looked: Looked) {
        self.vault.tend(looked, &self.common.registry, now());
    }

    /// Looks whether every worker runs. Gives the number of one that has died.
    pub(crate) fn look_at_workers(&mut self) -> Option<usize> {
        let Vitals { silent, lost } = self.staff.look(heartbeat::now());
        self.common.shared.lifecycle.set_silent_workers(silent);
        lost
    }

    /// Lets every worker look again which targets are healthy.
    pub(crate) fn refresh(&self) {
        self.health.publish();
        self.staff.tell(|| Command::Refresh);
    }

    /// Writes an event to the error log that is configured.
    pub(crate) fn tell(&mut self, level: LogLevel, message: &str, fields: &EventFields) {
        self.logs.tell(level, message, fields);
    }

    /// Opens log files again that were moved away.
    pub(crate) fn reopen_logs(&self) {
        self.logs.reopen();
    }

    /// From now on the sockets are this process's alone.
    pub(crate) fn settle(&mut self) {
        self.doors.queue(&ListenerSet::default());
        self.doors.keep_files(false);
        self.heritage.settle();
        self.heritage.tell_spares();
    }

    /// Every listening socket, to be passed on to another process.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (Label, &Socket)> {
        self.doors.sockets().chain(self.heritage.spares())
    }

    /// Accepts no more, and lets workers leave when their last connection ends.
    pub(crate) fn drain(&mut self) {
        self.common.shared.lifecycle.drain();
        self.doors = ListenerSet::default();
        self.heritage = InheritedSockets::default();
        self.staff.tell(|| Command::Drain(Draining::Promptly));
    }

    /// The same when another process accepts from the same sockets: no client is to notice.
    pub(crate) fn hand_over(&mut self) {
        self.common.shared.lifecycle.drain();
        self.doors.keep_files(true);
        self.doors = ListenerSet::default();
        self.heritage = InheritedSockets::default();
        self.staff.tell(|| Command::Drain(Draining::Gently));
    }

    /// Whether every worker has left.
    pub(crate) fn is_over(&self) -> bool {
        self.staff.is_over()
    }

    /// Ends everything now.
    pub(crate) async fn stop(self) {
        self.staff.stop().await;
        self.logs.close();
    }
}

fn set(gauge: &ConcurrencyLimit, max: u32) {
    gauge.set_max(max);
}

fn links(plan: &Plan, holdings: &LoadedTls, limits: &ConnectionLimits) -> Vec<UpstreamConnectors> {
    let upstreams = plan.upstreams().iter().zip(&holdings.upstreams);
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
