//! The reload: of the node's own configuration, and of a bundle over it.

use super::pending_reload::{DeliveryAnswer, PendingReload, Prepared, ReadyReload, prepared};
use super::process::Process;
use super::rehearsal::{KeyedModel, rehearse};
use crate::admin::{Admin, AdminListeners, AdminSockets};
use crate::config::delivery::{self, Delivery};
use crate::config::live_tests::LiveTests;
use crate::config::options::Source;
use crate::control_loop::configuration::{Load, load, load_over, load_over_for_first_start};
use crate::error::start_error::{StartError, configuration_error, into_start_error};
use crate::observe::events::ANSWER;
use crate::reload::server::{Opened, Opening};
use crate::runtime::disk_thread::DiskThread;
use crate::runtime::system_clock::now;
use crate::runtime::systemd;
use crate::sockets::inherited_sockets::InheritedSockets;
use proxy_config::{Diagnostic, DiagnosticCode, Loaded};
use proxy_model::{BindAddress, LogLevel, Model, Place};
use proxy_telemetry::{EventFields, names};
use sd_notify::NotifyState;
use std::sync::Arc;
use tokio::sync::oneshot;

/// State of the process that a waiting reload needs.
struct Sources {
    disk: DiskThread,
    config: Source,
    admin: AdminSockets,
    opening: Opening,
    bundle: Option<Delivery>,
    /// Whether no bundle is active. A predecessor has handed over before the first one is loaded.
    is_first_bundle: bool,
    /// Whether the active configuration has a listener: a reload must not close all of them.
    has_listeners: bool,
    /// The active configuration to compare test results with; `None` without a rehearsal.
    rehearsed_beside: Option<KeyedModel>,
}

impl Process {
    /// Loads the configuration again. An invalid one changes nothing.
    pub(super) fn reload(&mut self) {
        if self.upgrade.is_some() {
            // The set of sockets must not change while they are handed over.
            tracing::info!("the reload waits for the upgrade");
            self.reload_pending = true;
        } else if self.reload.is_some() {
            tracing::info!("the reload waits for the one before");
            self.reload_pending = true;
        } else {
            systemd::notify_reload();
            self.begin_reload(self.bundle.clone(), false, None);
        }
    }

    /// Applies a bundle like a reload: completely, or not at all.
    pub(super) async fn deliver(&mut self, delivery: Delivery) -> Result<(), Vec<String>> {
        let (answer, answered) = oneshot::channel();
        self.begin_reload(Some(delivery), false, Some(answer));
        let prepared = prepared(&mut self.reload).await;
        self.end_reload(prepared).await;
        answered.await.unwrap_or_else(|_| Err(Vec::new())).map(drop)
    }

    /// Begins to load the node's own file with `bundle` over it, after a rehearsal if requested.
    pub(super) fn begin_reload(
        &mut self,
        bundle: Option<Delivery>,
        is_rehearsed: bool,
        answer: Option<DeliveryAnswer>,
    ) {
        let sources = Sources {
            disk: self.disk.clone(),
            config: self.config.clone(),
            admin: self
                .admin
                .as_ref()
                .map(Admin::open_sockets)
                .unwrap_or_default(),
            opening: self.server.opening(),
            bundle: bundle.clone(),
            is_first_bundle: self.bundle.is_none(),
            has_listeners: !self.server.plan().model().listeners.is_empty(),
            rehearsed_beside: is_rehearsed.then(|| self.in_force()),
        };
        let mut inherited = std::mem::take(self.server.inherited());
        let prepared = async move {
            // Boxed: it is large.
            let result = Box::pin(prepare(sources, &mut inherited)).await;
            Prepared { result, inherited }
        };
        self.reload = Some(PendingReload {
            prepared: Box::pin(prepared),
            bundle,
            answer,
        });
    }

    /// The active configuration, with the keys of its bundle.
    fn in_force(&self) -> KeyedModel {
        let keys = self.bundle.as_ref().map(|bundle| bundle.keys.clone());
        KeyedModel {
            model: Arc::clone(self.server.plan().model()),
            keys: keys.unwrap_or_default(),
        }
    }

    /// Applies a prepared configuration, and reports the result.
    pub(super) async fn end_reload(&mut self, prepared: Prepared) {
        let Prepared { result, inherited } = prepared;
        *self.server.inherited() = inherited;
        let Some(PendingReload { bundle, answer, .. }) = self.reload.take() else {
            return;
        };
        let mut known = Vec::new();
        let outcome = match result {
            Ok(ready) => {
                known = ready.known;
                self.apply(ready.opened, ready.listeners, &ready.model)
                    .await
            }
            Err(fault) => Err(fault),
        };
        let answer_text = match &outcome {
            Ok(()) => {
                self.bundle = bundle;
                Ok(answer.as_ref().map(|_| self.live_tests().knowing(known)))
            }
            Err(fault) => Err(diagnostics(fault)),
        };
        self.conclude_reload(outcome);
        match answer {
            // The client may have ended.
            Some(answer) => drop(answer.send(answer_text.map(Option::unwrap_or_default))),
            None => systemd::notify(NotifyState::Ready),
        }
        if std::mem::take(&mut self.reload_pending) {
            self.reload();
        } else if std::mem::take(&mut self.upgrade_pending) {
            self.begin_upgrade();
        }
    }

    fn live_tests(&self) -> LiveTests {
        LiveTests::new(self.server.plan(), self.server.bound())
    }

    async fn apply(
        &mut self,
        opened: Opened,
        listeners: AdminListeners,
        model: &Model,
    ) -> Result<(), StartError> {
        let before: Vec<_> = self.server.bound().cloned().collect();
        let applied = self.server.apply(opened).await;
        applied.map_err(|fault| into_start_error(fault, model))?;
        for bound in self.server.bound().filter(|bound| !before.contains(bound)) {
            tracing::info!(address = %bound, "listening");
        }
        if let Some(admin) = &mut self.admin {
            admin.update(listeners, self.server.plan());
        }
        delivery::compare(self.control_plane.as_ref(), model.control_plane.as_ref());
        Ok(())
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
                let faults = match &fault {
                    StartError::Config(report) => report.lines().collect::<Vec<_>>().join("; "),
                    StartError::Apply(_)
                    | StartError::Rehearsal(_)
                    | StartError::TakeOver(_)
                    | StartError::WorkerLost(_)
                    | StartError::AdminLost
                    | StartError::Io(_) => fault.to_string(),
                };
                tracing::error!(target: ANSWER, faults, "{REFUSED}");
                fields.text("faults", &faults);
                self.server.log_event(LogLevel::Error, REFUSED, &fields);
            }
        }
    }
}

/// Loads the node's own file with the bundle applied, and opens the resources it names.
async fn prepare(
    sources: Sources,
    inherited: &mut InheritedSockets,
) -> Result<ReadyReload, StartError> {
    let Sources {
        disk,
        config,
        admin,
        opening,
        bundle,
        is_first_bundle,
        has_listeners,
        rehearsed_beside,
    } = sources;
    let keys = bundle.as_ref().map(|bundle| bundle.keys.clone());
    let keys = keys.unwrap_or_default();
    let loaded = if let Some(bundle) = bundle {
        let load = if is_first_bundle {
            load_over_for_first_start
        } else {
            load_over
        };
        let loaded = disk.run(move || load(&config, &bundle)).await?;
        loaded.map_err(StartError::Config)?
    } else {
        let loaded = load_on_disk_thread(&disk, &config, load).await?;
        if has_listeners && loaded.model.listeners.is_empty() {
            let faults = vec![no_listener_left()];
            return Err(configuration_error(faults, &loaded.model));
        }
        loaded
    };
    warn(&loaded);
    let model = Arc::new(loaded.model);
    let mut known = Vec::new();
    if let Some(before) = rehearsed_beside {
        let after = KeyedModel {
            model: Arc::clone(&model),
            keys: keys.clone(),
        };
        known = rehearse(&disk, &before, &after).await?;
    }
    let listeners = prepare_admin(&disk, admin, opening.bound(), &model, inherited).await?;
    let opened = opening.open(Arc::clone(&model), &keys, inherited).await;
    let opened = opened.map_err(|fault| into_start_error(fault, &model))?;
    Ok(ReadyReload {
        opened,
        listeners,
        model,
        known,
    })
}

/// The error for a file without listeners when the active configuration has some: files are empty
/// for a moment while they are written.
fn no_listener_left() -> Diagnostic {
    let message = "there is no listener: the reload would close those in force";
    Diagnostic::new(DiagnosticCode::NoListenerLeft, Place::default(), message)
        .help("write the whole file and reload again; to serve nothing, stop the process")
}

/// The reasons for refusing a bundle, as texts for the control plane.
fn diagnostics(fault: &StartError) -> Vec<String> {
    match fault {
        StartError::Config(report) => report.texts().collect(),
        StartError::Rehearsal(failures) => failures.clone(),
        StartError::Apply(_)
        | StartError::TakeOver(_)
        | StartError::WorkerLost(_)
        | StartError::AdminLost
        | StartError::Io(_) => vec![fault.to_string()],
    }
}

/// Loads the configuration on the disk thread, which may block.
pub(super) async fn load_on_disk_thread(
    disk: &DiskThread,
    config: &Source,
    load: Load,
) -> Result<Loaded, StartError> {
    let config = config.clone();
    let loaded = disk.run(move || load(&config)).await?;
    loaded.map_err(StartError::Config)
}

/// Opens the sockets of the admin interface that `model` requires and that are not `open` yet, on
/// the disk thread, which may block. `bound` are the addresses of the listeners in force.
pub(super) async fn prepare_admin(
    disk: &DiskThread,
    open: AdminSockets,
    bound: Vec<BindAddress>,
    model: &Arc<Model>,
    inherited: &mut InheritedSockets,
) -> Result<AdminListeners, StartError> {
    let (settings, mut taken) = (Arc::clone(model), std::mem::take(inherited));
    let remover = disk.clone();
    let preparing = disk.run(move || {
        let prepared = AdminListeners::prepare(&open, &bound, &settings, &mut taken);
        let prepared = prepared.inspect(|listeners| listeners.remove_files_on(&remover));
        (prepared, taken)
    });
    let (prepared, taken) = preparing.await?;
    *inherited = taken;
    prepared.map_err(|fault| configuration_error(vec![fault], model))
}

pub(super) fn warn(loaded: &Loaded) {
    for warning in loaded.warnings.lines() {
        tracing::warn!(target: ANSWER, warning, "configuration");
    }
}
