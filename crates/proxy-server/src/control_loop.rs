//! The control loop of the process: start, signals, reloads, upgrades, exit.

mod upgrade;

use crate::admin::{Admin, AdminListeners};
use crate::delivery::{Deliveries, Delivery, Follow, Follower, Inbox, Pending, Stop};
use crate::disk_thread::DiskThread;
use crate::events::{ANSWER, Events};
use crate::handover::{Candidate, Predecessor, Program};
use crate::heartbeat::LOOK_INTERVAL;
use crate::inherited_sockets::InheritedSockets;
use crate::memory_watch::MEMORY_INTERVAL;
use crate::process::{
    Build, Options, Source, StartError, at_its_place, load, load_over, of_configuration,
};
use crate::server::{Server, now};
use crate::signals::{Event, Signals};
use crate::systemd;
use crate::tls;
use proxy_config::Loaded;
use proxy_dns::Answer;
use proxy_errors::Reason;
use proxy_model::{ControlPlane, LogLevel, Model};
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

/// Time that requests in flight have to finish after a worker or the admin interface has died.
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
    let end = process.serve(&mut signals).await;
    let outcome = process.finish(end, &mut signals).await;
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
    /// The task that accepts connections of the admin interface has panicked.
    AdminLost,
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
    /// The bundle in force; `None` for the node's own configuration.
    bundle: Option<Delivery>,
    inbox: Inbox,
    /// Drop ends the client of the control plane.
    follower: Option<Stop>,
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
            follow,
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
        let (deliveries, inbox) = Deliveries::new(Arc::clone(&registry));
        let follower = follower(&disk, follow.zip(model.control_plane.clone()), deliveries).await?;
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
        let server = started.await.map_err(|fault| at_its_place(fault, &model))?;
        let admin = Admin::open(listeners, &server, *build, (&registry, &lifecycle));
        announce(&server, follower.is_none().then_some(&*lifecycle));
        let mut process = Self {
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
            bundle: None,
            inbox,
            follower: None,
        };
        // Sockets of a predecessor that the bundle asks for must not be closed before.
        process.follow(follower).await;
        process.server.finish_handover();
        process
            .admin
            .iter()
            .for_each(|admin| admin.keep_files(false));
        process.lifecycle.serves(process.server.plan().generation());
        Ok(process)
    }

    /// Puts the client's bundle in force, and lets the client run.
    async fn follow(&mut self, follower: Option<Follower>) {
        let Some(Follower { first, start }) = follower else {
            return;
        };
        let outcome = match first {
            None => None,
            Some(delivery) => Some(self.deliver(delivery).await),
        };
        self.follower = Some(start(outcome));
    }

    async fn serve(&mut self, signals: &mut Signals) -> End {
        let shared = Arc::clone(self.server.shared());
        let admin_lost = self.admin.as_ref().map(Admin::lost).unwrap_or_default();
        let mut certificate_timer = tokio::time::interval(tls::CHECK_INTERVAL);
        let mut looking = None;
        let mut worker_timer = tokio::time::interval(LOOK_INTERVAL);
        let mut memory_timer = tokio::time::interval(MEMORY_INTERVAL);
        for interval in [&mut certificate_timer, &mut worker_timer, &mut memory_timer] {
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                event = signals.next() => if let Some(end) = self.handle(event, signals).await {
                    return end;
                },
                // The set of sockets must not change while they are handed over.
                pending = self.inbox.next(), if self.upgrade.is_none() => {
                    if let Some(end) = self.take(pending, signals).await {
                        return end;
                    }
                },
                successor = upgrade::end(&mut self.upgrade) => if self.end_upgrade(successor).await {
                    return End::HandedOver;
                },
                answers = self.server.next_answers() => self.adopt_answers(answers),
                _ = certificate_timer.tick() => {
                    self.flush_repeated_events();
                    self.server.settle_rate_limits();
                    looking.get_or_insert_with(|| self.server.check_certificates());
                }
                changed = tls::end(&mut looking) => self.server.reload_certificates(changed),
                () = admin_lost.notified() => return End::AdminLost,
                () = shared.health_changes.notified() => self.server.refresh(),
                _ = memory_timer.tick() => self.server.check_memory(),
                _ = worker_timer.tick() => if let Some(worker) = self.look_after_workers() {
                    return End::WorkerLost(worker);
                },
            }
        }
    }

    /// Activates the addresses that look-ups have found.
    fn adopt_answers(&mut self, answers: Vec<Answer>) {
        if self.server.adopt_answers(answers)
            && let Some(admin) = &self.admin
        {
            admin.report(self.server.plan());
        }
    }

    /// Returns the number of a worker that has died.
    fn look_after_workers(&mut self) -> Option<usize> {
        self.server.end_ejections();
        self.server.count_evictions();
        self.server.check_workers()
    }

    /// Handles a signal; returns the kind of exit that it requests.
    async fn handle(&mut self, event: Event, signals: &mut Signals) -> Option<End> {
        match event {
            Event::Reload => tokio::select! {
                biased;
                event = signals.end() => return Some(End::of(event)),
                () = self.reload() => {}
            },
            Event::ReopenLogs => self.server.reopen_logs(),
            Event::Upgrade => self.begin_upgrade(),
            Event::Drain | Event::Quit => return Some(End::of(event)),
        }
        None
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
        let outcome = self.try_reload(self.bundle.clone()).await;
        self.conclude_reload(outcome);
        systemd::tell(NotifyState::Ready);
    }

    /// Applies a delivery of the control plane, and answers it. A signal to exit comes first.
    async fn take(&mut self, pending: Pending, signals: &mut Signals) -> Option<End> {
        let Pending { delivery, answer } = pending;
        tokio::select! {
            biased;
            event = signals.end() => Some(End::of(event)),
            outcome = self.deliver(delivery) => {
                // A client that has ended meanwhile does not ask.
                drop(answer.send(outcome));
                None
            }
        }
    }

    /// Applies a bundle as a reload does: wholly, or not at all.
    async fn deliver(&mut self, delivery: Delivery) -> Result<(), Vec<String>> {
        let outcome = self.try_reload(Some(delivery.clone())).await;
        let answer = match &outcome {
            Ok(()) => Ok(()),
            Err(fault) => Err(diagnostics(fault)),
        };
        if answer.is_ok() {
            self.bundle = Some(delivery);
        }
        self.conclude_reload(outcome);
        answer
    }

    /// Counts the result of a reload, and reports it.
    fn conclude_reload(&mut self, outcome: Result<(), StartError>) {
        let (result, succeeded) = match outcome {
            Ok(()) => ("success", true),
            Err(_) => ("failure", false),
        };
        self.lifecycle.reloaded(now(), succeeded);
        self.registry
            .counter(&names::CONFIG_RELOADS_TOTAL, [result])
            .add(1);
        self.report_reload(outcome);
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

    /// Loads the node's own file, with `bundle` over it.
    async fn try_reload(&mut self, bundle: Option<Delivery>) -> Result<(), StartError> {
        let keys = bundle.as_ref().map(|bundle| bundle.keys.clone());
        let keys = keys.unwrap_or_default();
        let loaded = match bundle {
            Some(bundle) => {
                let config = self.config.clone();
                let loaded = self.disk.run(move || load_over(&config, &bundle)).await?;
                loaded.map_err(StartError::Config)?
            }
            None => load_on_disk_thread(&self.disk, &self.config).await?,
        };
        warn(&loaded);
        let model = Arc::new(loaded.model);
        let before: Vec<_> = self.server.bound().cloned().collect();
        let (admin, inherited) = (self.admin.as_ref(), self.server.inherited());
        let listeners = prepare_admin(&self.disk, admin, &model, inherited).await?;
        let applied = self.server.apply(Arc::clone(&model), &keys).await;
        applied.map_err(|fault| at_its_place(fault, &model))?;
        for bound in self.server.bound().filter(|bound| !before.contains(bound)) {
            tracing::info!(address = %bound, "listening");
        }
        if let Some(admin) = &mut self.admin {
            admin.update(listeners, self.server.plan());
        }
        Ok(())
    }

    /// Ends as `end` says. An error is the loss that the process ends for.
    async fn finish(&mut self, end: End, signals: &mut Signals) -> Result<(), StartError> {
        let lost = match end {
            End::Gracefully => {
                self.drain(signals).await;
                return Ok(());
            }
            End::HandedOver => {
                self.leave(signals).await;
                return Ok(());
            }
            End::Now => return Ok(()),
            End::WorkerLost(worker) => StartError::WorkerLost(worker),
            End::AdminLost => StartError::AdminLost,
        };
        tracing::error!("{lost}; the process ends");
        self.drain_briefly(signals).await;
        Err(lost)
    }

    /// Stops accepting, and waits until requests in flight finish or the grace period ends.
    async fn drain(&mut self, signals: &mut Signals) {
        tracing::info!("draining");
        self.follower = None;
        self.upgrade.take().inspect(Candidate::abort);
        systemd::tell(NotifyState::Stopping);
        self.end(signals).await;
    }

    /// As [`drain`](Self::drain), for a few seconds: the process does not listen meanwhile, so its
    /// restart must not be delayed for long.
    async fn drain_briefly(&mut self, signals: &mut Signals) {
        drop(tokio::time::timeout(LAST_GRACE, self.drain(signals)).await);
    }

    /// After a handover: waits until requests in flight finish, without a limit.
    async fn leave(&mut self, signals: &mut Signals) {
        // The successor follows the control plane with the same identity.
        self.follower = None;
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

/// Prepares the client of the control plane on the disk thread, which may block.
async fn follower(
    disk: &DiskThread,
    follow: Option<(Follow, ControlPlane)>,
    deliveries: Deliveries,
) -> Result<Option<Follower>, StartError> {
    let Some((follow, settings)) = follow else {
        return Ok(None);
    };
    let prepared = disk.run(move || follow(&settings, deliveries)).await?;
    Ok(Some(prepared))
}

/// The reasons against a bundle, as texts for the control plane.
fn diagnostics(fault: &StartError) -> Vec<String> {
    match fault {
        StartError::Config(report) => report.texts().collect(),
        StartError::Apply(_)
        | StartError::TakeOver(_)
        | StartError::WorkerLost(_)
        | StartError::AdminLost
        | StartError::Io(_) => vec![fault.to_string()],
    }
}

/// Reports the sockets. A process that serves already is ready before that: a reader may ask at once.
fn announce(server: &Server, serving: Option<&Lifecycle>) {
    if let Some(lifecycle) = serving {
        lifecycle.serves(server.plan().generation());
    }
    for bound in server.bound() {
        tracing::info!(address = %bound, "listening");
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
