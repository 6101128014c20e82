//! A worker: a thread with its own runtime, sockets and connections.

pub(crate) mod accept;
pub(crate) mod essential_tasks;
pub(crate) mod heartbeat;
pub(crate) mod negotiate;
pub(crate) mod tick_timer;
pub(crate) mod worker_pool;

use crate::connection::client_socket::ClientSocket;
use crate::connection::settings::ConnectionSettings;
use crate::http3::{self, Endpoint, EndpointParts, Http3Settings, Http3Shared};
use crate::sockets::socket_assignment::{ListenerId, OwnedSockets, SocketAssignment};
use accept::{WorkerListener, admit};
use essential_tasks::EssentialTasks;
use heartbeat::{Heartbeat, HeartbeatMonitor};
use proxy_clock::Tick;
use proxy_http1::{close_idle_pipes, limit_large_reads};
use proxy_pipeline::{
    ActivePlan, Draining, IdSource, Logs, REMOVED_LISTENER, RouteLimits, Shared, Time,
    UpstreamConnectors, Worker,
};
use proxy_plan::Plan;
use proxy_pool::PoolSettings;
use proxy_telemetry::Registry;
use proxy_tls::ServerTls;
use socket2::Socket;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tick_timer::TickTimer;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// A plan with everything that a worker needs to apply it.
#[derive(Debug)]
pub(crate) struct PlanUpdate {
    pub(crate) plan: Arc<Plan>,
    pub(crate) connectors: Vec<UpstreamConnectors>,
    pub(crate) limits: Arc<[RouteLimits]>,
    /// Settings of every target's pool.
    pub(crate) pools: Vec<PoolSettings>,
    /// The listeners, in the plan's order.
    pub(crate) listeners: Vec<ListenerUpdate>,
    /// New ends of the logs; `None` if their destinations are unchanged.
    pub(crate) logs: Option<Logs>,
}

/// The active plan with new addresses of names, and everything that a worker needs to apply it.
#[derive(Clone, Debug)]
pub(crate) struct AddressUpdate {
    pub(crate) plan: Arc<Plan>,
    pub(crate) connectors: Vec<UpstreamConnectors>,
    /// Settings of every target's pool.
    pub(crate) pools: Vec<PoolSettings>,
}

#[derive(Debug)]
pub(crate) struct ListenerUpdate {
    pub(crate) assignment: SocketAssignment,
    pub(crate) tls: Option<Arc<ServerTls>>,
}

/// A connection that the embedding program hands over.
#[derive(Debug)]
pub(crate) struct HandedConnection {
    /// Index of the listener with the settings that apply, in the plan's order.
    pub(crate) listener: usize,
    /// A connected socket, TCP or Unix.
    pub(crate) socket: Socket,
    /// The client's address; `None` for one on this host, at a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
}

/// A command of the control thread to a worker.
#[derive(Debug)]
pub(crate) enum Command {
    /// Reply; proves that the worker responds before it gets an update.
    Probe(oneshot::Sender<()>),
    /// Apply this plan; reply when that is done.
    Apply(Box<PlanUpdate>, oneshot::Sender<()>),
    /// Use the new addresses of names for all later requests.
    ApplyAddresses(Box<AddressUpdate>),
    /// Serve a connection that no listening socket of this process accepted.
    Accept(HandedConnection),
    /// Recompute the healthy targets.
    Refresh,
    /// Stop accepting; reply when the listening sockets are closed.
    StopAccepting(oneshot::Sender<()>),
    /// Stop accepting, end the connections, and exit with the last one.
    Drain(Draining),
    /// Exit now.
    Stop,
}

/// The control thread's handle of a worker.
#[derive(Debug)]
pub(crate) struct Handle {
    /// Unique among running workers.
    pub(crate) number: usize,
    /// Sockets that the worker holds duplicates of.
    pub(crate) owned_sockets: OwnedSockets,
    pub(crate) monitor: HeartbeatMonitor,
    pub(crate) commands: UnboundedSender<Command>,
    pub(crate) thread: JoinHandle<()>,
}

/// State shared by all workers from their start.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) shared: Arc<Shared>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) http3: Http3Shared,
}

/// Starts the worker with this number, with all its system resources. It is idle until it gets a
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
                        runtime.block_on(run(number, common, commands_rx, ready, heartbeat))
                    {
                        tracing::error!(worker = number, %error, "a worker has no clock");
                    }
                    // A slow disk must not keep the process alive.
                    runtime.shutdown_background();
                }
                // Reported to the caller, which waits for it.
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
    ready: oneshot::Sender<io::Result<()>>,
    heartbeat: Heartbeat,
) -> io::Result<()> {
    let tick_timer = match TickTimer::start() {
        Ok(timer) => timer,
        Err(error) => {
            ready.send(Err(error)).unwrap_or_default();
            return Ok(());
        }
    };
    let ids = match IdSource::from_system() {
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
                    // Sockets that are no longer served are closed before the reply.
                    tokio::task::yield_now().await;
                    // The receiver is dropped if the process is exiting.
                    done.send(()).unwrap_or_default();
                }
                Some(Command::ApplyAddresses(update)) => worker_loop.apply_addresses(*update),
                Some(Command::Accept(connection)) => worker_loop.accept(connection),
                Some(Command::Refresh) => worker_loop.worker.active().refresh(),
                Some(Command::StopAccepting(done)) => {
                    worker_loop.close_listeners();
                    tokio::task::yield_now().await;
                    done.send(()).unwrap_or_default();
                }
                Some(Command::Drain(how)) => worker_loop.drain(how),
                Some(Command::Stop) | None => {
                    // Requests still in flight end with the worker, not by their clients.
                    worker_loop.worker.draining.set(Draining::Cut);
                    worker_loop.cut_endpoints().await;
                    break;
                }
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

/// Delay from a reload that retires connections to the end of idle HTTP/1.x ones: a request that
/// was sent before the client saw the end is answered, with `Connection: close`. Equal to the
/// notice period of GOAWAY over HTTP/2.
const IDLE_CLOSE_DELAY: Duration = Duration::from_secs(1);

struct WorkerLoop {
    number: usize,
    registry: Arc<Registry>,
    http3: Http3Shared,
    worker: Rc<Worker>,
    listeners: BTreeMap<ListenerId, Rc<WorkerListener>>,
    /// Endpoints of HTTP/3, by the ID of their sockets.
    endpoints: BTreeMap<ListenerId, Rc<Endpoint>>,
    /// Endpoints without a listener, until their last connection has ended.
    former_endpoints: Vec<Weak<Endpoint>>,
    tasks: EssentialTasks,
    ticks: u32,
    /// The tick at which idle connections under retired terms close.
    close_idle_at: Option<Tick>,
}

impl WorkerLoop {
    fn new(number: usize, common: Common, ids: IdSource, first: PlanUpdate) -> Self {
        let Common {
            shared,
            registry,
            http3,
        } = common;
        let PlanUpdate {
            plan,
            connectors,
            limits,
            pools,
            listeners,
            logs,
        } = first;
        let active = ActivePlan::new(plan, connectors, limits, &registry, number);
        let metrics = registry.worker(number);
        let logs = logs.unwrap_or_else(Logs::off);
        let worker = Worker::new(shared, Time::start(), ids, active, metrics, logs);
        let mut worker_loop = Self {
            number,
            registry,
            http3,
            worker: Rc::new(worker),
            listeners: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            former_endpoints: Vec::new(),
            tasks: EssentialTasks::default(),
            ticks: 0,
            close_idle_at: None,
        };
        worker_loop.worker.pool.apply(pools);
        let pool = Rc::clone(&worker_loop.worker.pool);
        let evicting = poll_fn(move |cx| pool.poll_evictions(cx));
        worker_loop.tasks.spawn(evicting);
        let admission = Rc::clone(&worker_loop.worker.admission);
        worker_loop.tasks.spawn(admission.serve_queue());
        worker_loop.update_listeners(listeners);
        worker_loop
    }

    fn apply(&mut self, update: PlanUpdate) {
        let PlanUpdate {
            plan,
            connectors,
            limits,
            pools,
            listeners,
            logs,
        } = update;
        let active = ActivePlan::new(plan, connectors, limits, &self.registry, self.number);
        self.worker.apply(active);
        self.worker.pool.apply(pools);
        if let Some(logs) = logs {
            self.worker.logs.replace(logs);
        }
        self.update_listeners(listeners);
    }

    fn apply_addresses(&self, update: AddressUpdate) {
        let AddressUpdate {
            plan,
            connectors,
            pools,
        } = update;
        let active = self.worker.active();
        let active = active.resolved(plan, connectors, &self.registry, self.number);
        self.worker.apply(active);
        self.worker.pool.apply(pools);
    }

    /// Opens new listeners, closes removed ones, and updates the index of all.
    fn update_listeners(&mut self, listeners: Vec<ListenerUpdate>) {
        let active = self.worker.active();
        let limits = &active.plan.model().limits;
        let mut old = std::mem::take(&mut self.listeners);
        let mut old_endpoints = std::mem::take(&mut self.endpoints);
        let mut retired = false;
        let close_idle_at = self.worker.clock.after(IDLE_CLOSE_DELAY);
        for (index, ListenerUpdate { assignment, tls }) in listeners.into_iter().enumerate() {
            let SocketAssignment {
                id,
                serves,
                fresh,
                datagrams,
            } = assignment;
            let Some(listener_plan) = active.plan.listeners().get(index) else {
                continue;
            };
            let settings = Rc::new(ConnectionSettings::new(listener_plan, limits, tls));
            let known = old.remove(&id);
            retired |= known
                .as_ref()
                .is_some_and(|listener| listener.update_settings(&settings, close_idle_at));
            let listener = known
                .unwrap_or_else(|| Rc::new(WorkerListener::new(&listener_plan.name, &settings)));
            listener.index.set(index);
            listener.keep_only(&serves);
            for (place, socket) in fresh {
                listener.open(&self.worker, &mut self.tasks, place, socket);
            }
            if let Some(datagrams) = datagrams {
                let settings = Rc::clone(&listener.settings.borrow());
                let http3 = Http3Settings::new(listener_plan, limits);
                let known = old_endpoints.remove(&datagrams.id);
                self.update_endpoint(known, *datagrams, index, (settings, http3));
            }
            self.listeners.insert(id, listener);
        }
        let some_left = !old.is_empty() || !old_endpoints.is_empty();
        for endpoint in old_endpoints.into_values() {
            endpoint.remove();
            self.former_endpoints.push(Rc::downgrade(&endpoint));
        }
        for listener in old.into_values() {
            // A listener bound again under the same name keeps its connections.
            let mut anew = self
                .listeners
                .values()
                .filter(|one| one.name == listener.name);
            match anew.next() {
                Some(anew) => {
                    listener.index.set(anew.index.get());
                    retired |= listener.update_settings(&anew.settings.borrow(), close_idle_at);
                }
                None => listener.index.set(REMOVED_LISTENER),
            }
            listener.close();
        }
        if retired {
            self.close_idle_at = Some(close_idle_at);
        }
        if some_left || retired {
            self.worker.timers.wake_all();
        }
    }

    /// Sends sockets and settings to the endpoint of a listener, or starts the endpoint.
    fn update_endpoint(
        &mut self,
        known: Option<Rc<Endpoint>>,
        datagrams: SocketAssignment,
        index: usize,
        (settings, http3): (Rc<ConnectionSettings>, Http3Settings),
    ) {
        let SocketAssignment {
            id, serves, fresh, ..
        } = datagrams;
        let endpoint = if let Some(endpoint) = known {
            endpoint.update(&settings, http3);
            endpoint
        } else {
            match self.start_endpoint(settings, http3) {
                Ok(endpoint) => endpoint,
                Err(error) => {
                    tracing::error!(%error, "HTTP/3 is not served by a worker");
                    return;
                }
            }
        };
        endpoint.index.set(index);
        endpoint.keep_only(&serves);
        for socket in fresh {
            endpoint.open(socket);
        }
        self.former_endpoints.retain(|former| {
            let former = former.upgrade();
            former.as_ref().is_some_and(|former| {
                former.leave_sockets_to(&endpoint);
                true
            })
        });
        self.endpoints.insert(id, endpoint);
    }

    fn start_endpoint(
        &mut self,
        settings: Rc<ConnectionSettings>,
        http3: Http3Settings,
    ) -> io::Result<Rc<Endpoint>> {
        let (endpoint, task) = http3::start(EndpointParts {
            worker: Rc::clone(&self.worker),
            shared: self.http3.clone(),
            settings,
            http3,
        })?;
        self.tasks.spawn(task);
        Ok(endpoint)
    }

    /// Admits a connection after the events of all earlier ones, as accept loops do: a client that
    /// has closed its connection has its permit back.
    fn accept(&self, connection: HandedConnection) {
        let HandedConnection {
            listener: index,
            socket,
            peer,
        } = connection;
        let mut listeners = self.listeners.values();
        let Some(listener) = listeners.find(|listener| listener.index.get() == index) else {
            tracing::error!(listener = index, "a connection is closed: no such listener");
            return;
        };
        let (worker, listener) = (Rc::clone(&self.worker), Rc::clone(listener));
        tokio::task::spawn_local(async move {
            // The runtime polls its sockets before it continues.
            tokio::task::yield_now().await;
            match ClientSocket::connected(socket) {
                Ok(stream) => admit(&worker, &listener, stream, peer),
                Err(error) => tracing::error!(%error, "cannot serve a connection"),
            }
        });
    }

    fn close_listeners(&self) {
        for listener in self.listeners.values() {
            listener.close();
        }
        for endpoint in self.endpoints.values() {
            endpoint.close();
        }
    }

    /// Notifies HTTP/3 clients that their connections end: unlike over TCP, the kernel does not.
    async fn cut_endpoints(&self) {
        let former = self.former_endpoints.iter().filter_map(Weak::upgrade);
        for endpoint in self.endpoints.values().cloned().chain(former) {
            endpoint.cut().await;
        }
    }

    fn drain(&self, how: Draining) {
        self.worker.draining.set(how);
        match how {
            Draining::Gently => {
                for listener in self.listeners.values() {
                    listener.keep_only(&[]);
                }
                for endpoint in self.endpoints.values() {
                    endpoint.keep_only(&[]);
                    endpoint.close();
                }
            }
            Draining::Promptly | Draining::Cut | Draining::No => self.close_listeners(),
        }
        self.worker.pool.clear();
        self.worker.timers.wake_all();
    }

    fn tick(&mut self) {
        const TICKS_PER_SECOND: u32 = 10;
        let worker = &self.worker;
        let now = worker.time.synchronize();
        worker.clock.advance_to(now);
        worker.keep_idle();
        let is_memory_short = worker.shared.memory.is_shedding();
        worker.admission.tick(now, is_memory_short);
        limit_large_reads(worker.shared.memory.max_bytes());
        if is_memory_short {
            worker.pool.clear();
            close_idle_pipes();
        }
        let waiting = worker.admission.waiting();
        worker.metrics.requests_queued.set(waiting as u64);
        let places_taken = worker.admission.in_flight();
        worker.metrics.places_taken.set(u64::from(places_taken));
        worker.timers.run(worker.clock.now());
        if self
            .close_idle_at
            .is_some_and(|at| at <= worker.clock.now())
        {
            self.close_idle_at = None;
            worker.timers.wake_all();
        }
        worker.end_removed();
        worker.logs.borrow_mut().flush(worker.time.unix(now));
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(TICKS_PER_SECOND) {
            worker.pool.sweep();
            worker.active().publish_pools(&worker.pool);
            let now_ns = worker.time.process_ns(worker.time.elapsed());
            worker.active().settle_budgets(now_ns);
            close_idle_pipes();
        }
    }

    /// Writes the last log lines.
    fn flush(&self) {
        let worker = &self.worker;
        worker.pool.clear();
        worker.active().publish_pools(&worker.pool);
        let now = worker.time.unix(worker.time.elapsed());
        worker.logs.borrow_mut().flush(now);
    }
}

/// Maximum number of threads of one worker that read files, for all roots together; each root also
/// has a separate limit. Threads start on demand and end after ten idle seconds.
const DISK_THREADS: usize = 512;

/// Maximum time for a worker's reply to a probe, after which a reload is refused, and to an update,
/// after which a warning is logged.
pub(crate) const PLAN_UPDATE_TIMEOUT: Duration = Duration::from_secs(10);
