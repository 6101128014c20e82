//! One worker: a thread with a runtime, sockets and connections of its own.

use crate::accept::WorkerListener;
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
    pub(crate) links: Vec<UpstreamConnectors>,
    /// Of every target.
    pub(crate) pools: Vec<PoolSettings>,
    /// The listeners, in the plan's order.
    pub(crate) doors: Vec<ListenerUpdate>,
    /// New ends of the logs, if their destinations changed.
    pub(crate) logs: Option<Logs>,
}

/// One listener, as a worker is told of it.
#[derive(Debug)]
pub(crate) struct ListenerUpdate {
    pub(crate) share: SocketAssignment,
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
    Adopt(Box<PlanUpdate>, oneshot::Sender<()>),
    /// Look again which targets are healthy.
    Refresh,
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
    pub(crate) held: OwnedSockets,
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
    let (commands, inbox) = unbounded_channel();
    let (ready, readied) = oneshot::channel();
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
                        runtime.block_on(run(number, common, inbox, (ready, heartbeat)))
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
    readied.await.unwrap_or_else(left)?;
    Ok(Handle {
        number,
        held: OwnedSockets::new(),
        monitor,
        commands,
        thread,
    })
}

async fn run(
    number: usize,
    common: Common,
    mut inbox: UnboundedReceiver<Command>,
    (ready, heartbeat): (oneshot::Sender<io::Result<()>>, Heartbeat),
) -> io::Result<()> {
    let beat = match TickTimer::start() {
        Ok(beat) => beat,
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
    let Some(Command::Adopt(first, done)) = inbox.recv().await else {
        return Ok(());
    };
    heartbeat.beat();
    let mut post = WorkerLoop::new(number, common, ids, *first);
    done.send(()).unwrap_or_default();
    loop {
        tokio::select! {
            command = inbox.recv() => match command {
                Some(Command::Probe(answer)) => answer.send(()).unwrap_or_default(),
                Some(Command::Adopt(adoption, done)) => {
                    post.adopt(*adoption);
                    // Sockets that are not served any more are closed before anybody hears of it.
                    tokio::task::yield_now().await;
                    // Nobody waits for it any more when the process is on its way out.
                    done.send(()).unwrap_or_default();
                }
                Some(Command::Refresh) => post.worker.active().refresh(),
                Some(Command::Drain(how)) => post.drain(how),
                Some(Command::Stop) | None => break,
            },
            ticked = beat.next() => {
                ticked?;
                post.tick();
                heartbeat.beat();
                if post.worker.is_draining() && post.worker.sweep.is_empty() {
                    break;
                }
            }
        }
    }
    post.flush();
    Ok(())
}

/// A worker and its listeners.
struct WorkerLoop {
    number: usize,
    registry: Arc<Registry>,
    worker: Rc<Worker>,
    doors: BTreeMap<ListenerId, Rc<WorkerListener>>,
    beats: u32,
}

impl WorkerLoop {
    fn new(number: usize, common: Common, ids: IdSource, first: PlanUpdate) -> Self {
        let Common { shared, registry } = common;
        let PlanUpdate {
            plan,
            links,
            pools,
            doors,
            logs,
        } = first;
        let active = ActivePlan::new(plan, links, &registry, number);
        let cells = registry.worker(number);
        let logs = logs.unwrap_or_else(Logs::off);
        let worker = Worker::new(shared, (Time::start(), ids), active, cells, logs);
        let mut post = Self {
            number,
            registry,
            worker: Rc::new(worker),
            doors: BTreeMap::new(),
            beats: 0,
        };
        post.worker.pool.adopt(pools);
        let pool = Rc::clone(&post.worker.pool);
        tokio::task::spawn_local(poll_fn(move |cx| pool.poll_evictions(cx)));
        post.arrange(doors);
        post
    }

    fn adopt(&mut self, adoption: PlanUpdate) {
        let PlanUpdate {
            plan,
            links,
            pools,
            doors,
            logs,
        } = adoption;
        let active = ActivePlan::new(plan, links, &self.registry, self.number);
        self.worker.adopt(active);
        self.worker.pool.adopt(pools);
        if let Some(logs) = logs {
            self.worker.logs.replace(logs);
        }
        self.arrange(doors);
    }

    /// Opens the doors that are new, closes those that are gone, and tells the others their place.
    fn arrange(&mut self, doors: Vec<ListenerUpdate>) {
        let active = self.worker.active();
        let limits = &active.plan.model().limits;
        let mut old = std::mem::take(&mut self.doors);
        let mut retired = false;
        for (index, ListenerUpdate { share, tls }) in doors.into_iter().enumerate() {
            let SocketAssignment { id, serves, fresh } = share;
            let Some(listener) = active.plan.listeners().get(index) else {
                continue;
            };
            let settings = Rc::new(ConnectionSettings::new(listener, limits, tls));
            let known = old.remove(&id);
            retired |= known.as_ref().is_some_and(|door| door.settle(&settings));
            let door =
                known.unwrap_or_else(|| Rc::new(WorkerListener::new(&listener.name, &settings)));
            door.index.set(index);
            door.leave_but(&serves);
            for (place, socket) in fresh {
                door.open(&self.worker, place, socket);
            }
            self.doors.insert(id, door);
        }
        let some_left = !old.is_empty();
        for door in old.into_values() {
            // The same listener, bound anew, keeps its connections.
            let mut anew = self.doors.values().filter(|one| one.name == door.name);
            match anew.next() {
                Some(anew) => {
                    door.index.set(anew.index.get());
                    door.settle(&anew.settings.borrow());
                }
                None => door.index.set(REMOVED_LISTENER),
            }
            door.close();
        }
        if some_left || retired {
            self.worker.sweep.wake_all();
        }
    }

    fn drain(&self, how: Draining) {
        self.worker.draining.set(how);
        for door in self.doors.values() {
            match how {
                Draining::Gently => door.leave_but(&[]),
                Draining::Promptly | Draining::No => door.close(),
            }
        }
        self.worker.pool.clear();
        self.worker.sweep.wake_all();
    }

    fn tick(&mut self) {
        const BEATS_PER_SECOND: u32 = 10;
        let worker = &self.worker;
        worker.clock.advance_to(worker.time.synchronize());
        worker.sweep.run(worker.clock.now());
        worker.end_removed();
        worker.logs.borrow_mut().flush();
        self.beats = self.beats.wrapping_add(1);
        if self.beats.is_multiple_of(BEATS_PER_SECOND) {
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
pub(crate) fn gauges(plan: &Plan) -> (ConcurrencyLimit, ConcurrencyLimit) {
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
pub(crate) const ADOPTION_TIME: Duration = Duration::from_secs(10);
