//! One worker: a thread with a runtime, sockets and connections of its own.

use crate::accept::WorkerListener;
use crate::essential_tasks::EssentialTasks;
use crate::heartbeat::{Heartbeat, HeartbeatMonitor};
use crate::listener_set::OwnedSockets;
use crate::settings::ConnectionSettings;
use crate::tick_timer::TickTimer;
use proxy_http1::close_spare_pipes;
use proxy_limits::ConcurrencyLimit;
use proxy_pipeline::{
    ActivePlan, Draining, IdSource, Logs, REMOVED_LISTENER, Shared, Time, UpstreamConnectors,
    Worker,
};
use proxy_plan::Plan;
use proxy_pool::PoolSettings;
use proxy_telemetry::Registry;
use proxy_tls::ServerTls;
use socket2::Socket;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// Names a listener over plans: the position of its address among all that were ever bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListenerId(pub(crate) u32);

/// A plan and all that a worker needs to carry it out.
#[derive(Debug)]
pub(crate) struct PlanUpdate {
    pub(crate) plan: Arc<Plan>,
    pub(crate) connectors: Vec<UpstreamConnectors>,
    /// Of every target.
    pub(crate) pools: Vec<PoolSettings>,
    /// The listeners, in the plan's order.
    pub(crate) listeners: Vec<ListenerUpdate>,
    /// New ends of the logs, if their destinations changed.
    pub(crate) logs: Option<Logs>,
}

/// One listener, as a worker is told of it.
#[derive(Debug)]
pub(crate) struct ListenerUpdate {
    pub(crate) assignment: SocketAssignment,
    /// TLS towards its clients.
    pub(crate) tls: Option<Arc<ServerTls>>,
}

/// The sockets of a door that a worker takes connections from.
#[derive(Debug)]
pub(crate) struct SocketAssignment {
    pub(crate) id: ListenerId,
    /// The places of its sockets; others take connections from the rest.
    pub(crate) serves: Vec<usize>,
    /// Those of which the worker has no copy yet.
    pub(crate) fresh: Vec<(usize, Socket)>,
}

/// What the control thread tells a worker.
#[derive(Debug)]
pub(crate) enum Command {
    /// Answer: whether a worker does is found out before it is told anything else.
    Probe(oneshot::Sender<()>),
    /// Carry out this plan from now on; answer when that is so.
    Apply(Box<PlanUpdate>, oneshot::Sender<()>),
    /// Look again which targets are healthy.
    Refresh,
    /// Take no more connections; answer when the listening sockets are closed.
    StopAccepting(oneshot::Sender<()>),
    /// Take no more connections, end those there are, and leave when none is left.
    Drain(Draining),
    /// Leave now.
    Stop,
}

/// The control thread's end of a worker.
#[derive(Debug)]
pub(crate) struct Handle {
    /// No other worker that runs has it.
    pub(crate) number: usize,
    /// Sockets that it has copies of.
    pub(crate) owned_sockets: OwnedSockets,
    pub(crate) monitor: HeartbeatMonitor,
    pub(crate) commands: UnboundedSender<Command>,
    pub(crate) thread: JoinHandle<()>,
}

/// What every worker is started with.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) shared: Arc<Shared>,
    pub(crate) registry: Arc<Registry>,
}

/// Starts the worker of this number, with all that it needs of the system. It does nothing until it has a
/// plan.
pub(crate) async fn start(number: usize, common: Common, now: Duration) -> io::Result<Handle> {
    let heartbeat = Heartbeat::default();
    let monitor = HeartbeatMonitor::new(number, heartbeat.clone(), &common.registry, now);
    let (commands, commands_rx) = unbounded_channel();
    let (ready, started) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name(format!("proxy-worker-{number}"))
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .thread_name(format!("proxy-disk-{number}"))
                .max_blocking_threads(DISK_THREADS)
                .build_local(tokio::runtime::LocalOptions::default());
            match runtime {
                Ok(runtime) => {
                    if let Err(error) =
                        runtime.block_on(run(number, common, commands_rx, (ready, heartbeat)))
                    {
                        tracing::error!(worker = number, %error, "a worker has no clock");
                    }
                    // A disk that does not answer must not keep the process alive.
                    runtime.shutdown_background();
                }
                // Whoever waits for it hears why.
                Err(error) => ready.send(Err(error)).unwrap_or_default(),
            }
        })?;
    let left = |_| Err(io::ErrorKind::BrokenPipe.into());
    started.await.unwrap_or_else(left)?;
    Ok(Handle {
        number,
        owned_sockets: OwnedSockets::new(),
        monitor,
        commands,
        thread,
    })
}

async fn run(
    number: usize,
    common: Common,
    mut commands_rx: UnboundedReceiver<Command>,
    (ready, heartbeat): (oneshot::Sender<io::Result<()>>, Heartbeat),
) -> io::Result<()> {
    let tick_timer = match TickTimer::start() {
        Ok(timer) => timer,
        Err(error) => {
            ready.send(Err(error)).unwrap_or_default();
            return Ok(());
        }
    };
    let ids = match IdSource::of_the_system() {
        Ok(ids) => ids,
        Err(error) => {
            ready.send(Err(error)).unwrap_or_default();
            return Ok(());
        }
    };
    ready.send(Ok(())).unwrap_or_default();
    let Some(Command::Apply(first, done)) = commands_rx.recv().await else {
        return Ok(());
    };
    heartbeat.beat();
    let mut worker_loop = WorkerLoop::new(number, common, ids, *first);
    done.send(()).unwrap_or_default();
    loop {
        tokio::select! {
            command = commands_rx.recv() => match command {
                Some(Command::Probe(answer)) => answer.send(()).unwrap_or_default(),
                Some(Command::Apply(update, done)) => {
                    worker_loop.apply(*update);
                    // Sockets that are not served any more are closed before anybody hears of it.
                    tokio::task::yield_now().await;
                    // Nobody waits for it any more when the process is on its way out.
                    done.send(()).unwrap_or_default();
                }
                Some(Command::Refresh) => worker_loop.worker.active().refresh(),
                Some(Command::StopAccepting(done)) => {
                    worker_loop.close_listeners();
                    tokio::task::yield_now().await;
                    done.send(()).unwrap_or_default();
                }
                Some(Command::Drain(how)) => worker_loop.drain(how),
                Some(Command::Stop) | None => break,
            },
            () = worker_loop.tasks.watch() => {}
            ticked = tick_timer.next() => {
                ticked?;
                worker_loop.tick();
                heartbeat.beat();
                if worker_loop.worker.is_draining() && worker_loop.worker.timers.is_empty() {
                    break;
                }
            }
        }
    }
    worker_loop.flush();
    Ok(())
}

/// A worker and its listeners.
struct WorkerLoop {
    number: usize,
    registry: Arc<Registry>,
    worker: Rc<Worker>,
    listeners: BTreeMap<ListenerId, Rc<WorkerListener>>,
    tasks: EssentialTasks,
    ticks: u32,
}

impl WorkerLoop {
    fn new(number: usize, common: Common, ids: IdSource, first: PlanUpdate) -> Self {
        let Common { shared, registry } = common;
        let PlanUpdate {
            plan,
            connectors,
            pools,
            listeners,
            logs,
        } = first;
        let active = ActivePlan::new(plan, connectors, &registry, number);
        let metrics = registry.worker(number);
        let logs = logs.unwrap_or_else(Logs::off);
        let worker = Worker::new(shared, (Time::start(), ids), active, metrics, logs);
        let mut worker_loop = Self {
            number,
            registry,
            worker: Rc::new(worker),
            listeners: BTreeMap::new(),
            tasks: EssentialTasks::default(),
            ticks: 0,
        };
        worker_loop.worker.pool.apply(pools);
        let pool = Rc::clone(&worker_loop.worker.pool);
        let evicting = poll_fn(move |cx| pool.poll_evictions(cx));
        worker_loop.tasks.spawn(evicting);
        worker_loop.update_listeners(listeners);
        worker_loop
    }

    fn apply(&mut self, update: PlanUpdate) {
        let PlanUpdate {
            plan,
            connectors,
            pools,
            listeners,
            logs,
        } = update;
        let active = ActivePlan::new(plan, connectors, &self.registry, self.number);
        self.worker.apply(active);
        self.worker.pool.apply(pools);
        if let Some(logs) = logs {
            self.worker.logs.replace(logs);
        }
        self.update_listeners(listeners);
    }

    /// Opens the doors that are new, closes those that are gone, and tells the others their place.
    fn update_listeners(&mut self, listeners: Vec<ListenerUpdate>) {
        let active = self.worker.active();
        let limits = &active.plan.model().limits;
        let mut old = std::mem::take(&mut self.listeners);
        let mut retired = false;
        for (index, ListenerUpdate { assignment, tls }) in listeners.into_iter().enumerate() {
            let SocketAssignment { id, serves, fresh } = assignment;
            let Some(listener_plan) = active.plan.listeners().get(index) else {
                continue;
            };
            let settings = Rc::new(ConnectionSettings::new(listener_plan, limits, tls));
            let known = old.remove(&id);
            retired |= known
                .as_ref()
                .is_some_and(|listener| listener.update_settings(&settings));
            let listener = known
                .unwrap_or_else(|| Rc::new(WorkerListener::new(&listener_plan.name, &settings)));
            listener.index.set(index);
            listener.keep_only(&serves);
            for socket in fresh {
                listener.open(&self.worker, &mut self.tasks, socket);
            }
            self.listeners.insert(id, listener);
        }
        let some_left = !old.is_empty();
        for listener in old.into_values() {
            // The same listener, bound anew, keeps its connections.
            let mut anew = self
                .listeners
                .values()
                .filter(|one| one.name == listener.name);
            match anew.next() {
                Some(anew) => {
                    listener.index.set(anew.index.get());
                    listener.update_settings(&anew.settings.borrow());
                }
                None => listener.index.set(REMOVED_LISTENER),
            }
            listener.close();
        }
        if some_left || retired {
            self.worker.timers.wake_all();
        }
    }

    fn close_listeners(&self) {
        for listener in self.listeners.values() {
            listener.close();
        }
    }

    fn drain(&self, how: Draining) {
        self.worker.draining.set(how);
        match how {
            Draining::Gently => {
                for listener in self.listeners.values() {
                    listener.keep_only(&[]);
                }
            }
            Draining::Promptly | Draining::No => self.close_listeners(),
        }
        self.worker.pool.clear();
        self.worker.timers.wake_all();
    }

    fn tick(&mut self) {
        const TICKS_PER_SECOND: u32 = 10;
        let worker = &self.worker;
        worker.clock.advance_to(worker.time.synchronize());
        worker.timers.run(worker.clock.now());
        worker.end_removed();
        worker.logs.borrow_mut().flush();
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(TICKS_PER_SECOND) {
            worker.pool.sweep();
            worker.active().publish_pools(&worker.pool);
            close_spare_pipes();
        }
    }

    /// The last words.
    fn flush(&self) {
        let worker = &self.worker;
        worker.pool.clear();
        worker.active().publish_pools(&worker.pool);
        worker.logs.borrow_mut().flush();
    }
}

/// The gauges that all workers share, for the limits of `plan`.
pub(crate) fn shared_limits(plan: &Plan) -> (ConcurrencyLimit, ConcurrencyLimit) {
    let limits = &plan.model().limits;
    let in_flight = ConcurrencyLimit::new(*limits.max_in_flight_requests);
    let connections = ConcurrencyLimit::new(*limits.max_total_connections);
    (in_flight, connections)
}

/// Threads of one worker that read files, for all roots together: each root has a bound of its own. They
/// start when they are needed, and leave when they have not been for ten seconds.
const DISK_THREADS: usize = 512;

/// How long a worker may take to answer before a reload is refused, and to adopt a plan before that is
/// told.
pub(crate) const PLAN_UPDATE_TIMEOUT: Duration = Duration::from_secs(10);
