//! The life of the process: start, signals, reloads, the end.

use crate::server::{ApplyFault, Server, now};
use crate::{admin, resolve, tls};
use proxy_config::{FaultCode, Loaded, Report};
use proxy_errors::Reason;
use proxy_telemetry::{DEFAULT_MAX_SERIES, Lifecycle, Registry, RegistrySettings, names};
use sd_notify::NotifyState;
use std::borrow::Cow;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;

/// How often the control thread looks whether the workers have left.
const LOOK: Duration = Duration::from_millis(50);

/// What the process is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the configuration comes from, at the start and at each reload.
    pub config: Source,
    /// What was built.
    pub build: Build,
}

/// Where a configuration comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, and what it includes.
    File(PathBuf),
    /// A text, for those who embed the proxy.
    Text(Cow<'static, str>),
    /// None: a welcome page on port 8080.
    Embedded,
}

/// What was built, for `--version`, `/status` and `/admin/version`.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Semantic version.
    pub version: &'static str,
    /// The commit it was built from.
    pub commit: &'static str,
    /// When it was built, RFC 3339.
    pub built_at: &'static str,
    /// The compiler.
    pub rustc: &'static str,
}

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The configuration has faults.
    #[error("{0}")]
    Config(Report),
    /// The configuration is right and cannot be put in force.
    #[error(transparent)]
    Apply(#[from] ApplyFault),
    /// The admin interface cannot be opened.
    #[error("cannot open the admin interface: {0}")]
    Admin(String),
    /// The operating system refused something.
    #[error("{0}")]
    Io(#[from] io::Error),
}

static REASONS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| Reason::ALL.iter().map(|reason| reason.as_str()).collect());

/// Reads the configuration, serves until told to stop, and ends in good order.
///
/// # Errors
/// [`StartFault`] when nothing could be served.
pub fn run(options: &Options) -> Result<(), StartFault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(live(options))
}

/// The configuration that `options` name, checked as far as that is possible without serving it:
/// certificates are read, too.
///
/// # Errors
/// Every fault that was found.
pub fn load(config: &Source) -> Result<Loaded, Report> {
    let mut loaded = read(config)?;
    match tls::check(&loaded.model, now()) {
        Ok(doubtful) => {
            for fault in doubtful {
                loaded.warnings.push(fault);
            }
            Ok(loaded)
        }
        Err(faults) => Err(Report::new(loaded.model.sources.clone(), faults)),
    }
}

fn read(config: &Source) -> Result<Loaded, Report> {
    match config {
        Source::File(path) => proxy_config::load(path),
        Source::Text(text) => proxy_config::parse(text, "(text)"),
        Source::Embedded => proxy_config::embedded(),
    }
}

async fn live(options: &Options) -> Result<(), StartFault> {
    let loaded = load(&options.config).map_err(StartFault::Config)?;
    warn(&loaded);
    let settings = RegistrySettings {
        reasons: &REASONS,
        max_series: DEFAULT_MAX_SERIES,
    };
    let registry = Arc::new(Registry::new(settings));
    let Build {
        version, commit, ..
    } = options.build;
    let lifecycle = Lifecycle::new((version, commit), Arc::clone(&registry), now());
    let lifecycle = Arc::new(lifecycle);
    let mut signals = Signals::listen()?;
    let model = Arc::new(loaded.model);
    let started = Server::start(
        Arc::clone(&model),
        Arc::clone(&registry),
        Arc::clone(&lifecycle),
        inherited(),
    );
    let server = match started.await {
        Ok(server) => server,
        Err(fault) => return Err(at_its_place(fault, &model)),
    };
    let admin = admin::Admin::open(&server, options.build, &registry, &lifecycle)
        .map_err(StartFault::Admin)?;
    lifecycle.serves(server.plan().generation());
    for bound in server.bound() {
        tracing::info!(address = %bound, "listening");
    }
    tell_systemd(&[NotifyState::Ready]);
    let mut process = Process {
        config: options.config.clone(),
        server,
        admin,
        registry,
        lifecycle,
    };
    if process.serve(&mut signals).await == End::Gracefully {
        process.drain(&mut signals).await;
    }
    process.server.stop();
    Ok(())
}

/// How the process was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Gracefully,
    Now,
}

struct Process {
    config: Source,
    server: Server,
    admin: admin::Admin,
    registry: Arc<Registry>,
    lifecycle: Arc<Lifecycle>,
}

impl Process {
    async fn serve(&mut self, signals: &mut Signals) -> End {
        let mut resolving = tokio::time::interval(resolve::EVERY);
        let mut tending = tokio::time::interval(tls::EVERY);
        for interval in [&mut resolving, &mut tending] {
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                event = signals.next() => match event {
                    Event::Reload => self.reload().await,
                    Event::ReopenLogs => self.server.reopen_logs(),
                    Event::Drain => return End::Gracefully,
                    Event::Quit => return End::Now,
                },
                _ = resolving.tick() => {
                    if resolve::all(self.server.plan(), now()).await {
                        self.server.refresh();
                    }
                }
                _ = tending.tick() => self.server.tend_certificates(),
            }
        }
    }

    /// Reads the configuration again. A bad one changes nothing.
    async fn reload(&mut self) {
        tell_systemd(&[NotifyState::Reloading]);
        let outcome = self.try_reload().await;
        let (result, succeeded) = match outcome {
            Ok(()) => ("success", true),
            Err(_) => ("failure", false),
        };
        self.lifecycle.reloaded(now(), succeeded);
        self.registry
            .counter(&names::CONFIG_RELOADS_TOTAL, [result])
            .add(1);
        match outcome {
            Ok(()) => {
                let generation = self.server.plan().generation();
                self.lifecycle.serves(generation);
                tracing::info!(generation, "configuration reloaded");
            }
            Err(fault) => {
                tracing::error!(faults = %fault, "configuration not reloaded; nothing changed");
            }
        }
        tell_systemd(&[NotifyState::Ready]);
    }

    async fn try_reload(&mut self) -> Result<(), StartFault> {
        let loaded = load(&self.config).map_err(StartFault::Config)?;
        warn(&loaded);
        let model = Arc::new(loaded.model);
        let before: Vec<_> = self.server.bound().collect();
        let applied = self.server.apply(Arc::clone(&model)).await;
        applied.map_err(|fault| at_its_place(fault, &model))?;
        for bound in self.server.bound().filter(|bound| !before.contains(bound)) {
            tracing::info!(address = %bound, "listening");
        }
        self.admin.follow(&self.server).map_err(StartFault::Admin)
    }

    /// Accepts nothing new and waits until what is in flight has ended, or the time for it.
    async fn drain(&self, signals: &mut Signals) {
        tracing::info!("draining");
        tell_systemd(&[NotifyState::Stopping]);
        self.server.drain();
        let time = *self.server.plan().model().system.graceful_shutdown_timeout;
        let deadline = tokio::time::sleep(time);
        tokio::pin!(deadline);
        while !self.server.is_over() {
            tokio::select! {
                () = &mut deadline => {
                    tracing::warn!("the time to drain is over; connections are cut");
                    return;
                }
                event = signals.next() => if event == Event::Quit {
                    return;
                },
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

/// A listener that cannot be bound is told like any other fault of the configuration: with its place.
fn at_its_place(fault: ApplyFault, model: &proxy_model::Model) -> StartFault {
    let bind = match &fault {
        ApplyFault::Bind(bind) => bind,
        ApplyFault::Tls(faults) => {
            return StartFault::Config(Report::new(model.sources.clone(), faults.clone()));
        }
        ApplyFault::Log(_) | ApplyFault::Thread(_) | ApplyFault::Stuck => {
            return StartFault::Apply(fault);
        }
    };
    let listener = model
        .listeners
        .iter()
        .find(|listener| listener.address.to_string() == bind.address);
    let Some(listener) = listener else {
        return StartFault::Apply(fault);
    };
    let place = listener.address.place().unwrap_or(listener.place);
    let fault = proxy_config::Fault::new(FaultCode::AddressInUse, place, bind.to_string())
        .label(bind.why.clone());
    StartFault::Config(Report::new(model.sources.clone(), vec![fault]))
}

fn warn(loaded: &Loaded) {
    for line in loaded.warnings.to_string().split("\n\n") {
        if !line.trim().is_empty() {
            tracing::warn!(warning = %line.trim_end(), "configuration");
        }
    }
}

/// Sockets that systemd opened for this process.
fn inherited() -> Vec<TcpListener> {
    let mut passed = listenfd::ListenFd::from_env();
    (0..passed.len())
        .filter_map(|index| passed.take_tcp_listener(index).ok().flatten())
        .collect()
}

fn tell_systemd(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot tell systemd");
    }
}

/// What the process was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Reload,
    ReopenLogs,
    Drain,
    Quit,
}

struct Signals {
    hangup: Signal,
    user1: Signal,
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.hangup.recv() => Event::Reload,
            _ = self.user1.recv() => Event::ReopenLogs,
            _ = self.terminate.recv() => Event::Drain,
            _ = self.interrupt.recv() => Event::Drain,
            _ = self.quit.recv() => Event::Quit,
        }
    }
}
