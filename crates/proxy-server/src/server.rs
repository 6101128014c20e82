//! The control thread's view of the running proxy: workers, sockets, and the plan in force.

use crate::listen::{self, BindFault, Sockets};
use crate::logs::OpenLogs;
use crate::pools::Pools;
use crate::tls::{Holdings, Vault};
use crate::worker::{self, ADOPTION_TIME, Adoption, Command, Common, DoorId, Entrance, Handle};
use proxy_config::Fault;
use proxy_limits::Gauge;
use proxy_model::{BindAddress, Model};
use proxy_pipeline::{Shared, UpstreamLinks};
use proxy_plan::{Directory, Plan};
use proxy_telemetry::{Lifecycle, Registry};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

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
    #[error("cannot open a log: {0}")]
    Log(#[source] io::Error),
    /// A thread cannot be started.
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
    workers: Vec<Handle>,
    directory: Directory,
    doors: Vec<KnownDoor>,
    next_door: u32,
    pools: Pools,
    logs: OpenLogs,
    vault: Vault,
    inherited: Vec<TcpListener>,
    plan: Arc<Plan>,
}

/// An address that is listened on.
#[derive(Debug)]
struct KnownDoor {
    id: DoorId,
    address: BindAddress,
    backlog: u32,
    bound: SocketAddr,
}

/// Doors of a plan, before any worker has heard of them.
struct Arrangement {
    known: Vec<KnownDoor>,
    /// For each listener the sockets, if they are new.
    fresh: Vec<Option<Vec<TcpListener>>>,
}

impl Server {
    /// Binds every listener and starts the workers; until then nothing is served, after it everything.
    ///
    /// `inherited` are listening sockets that somebody else opened for this process.
    pub(crate) async fn start(
        model: Arc<Model>,
        registry: Arc<Registry>,
        lifecycle: Arc<Lifecycle>,
        inherited: Vec<TcpListener>,
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
        let mut server = Self {
            common: Common {
                shared: Arc::new(shared),
                registry,
            },
            workers: Vec::new(),
            directory,
            doors: Vec::new(),
            next_door: 0,
            pools: Pools::default(),
            logs,
            vault,
            inherited,
            plan,
        };
        let count = worker_count(server.plan.model());
        let plan = Arc::clone(&server.plan);
        let arrangement = server.arrange(&plan, count)?;
        let adoptions = server.adoptions(&plan, arrangement, &holdings, count, true);
        server.vault.adopt(holdings, &server.common.registry);
        for (number, adoption) in adoptions.enumerate() {
            let common = server.common.clone();
            let handle = worker::start(number, common, adoption).map_err(ApplyFault::Thread)?;
            server.workers.push(handle);
        }
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

    /// Where each listener of the plan in force is bound, in the plan's order.
    pub(crate) fn bound(&self) -> impl Iterator<Item = SocketAddr> {
        self.doors.iter().map(|door| door.bound)
    }

    /// Puts `model` in force everywhere, or nowhere.
    pub(crate) async fn apply(&mut self, model: Arc<Model>) -> Result<(), ApplyFault> {
        let holdings = self.vault.load(&model, now()).map_err(ApplyFault::Tls)?;
        let generation = self.plan.generation() + 1;
        let plan = Arc::new(Plan::compile(generation, model, &mut self.directory));
        let count = self.workers.len();
        let wanted = worker_count(plan.model());
        if wanted != count {
            tracing::warn!(
                running = count,
                wanted,
                "another number of worker-threads takes effect with the next start"
            );
        }
        let arrangement = self.arrange(&plan, count)?;
        let observability = &plan.model().observability;
        let new_logs = !self.logs.are_those_of(observability);
        if new_logs {
            let opened = OpenLogs::open(observability, &self.common.registry);
            self.logs = opened.map_err(ApplyFault::Log)?;
        } else {
            self.logs.reopen();
        }
        crate::resolve::first(&plan, now()).await;
        let limits = &plan.model().limits;
        let Shared {
            in_flight,
            connections,
            lifecycle: _,
        } = &*self.common.shared;
        set(in_flight, *limits.max_in_flight_requests);
        set(connections, *limits.max_total_connections);
        let adoptions = self.adoptions(&plan, arrangement, &holdings, count, new_logs);
        let adoptions = adoptions.collect();
        self.vault.adopt(holdings, &self.common.registry);
        self.plan = plan;
        self.publish(adoptions).await
    }

    /// Hands each worker its adoption and waits until all have carried it out.
    async fn publish(&self, adoptions: Vec<Adoption>) -> Result<(), ApplyFault> {
        let mut answers = Vec::with_capacity(adoptions.len());
        for (worker, adoption) in self.workers.iter().zip(adoptions) {
            let (done, answer) = oneshot::channel();
            let command = Command::Adopt(Box::new(adoption), done);
            worker
                .commands
                .send(command)
                .map_err(|_| ApplyFault::Stuck)?;
            answers.push(answer);
        }
        for answer in answers {
            let answered = tokio::time::timeout(ADOPTION_TIME, answer).await;
            if !matches!(answered, Ok(Ok(()))) {
                return Err(ApplyFault::Stuck);
            }
        }
        Ok(())
    }

    /// Binds what the plan listens on and nobody listens on yet. Nothing changes when one fails.
    fn arrange(&mut self, plan: &Plan, workers: usize) -> Result<Arrangement, ApplyFault> {
        let mut arrangement = Arrangement {
            known: Vec::new(),
            fresh: Vec::new(),
        };
        for listener in &plan.model().listeners {
            let (address, backlog) = (&listener.address.value, *listener.backlog);
            // With port 0 several listeners may be written alike: each keeps its own door.
            let taken = |door: &KnownDoor| arrangement.known.iter().any(|one| one.id == door.id);
            let same = |door: &&KnownDoor| door.address == *address && door.backlog == backlog;
            let mut known = self.doors.iter().filter(|door| !taken(door));
            let (id, bound, fresh) = if let Some(door) = known.find(same) {
                (door.id, door.bound, None)
            } else {
                let sockets = self.open(address, backlog, workers)?;
                let id = DoorId(self.next_door);
                self.next_door += 1;
                (id, sockets.address, Some(sockets.sockets))
            };
            arrangement.known.push(KnownDoor {
                id,
                address: address.clone(),
                backlog,
                bound,
            });
            arrangement.fresh.push(fresh);
        }
        Ok(arrangement)
    }

    fn open(
        &mut self,
        address: &BindAddress,
        backlog: u32,
        workers: usize,
    ) -> Result<Sockets, ApplyFault> {
        if let Some(sockets) = listen::inherit(&mut self.inherited, address, workers) {
            return Ok(sockets);
        }
        let ours = self.doors.iter().any(|door| door.address == *address);
        let bind = if ours {
            listen::bind_beside
        } else {
            listen::bind
        };
        Ok(bind(address, backlog, workers)?)
    }

    /// What each worker is told about `plan`, and from now on the doors of `arrangement` are known.
    fn adoptions(
        &mut self,
        plan: &Arc<Plan>,
        arrangement: Arrangement,
        holdings: &Holdings,
        workers: usize,
        new_logs: bool,
    ) -> impl Iterator<Item = Adoption> + use<> {
        let Arrangement { known, mut fresh } = arrangement;
        let pools = self.pools.settings(plan, self.directory.slots(), workers);
        let links = links(plan, holdings);
        let mut adoptions = Vec::with_capacity(workers);
        for _ in 0..workers {
            let sockets = fresh.iter_mut().map(|sockets| sockets.as_mut()?.pop());
            let doors = known.iter().zip(sockets).zip(&holdings.listeners);
            let doors = doors.map(|((door, socket), tls)| Entrance {
                id: door.id,
                socket,
                tls: tls.clone(),
            });
            let doors = doors.collect();
            adoptions.push(Adoption {
                plan: Arc::clone(plan),
                links: links.clone(),
                pools: pools.clone(),
                doors,
                logs: new_logs.then(|| self.logs.worker()),
            });
        }
        self.doors = known;
        adoptions.into_iter()
    }

    /// Takes certificates that changed on disk into use.
    pub(crate) fn tend_certificates(&mut self) {
        self.vault.tend(&self.common.registry, now());
    }

    /// Lets every worker look again which targets are healthy.
    pub(crate) fn refresh(&self) {
        self.tell(|| Command::Refresh);
    }

    /// Opens log files again that were moved away.
    pub(crate) fn reopen_logs(&self) {
        self.logs.reopen();
    }

    /// Accepts no more, and lets workers leave when their last connection ends.
    pub(crate) fn drain(&self) {
        self.common.shared.lifecycle.drain();
        self.tell(|| Command::Drain);
    }

    /// Whether every worker has left.
    pub(crate) fn is_over(&self) -> bool {
        self.workers
            .iter()
            .all(|worker| worker.thread.is_finished())
    }

    /// Ends everything now.
    pub(crate) fn stop(self) {
        self.tell(|| Command::Stop);
        let threads: Vec<JoinHandle<()>> = self
            .workers
            .into_iter()
            .map(|worker| worker.thread)
            .collect();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a worker panicked");
            }
        }
        self.logs.close();
    }

    fn tell(&self, command: impl Fn() -> Command) {
        for worker in &self.workers {
            // A worker that has left needs to be told nothing.
            drop(worker.commands.send(command()));
        }
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
