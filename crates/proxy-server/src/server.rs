//! The control thread's view of the running proxy: workers, sockets, and the plan in force.

use crate::doors::Doors;
use crate::handover::Label;
use crate::heritage::Heritage;
use crate::listen::BindFault;
use crate::logs::OpenLogs;
use crate::pools::Pools;
use crate::staff::Staff;
use crate::tls::{Holdings, Vault};
use crate::worker::{self, Adoption, Command, Common, Entrance, Share};
use proxy_config::Fault;
use proxy_limits::Gauge;
use proxy_model::{BindAddress, Model};
use proxy_pipeline::{Draining, Shared, UpstreamLinks};
use proxy_plan::{Directory, Plan};
use proxy_telemetry::{Lifecycle, Registry};
use socket2::Socket;
use std::io;
use std::sync::Arc;

/// Why a configuration that is right by itself cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub enum ApplyFault {
    /// An address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindFault),
    /// Certificates, keys or roots cannot be used; at least one fault.
    #[error("certificates cannot be used")]
    Tls(Vec<Fault>),
    /// A log cannot be opened.
    #[error("{}", .0.message)]
    Log(Fault),
    /// A thread cannot be started, or given its sockets.
    #[error("cannot start a worker: {0}")]
    Thread(#[source] io::Error),
    /// A worker does not answer.
    #[error("a worker did not take the plan over in time")]
    Stuck,
}

/// The running proxy.
#[derive(Debug)]
pub(crate) struct Server {
    common: Common,
    staff: Staff,
    directory: Directory,
    doors: Doors,
    pools: Pools,
    logs: OpenLogs,
    vault: Vault,
    heritage: Heritage,
    plan: Arc<Plan>,
}

/// What a plan needs beside itself, ready to be put in force.
struct Preparation {
    plan: Arc<Plan>,
    holdings: Holdings,
    /// Unless those that are open serve on.
    logs: Option<OpenLogs>,
}

impl Server {
    /// Binds every listener and starts the workers; until then nothing is served, after it everything.
    /// `relief` comes between all that can fail and the first client.
    pub(crate) async fn start(
        model: Arc<Model>,
        registry: Arc<Registry>,
        lifecycle: Arc<Lifecycle>,
        heritage: Heritage,
        relief: impl AsyncFnOnce(),
    ) -> Result<Self, ApplyFault> {
        let vault = Vault::new();
        let holdings = vault.load(&model, now()).map_err(ApplyFault::Tls)?;
        let mut directory = Directory::default();
        let plan = Arc::new(Plan::compile(1, model, &mut directory));
        crate::resolve::first(&plan, now()).await;
        let (in_flight, connections) = worker::gauges(&plan);
        let shared = Shared {
            in_flight,
            connections,
            lifecycle,
        };
        let logs =
            OpenLogs::open(&plan.model().observability, &registry).map_err(ApplyFault::Log)?;
        let common = Common {
            shared: Arc::new(shared),
            registry,
        };
        let mut server = Self {
            common,
            staff: Staff::default(),
            directory,
            doors: Doors::default(),
            pools: Pools::default(),
            logs,
            vault,
            heritage,
            plan: Arc::clone(&plan),
        };
        let prepared = Preparation {
            plan,
            holdings,
            logs: None,
        };
        server.enforce(prepared, relief).await?;
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
    pub(crate) fn heritage(&mut self) -> &mut Heritage {
        &mut self.heritage
    }

    /// Where each listener of the plan in force is bound, in the plan's order.
    pub(crate) fn bound(&self) -> impl Iterator<Item = &BindAddress> {
        self.doors.bound()
    }

    /// Puts `model` in force everywhere, or nowhere.
    pub(crate) async fn apply(&mut self, model: Arc<Model>) -> Result<(), ApplyFault> {
        let holdings = self.vault.load(&model, now()).map_err(ApplyFault::Tls)?;
        let generation = self.plan.generation() + 1;
        let plan = Arc::new(Plan::compile(generation, model, &mut self.directory));
        let observability = &plan.model().observability;
        let logs = if self.logs.are_those_of(observability) {
            None
        } else {
            let opened = OpenLogs::open(observability, &self.common.registry);
            Some(opened.map_err(ApplyFault::Log)?)
        };
        crate::resolve::first(&plan, now()).await;
        let prepared = Preparation {
            plan,
            holdings,
            logs,
        };
        let before = self.doors.clone();
        self.enforce(prepared, async || ()).await?;
        self.doors.queue(&before);
        Ok(())
    }

    /// What can fail is done first, then `relief`, then everything is as `prepared` says.
    async fn enforce(
        &mut self,
        prepared: Preparation,
        relief: impl AsyncFnOnce(),
    ) -> Result<(), ApplyFault> {
        let Preparation {
            plan,
            holdings,
            logs,
        } = prepared;
        let count = worker_count(plan.model());
        let doors = self
            .doors
            .arrange(plan.model(), count, &mut self.heritage)?;
        let recruits = self.staff.recruits(count, &self.common).await;
        let recruits = recruits.map_err(ApplyFault::Thread)?;
        let held = self.staff.held(&recruits);
        let shares = doors.shares(count, held).map_err(ApplyFault::Thread)?;
        doors.listen()?;
        relief().await;
        self.doors = doors;
        let fresh_logs = logs.is_some();
        match logs {
            Some(logs) => self.logs = logs,
            None => self.logs.reopen(),
        }
        self.bound_shared(&plan);
        let newcomers = recruits.len();
        self.staff.hire(recruits);
        let adoptions = self.adoptions(&plan, shares, &holdings, (count, newcomers, fresh_logs));
        self.vault.adopt(holdings, &self.common.registry);
        self.plan = plan;
        self.staff.publish(adoptions).await?;
        self.staff.retire(count);
        Ok(())
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
        shares: Vec<Vec<Share>>,
        holdings: &Holdings,
        staff: (usize, usize, bool),
    ) -> Vec<Adoption> {
        let (count, newcomers, fresh_logs) = staff;
        let pools = self.pools.settings(plan, self.directory.slots(), count);
        let links = links(plan, holdings);
        let serving = self.staff.len();
        let new = serving.saturating_sub(newcomers)..serving;
        let adoptions = shares.into_iter().enumerate().map(|(worker, shares)| {
            let doors = shares.into_iter().zip(&holdings.listeners);
            let doors = doors.map(|(share, tls)| Entrance {
                share,
                tls: tls.clone(),
            });
            Adoption {
                plan: Arc::clone(plan),
                links: links.clone(),
                pools: pools.clone(),
                doors: doors.collect(),
                logs: (fresh_logs || new.contains(&worker)).then(|| self.logs.worker()),
            }
        });
        adoptions.collect()
    }

    /// Takes certificates that changed on disk into use.
    pub(crate) fn tend_certificates(&mut self) {
        self.vault.tend(&self.common.registry, now());
    }

    /// Lets every worker look again which targets are healthy.
    pub(crate) fn refresh(&self) {
        self.staff.tell(|| Command::Refresh);
    }

    /// Opens log files again that were moved away.
    pub(crate) fn reopen_logs(&self) {
        self.logs.reopen();
    }

    /// From now on the sockets are this process's alone.
    pub(crate) fn settle(&mut self) {
        self.doors.queue(&Doors::default());
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
        self.doors = Doors::default();
        self.heritage = Heritage::default();
        self.staff.tell(|| Command::Drain(Draining::Promptly));
    }

    /// The same when another process accepts from the same sockets: no client is to notice.
    pub(crate) fn hand_over(&mut self) {
        self.common.shared.lifecycle.drain();
        self.doors.keep_files(true);
        self.doors = Doors::default();
        self.heritage = Heritage::default();
        self.staff.tell(|| Command::Drain(Draining::Gently));
    }

    /// Whether every worker has left.
    pub(crate) fn is_over(&self) -> bool {
        self.staff.is_over()
    }

    /// Ends everything now.
    pub(crate) fn stop(self) {
        self.staff.stop();
        self.logs.close();
    }
}

fn set(gauge: &Gauge, max: u32) {
    gauge.set_max(max);
}

fn links(plan: &Plan, holdings: &Holdings) -> Vec<UpstreamLinks> {
    let upstreams = plan.upstreams().iter().zip(&holdings.upstreams);
    upstreams
        .map(|(upstream, tls)| crate::links::of(upstream, tls.as_ref()))
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
