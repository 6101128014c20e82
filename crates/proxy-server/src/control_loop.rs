//! The control loop of the process: start, signals, reloads, upgrades, exit.

mod upgrade;

use crate::admin::{Admin, AdminListeners};
use crate::disk_thread::DiskThread;
use crate::events::{ANSWER, Events};
use crate::handover::{Candidate, Predecessor, Program};
use crate::heartbeat::LOOK_INTERVAL;
use crate::inherited_sockets::InheritedSockets;
use crate::memory_watch::MEMORY_INTERVAL;
use crate::process::{Build, Options, Source, StartError, at_its_place, load, of_configuration};
use crate::server::{Server, now};
use crate::signals::{Event, Signals};
use crate::systemd;
use crate::{dns, tls};
use proxy_config::Loaded;
use proxy_errors::Reason;
use proxy_model::{LogLevel, Model};
use proxy_telemetry::{
    DEFAULT_MAX_SERIES, EventFields, Lifecycle, Registry, RegistrySettings, names,
};
use sd_notify::NotifyState;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Interval of checking whether the workers have ended.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Time that requests in flight have to finish after a worker has died.
const LAST_GRACE: Duration = Duration::from_secs(5);

static REASONS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| Reason::ALL.iter().map(|reason| reason.as_str()).collect());

/// Serves until told to stop, and exits gracefully. `inherited` holds the sockets of the service
/// manager.
pub(crate) async fn run(options: &Options, inherited: InheritedSockets) -> Result<(), StartError> {
    let (predecessor, passed) = match Predecessor::find().map_err(StartError::TakeOver)? {
        Some((predecessor, passed)) => (Some(predecessor), passed),
        None => (None, Vec::new()),
    };
    let mut signals = Signals::listen()?;
    let starting = Process::start(options, inherited.and(passed), predecessor);
    let mut process = tokio::select! {
        biased;
        // A slow disk or name server must not delay signals.
        _ = signals.end() => return Ok(()),
        started = starting => started?,
    };
    systemd::tell(NotifyState::Ready);
    let mut outcome = Ok(());
    match process.serve(&mut signals).await {
        End::Gracefully => process.drain(&mut signals).await,
        End::HandedOver => process.leave(&mut signals).await,
        End::Now => {}
        End::WorkerLost(worker) => {
            tracing::error!(worker, "a worker has died; the process ends");
            let drained = process.drain(&mut signals);
            // The process does not listen meanwhile, so its restart must not be delayed for long.
            drop(tokio::time::timeout(LAST_GRACE, drained).await);
            outcome = Err(StartError::WorkerLost(worker));
        }
    }
    process.server.stop().await;
    outcome
}

/// The kind of exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Gracefully,
    HandedOver,
    Now,
    /// The worker with this number has died.
    WorkerLost(usize),
}

impl End {
    /// The exit that `event` requests; `event` must be one that ends the process.
    fn of(event: Event) -> Self {
        match event {
            Event::Quit => Self::Now,
            Event::Drain | Event::Reload | Event::ReopenLogs | Event::Upgrade => Self::Gracefully,
        }
    }
}

struct Process {
    config: Source,
    disk: DiskThread,
    program: Option<Program>,
    events: Option<Events>,
    server: Server,
    admin: Option<Admin>,
    registry: Arc<Registry>,
    lifecycle: Arc<Lifecycle>,
    upgrade: Option<Candidate>,
    /// A reload was requested during an upgrade.
    reload_pending: bool,
}

impl Process {
    async fn start(
        options: &Options,
        mut inherited: InheritedSockets,
        predecessor: Option<Predecessor>,
    ) -> Result<Self, StartError> {
        let Options {
            config,
            build,
            program,
            events,
        } = options;
        let disk = DiskThread::start()?;
        let loaded = load_on_disk_thread(&disk, config).await?;
        warn(&loaded);
        let settings = RegistrySettings {
            reasons: &REASONS,
            max_series: DEFAULT_MAX_SERIES,
        };
        let registry = Arc::new(Registry::new(settings));
        if let Some(events) = events {
            events.count_into(&registry);
        }
        let Build {
            version, commit, ..
        } = *build;
        let lifecycle = Lifecycle::new((version, commit), Arc::clone(&registry), now());
        let lifecycle = Arc::new(lifecycle);
        let model = Arc::new(loaded.model);
        // Before serving begins: nothing may fail once a client is accepted.
        let listeners = prepare_admin(&disk, None, &model, &mut inherited).await?;
        let started = Server::start(
            Arc::clone(&model),
            Arc::clone(&registry),
            Arc::clone(&lifecycle),
            (disk.clone(), inherited),
            async || {
                if let Some(predecessor) = predecessor {
                    predecessor.relieve().await;
                    upgrade::count(&registry, "success");
                }
            },
        );
        let started = started.await;
        let mut server = started.map_err(|fault| at_its_place(fault, &model))?;
        server.finish_handover();
        let admin = Admin::open(listeners, &server, *build, (&registry, &lifecycle));
        admin.keep_files(false);
        lifecycle.serves(server.plan().generation());
        for bound in server.bound() {
            tracing::info!(address = %bound, "listening");
        }
        Ok(Self {
            config: config.clone(),
            disk,
            program: program.clone(),
            events: events.clone(),
            server,
            admin: Some(admin),
            registry,
            lifecycle,
            upgrade: None,
            reload_pending: false,
        })
    }

    async fn serve(&mut self, signals: &mut Signals) -> End {
        let shared = Arc::clone(self.server.shared());
        let mut dns_timer = tokio::time::interval(dns::EVERY);
        let mut found = None;
        let mut certificate_timer = tokio::time::interval(tls::CHECK_INTERVAL);
        let mut looking = None;
        let mut worker_timer = tokio::time::interval(LOOK_INTERVAL);
        let mut memory_timer = tokio::time::interval(MEMORY_INTERVAL);
        for interval in [
            &mut dns_timer,
            &mut certificate_timer,
            &mut worker_timer,
            &mut memory_timer,
        ] {
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                event = signals.next() => match event {
                    Event::Reload => tokio::select! {
                        biased;
                        event = signals.end() => return End::of(event),
                        () = self.reload() => {}
                    },
                    Event::ReopenLogs => self.server.reopen_logs(),
                    Event::Upgrade => self.begin_upgrade(),
                    Event::Drain | Event::Quit => return End::of(event),
                },
                successor = upgrade::end(&mut self.upgrade) => if self.end_upgrade(successor).await {
                    return End::HandedOver;
                },
                // A slow name server must not delay signals.
                _ = dns_timer.tick(), if found.is_none() => {
                    let plan = Arc::clone(self.server.plan());
                    let looking = async move { dns::all(&plan, now()).await };
                    found = Some(tokio::spawn(looking));
                }
                changed = dns::end(&mut found) => if changed {
                    self.server.refresh();
                },
                _ = certificate_timer.tick() => {
                    self.flush_repeated_events();
                    self.server.settle_rate_limits();
                    looking.get_or_insert_with(|| self.server.check_certificates());
                }
                changed = tls::end(&mut looking) => self.server.reload_certificates(changed),
                () = shared.health_changes.notified() => self.server.refresh(),
                _ = memory_timer.tick() => self.server.check_memory(),
                _ = worker_timer.tick() => {
                    self.server.end_ejections();
                    self.server.count_evictions();
                    if let Some(worker) = self.server.check_workers() {
                        return End::WorkerLost(worker);
                    }
                },
            }
        }
    }

    /// Loads the configuration again. An invalid one changes nothing.
    async fn reload(&mut self) {
        if self.upgrade.is_some() {
            // The set of sockets must not change while they are handed over.
            tracing::info!("the reload waits for the upgrade");
            self.reload_pending = true;
            return;
        }
        systemd::tell_reload();
        let outcome = self.try_reload().await;
        let (result, succeeded) = match outcome {
            Ok(()) => ("success", true),
            Err(_) => ("failure", false),
        };
        self.lifecycle.reloaded(now(), succeeded);
        self.registry
            .counter(&names::CONFIG_RELOADS_TOTAL, [result])
            .add(1);
        self.report_reload(outcome);
        systemd::tell(NotifyState::Ready);
    }

    /// Reports the result of a reload in the events and in the error log.
    fn report_reload(&mut self, outcome: Result<(), StartError>) {
        const DONE: &str = "configuration reloaded";
        const REFUSED: &str = "configuration not reloaded; nothing changed";
        let mut fields = EventFields::default();
        match outcome {
            Ok(()) => {
                let generation = self.server.plan().generation();
                self.lifecycle.serves(generation);
                tracing::info!(target: ANSWER, generation, "{DONE}");
                fields.plain("generation", generation);
                self.server.log_event(LogLevel::Info, DONE, &fields);
            }
            Err(fault) => {
                let faults = fault.to_string();
                tracing::error!(target: ANSWER, faults, "{REFUSED}");
                fields.text("faults", &faults);
                self.server.log_event(LogLevel::Error, REFUSED, &fields);
            }
        }
    }

    async fn try_reload(&mut self) -> Result<(), StartError> {
        let loaded = load_on_disk_thread(&self.disk, &self.config).await?;
        warn(&loaded);
        let model = Arc::new(loaded.model);
        let before: Vec<_> = self.server.bound().cloned().collect();
        let (admin, inherited) = (self.admin.as_ref(), self.server.inherited());
        let listeners = prepare_admin(&self.disk, admin, &model, inherited).await?;
        let applied = self.server.apply(Arc::clone(&model)).await;
        applied.map_err(|fault| at_its_place(fault, &model))?;
        for bound in self.server.bound().filter(|bound| !before.contains(bound)) {
            tracing::info!(address = %bound, "listening");
        }
        if let Some(admin) = &mut self.admin {
            admin.update(listeners, self.server.plan());
        }
        Ok(())
    }

    /// Stops accepting, and waits until requests in flight finish or the grace period ends.
    async fn drain(&mut self, signals: &mut Signals) {
        tracing::info!("draining");
        self.upgrade.take().inspect(Candidate::abort);
        systemd::tell(NotifyState::Stopping);
        self.end(signals).await;
    }

    /// After a handover: waits until requests in flight finish, without a limit.
    async fn leave(&mut self, signals: &mut Signals) {
        if let Some(admin) = self.admin.take() {
            admin.keep_files(true);
        }
        self.server.hand_over();
        while !self.server.is_over() {
            tokio::select! {
                event = signals.next() => match event {
                    Event::Drain => return self.end(signals).await,
                    Event::Quit => return,
                    Event::ReopenLogs => self.server.reopen_logs(),
                    Event::Reload | Event::Upgrade => {
                        tracing::info!("handed over already: another process is in charge");
                    }
                },
                () = tokio::time::sleep(DRAIN_CHECK_INTERVAL) => self.flush_repeated_events(),
            }
        }
    }

    fn flush_repeated_events(&self) {
        if let Some(events) = &self.events {
            events.sum_up(false);
        }
    }

    async fn end(&mut self, signals: &mut Signals) {
        self.server.drain().await;
        let time = *self.server.plan().model().system.graceful_shutdown_timeout;
        let deadline = tokio::time::sleep(time);
        tokio::pin!(deadline);
        while !self.server.is_over() {
            tokio::select! {
                () = &mut deadline => {
                    tracing::warn!("the time to drain is over; connections are cut");
                    return;
                }
                event = signals.next() => {
                    if self.handle_while_draining(event).is_break() {
                        return;
                    }
                }
                () = tokio::time::sleep(DRAIN_CHECK_INTERVAL) => self.flush_repeated_events(),
            }
        }
    }

    /// Handles a signal during the drain; breaks if the process is to exit at once.
    fn handle_while_draining(&self, event: Event) -> ControlFlow<()> {
        match event {
            Event::Quit => return ControlFlow::Break(()),
            Event::ReopenLogs => self.server.reopen_logs(),
            Event::Reload | Event::Upgrade => {
                tracing::warn!("draining: this process neither reloads nor hands over");
            }
            Event::Drain => tracing::info!("draining already; SIGQUIT cuts it short"),
        }
        ControlFlow::Continue(())
    }
}

/// Loads the configuration on the disk thread, which may block.
async fn load_on_disk_thread(disk: &DiskThread, config: &Source) -> Result<Loaded, StartError> {
    let config = config.clone();
    let loaded = disk.run(move || load(&config)).await?;
    loaded.map_err(StartError::Config)
}

/// Opens what `model` asks for of the admin interface and is not open `now`, on the thread that may wait
/// for a disk.
async fn prepare_admin(
    disk: &DiskThread,
    now: Option<&Admin>,
    model: &Arc<Model>,
    inherited: &mut InheritedSockets,
) -> Result<AdminListeners, StartError> {
    let open = now.map(Admin::places).unwrap_or_default();
    let (settings, mut taken) = (Arc::clone(model), std::mem::take(inherited));
    let preparing = disk.run(move || {
        let prepared = AdminListeners::prepare(&open, &settings.admin, &mut taken);
        (prepared, taken)
    });
    let (prepared, taken) = preparing.await?;
    *inherited = taken;
    prepared.map_err(|fault| of_configuration(vec![fault], model))
}

fn warn(loaded: &Loaded) {
    for text in loaded.warnings.texts() {
        tracing::warn!(target: ANSWER, warning = %text.trim_end(), "configuration");
    }
}
