//! A proxy on threads of another program, which hands connections over to it.

use crate::config::delivery::PrivateKeys;
use crate::config::options::{Build, Source};
use crate::control_loop::configuration::{Load, load, load_for_first_start};
use crate::control_loop::{new_lifecycle, new_registry};
use crate::error::start_error::{StartError, into_start_error};
use crate::reload::limit_registry::SETTLE_INTERVAL;
use crate::reload::server::start::{Purpose, ServerParts};
use crate::reload::server::{Opened, Server};
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::handover::HealthSnapshot;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::worker::HandedConnection;
use crate::worker::heartbeat::CHECK_INTERVAL;
use proxy_model::{LogTarget, Model, Setting};
use proxy_pipeline::ChallengeTokens;
use proxy_telemetry::Lifecycle;
use socket2::Socket;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

/// Options to start a [`ServerHandle`].
#[derive(Clone, Debug)]
pub struct HandleOptions {
    /// Source of the configuration, at the start and at each reload.
    pub config: Source,
    /// Build information of the program.
    pub build: Build,
    /// The file for log lines that the configuration sends to standard output, which belongs to the
    /// program; `None` sends them there.
    pub stdout: Option<PathBuf>,
}

/// A running proxy: its workers, and a control thread for reloads, health checks and names.
///
/// The proxy binds no listener, opens no admin interface, handles no signal and follows no control
/// plane: the program passes each connection to [`Self::accept`]. All else is as in
/// [`run`](crate::run). Several may run in one process. Drop ends it at once, and waits for its
/// end.
#[derive(Debug)]
pub struct ServerHandle {
    requests: UnboundedSender<Request>,
    thread: Option<JoinHandle<()>>,
}

/// A request of the program to the control thread.
enum Request {
    Accept(HandedConnection),
    Reload(oneshot::Sender<Result<(), StartError>>),
    Drain(oneshot::Sender<()>),
    Stop,
}

impl ServerHandle {
    /// Loads the configuration and starts the workers; blocks until they serve. Must not be called
    /// on a thread that runs asynchronous tasks.
    ///
    /// # Errors
    /// [`StartError`] if the configuration cannot be served.
    pub fn start(options: HandleOptions) -> Result<Self, StartError> {
        let (requests, inbox) = unbounded_channel();
        let (started, outcome) = oneshot::channel();
        let thread = thread::Builder::new().name("proxy-control".to_owned());
        let thread = thread.spawn(move || control(options, started, inbox))?;
        let handle = Self {
            requests,
            thread: Some(thread),
        };
        outcome.blocking_recv().unwrap_or_else(|_| Err(lost()))?;
        Ok(handle)
    }

    /// Serves a connected socket, TCP or Unix, under the settings of the listener with this index
    /// in the configuration. `peer` is the client's address, `None` for a client on this host. The
    /// proxy closes the socket, even if there is no such listener. Workers are used in rotation.
    pub fn accept(&self, listener: usize, socket: impl Into<OwnedFd>, peer: Option<SocketAddr>) {
        let connection = HandedConnection {
            listener,
            socket: Socket::from(socket.into()),
            peer,
        };
        // Fails if the control thread has ended, which closes the connection.
        drop(self.requests.send(Request::Accept(connection)));
    }

    /// Loads the configuration again and applies it, completely or not at all; blocks until that is
    /// done.
    ///
    /// # Errors
    /// [`StartError`] if the old configuration is still active.
    pub fn reload(&self) -> Result<(), StartError> {
        let (done, outcome) = oneshot::channel();
        // Fails if the control thread has ended, which drops the reply channel.
        drop(self.requests.send(Request::Reload(done)));
        outcome.blocking_recv().unwrap_or_else(|_| Err(lost()))
    }

    /// Drains the workers as SIGTERM does: each ends with its last connection. Blocks until the
    /// drain has begun.
    pub fn drain(&self) {
        let (done, outcome) = oneshot::channel();
        drop(self.requests.send(Request::Drain(done)));
        // Fails if the control thread has ended, and all connections with it.
        outcome.blocking_recv().unwrap_or_default();
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        // Fails if the control thread has ended, which is the goal.
        drop(self.requests.send(Request::Stop));
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the control thread panicked");
        }
    }
}

fn lost() -> StartError {
    io::Error::from(io::ErrorKind::BrokenPipe).into()
}

/// The control thread.
fn control(
    options: HandleOptions,
    started: oneshot::Sender<Result<(), StartError>>,
    requests: UnboundedReceiver<Request>,
) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            started.send(Err(error.into())).unwrap_or_default();
            return;
        }
    };
    runtime.block_on(async {
        match Control::start(options).await {
            Ok(control) => {
                started.send(Ok(())).unwrap_or_default();
                control.serve(requests).await;
            }
            Err(error) => started.send(Err(error)).unwrap_or_default(),
        }
    });
    runtime.shutdown_background();
}

struct Control {
    options: HandleOptions,
    disk: DiskThread,
    lifecycle: Arc<Lifecycle>,
    server: Server,
    /// The reload that waits for files or names, and the channel for its result.
    reload: Option<(PreparedReload, ReloadAnswer)>,
    /// Reloads requested in the meantime.
    waiting: VecDeque<ReloadAnswer>,
}

type PreparedReload = Pin<Box<dyn Future<Output = Result<(Opened, Arc<Model>), StartError>>>>;
type ReloadAnswer = oneshot::Sender<Result<(), StartError>>;

impl Control {
    async fn start(options: HandleOptions) -> Result<Self, StartError> {
        let disk = DiskThread::start()?;
        let model = load_model(&disk, &options, load_for_first_start).await?;
        let registry = new_registry();
        let Build {
            version, commit, ..
        } = options.build;
        let lifecycle = new_lifecycle(version, commit, &registry);
        let keys = PrivateKeys::default();
        let started = Server::start(
            ServerParts {
                model: Arc::clone(&model),
                keys: &keys,
                purpose: Purpose::Serving,
                registry,
                lifecycle: Arc::clone(&lifecycle),
                disk: disk.clone(),
                inherited: InheritedSockets::default(),
                listeners: ListenerSet::without_sockets(),
                snapshot: HealthSnapshot::default(),
                challenges: ChallengeTokens::default(),
            },
            async || {},
        );
        let server = started
            .await
            .map_err(|fault| into_start_error(fault, &model))?;
        lifecycle.serves(server.plan().generation());
        Ok(Self {
            options,
            disk,
            lifecycle,
            server,
            reload: None,
            waiting: VecDeque::new(),
        })
    }

    /// Serves until the program drops its handle.
    async fn serve(mut self, mut requests: UnboundedReceiver<Request>) {
        let health_changes = Arc::clone(&self.server.shared().health_changes);
        let mut timer = tokio::time::interval(CHECK_INTERVAL);
        let mut settle_timer = tokio::time::interval(SETTLE_INTERVAL);
        for interval in [&mut timer, &mut settle_timer] {
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(Request::Accept(connection)) => self.server.accept(connection),
                    Some(Request::Reload(done)) => {
                        self.waiting.push_back(done);
                        self.begin_reload();
                    }
                    Some(Request::Drain(done)) => {
                        self.server.drain().await;
                        done.send(()).unwrap_or_default();
                    }
                    Some(Request::Stop) | None => break,
                },
                prepared = prepared(&mut self.reload) => self.end_reload(prepared).await,
                results = self.server.next_results() => {
                    self.server.adopt(results);
                }
                () = health_changes.notified() => self.server.refresh(),
                _ = timer.tick() => self.maintain_workers(),
                _ = settle_timer.tick() => self.server.settle_rate_limits(),
            }
        }
        self.server.stop().await;
    }

    /// Begins the next requested reload, unless one is in progress.
    fn begin_reload(&mut self) {
        if self.reload.is_some() {
            return;
        }
        let Some(answer) = self.waiting.pop_front() else {
            return;
        };
        let (disk, options) = (self.disk.clone(), self.options.clone());
        let opening = self.server.opening();
        let prepared = async move {
            let model = load_model(&disk, &options, load).await?;
            let (keys, mut inherited) = (PrivateKeys::default(), InheritedSockets::default());
            let opened = opening.open(Arc::clone(&model), &keys, &mut inherited);
            let opened = opened
                .await
                .map_err(|fault| into_start_error(fault, &model))?;
            Ok((opened, model))
        };
        self.reload = Some((Box::pin(prepared), answer));
    }

    /// Applies a prepared configuration.
    async fn end_reload(&mut self, prepared: Result<(Opened, Arc<Model>), StartError>) {
        let Some((_, answer)) = self.reload.take() else {
            return;
        };
        let outcome = match prepared {
            Ok((opened, model)) => {
                let applied = self.server.apply(opened).await;
                applied.map_err(|fault| into_start_error(fault, &model))
            }
            Err(fault) => Err(fault),
        };
        if outcome.is_ok() {
            self.lifecycle.serves(self.server.plan().generation());
        }
        // The receiver waits, unless its thread panicked.
        answer.send(outcome).unwrap_or_default();
        self.begin_reload();
    }

    fn maintain_workers(&mut self) {
        self.server.end_ejections();
        self.server.count_evictions();
        self.server.check_memory();
        if let Some(worker) = self.server.check_workers() {
            tracing::error!(worker, "a worker has died");
        }
    }
}

/// Waits for the files and names of the current reload; pending without a reload. Cancel safe.
async fn prepared(
    reload: &mut Option<(PreparedReload, ReloadAnswer)>,
) -> Result<(Opened, Arc<Model>), StartError> {
    match reload {
        Some((prepared, _)) => prepared.as_mut().await,
        None => std::future::pending().await,
    }
}

/// Loads the configuration on the disk thread, which may block.
async fn load_model(
    disk: &DiskThread,
    options: &HandleOptions,
    load: Load,
) -> Result<Arc<Model>, StartError> {
    let config = options.config.clone();
    let loaded = disk.run(move || load(&config)).await?;
    let mut model = loaded.map_err(StartError::Config)?.model;
    if let Some(path) = &options.stdout {
        let logs = &mut model.observability;
        redirect(&mut logs.access_log.path, path);
        redirect(&mut logs.error_log.path, path);
    }
    Ok(Arc::new(model))
}

/// Sends the lines of a log on standard output to the file at `path`.
fn redirect(target: &mut Setting<LogTarget>, path: &Path) {
    if target.value == LogTarget::Stdout {
        target.value = LogTarget::File(path.to_path_buf());
    }
}
