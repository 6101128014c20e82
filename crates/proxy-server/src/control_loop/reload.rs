//! The reload: of the node's own configuration, and of a bundle over it.

use super::process::Process;
use crate::admin::{Admin, AdminListeners};
use crate::configuration::{load, load_over};
use crate::delivery::{self, Delivery};
use crate::disk_thread::DiskThread;
use crate::events::ANSWER;
use crate::inherited_sockets::InheritedSockets;
use crate::options::Source;
use crate::start_error::{StartError, at_its_place, of_configuration};
use crate::system_clock::now;
use crate::systemd;
use proxy_config::Loaded;
use proxy_model::{LogLevel, Model};
use proxy_telemetry::{EventFields, names};
use sd_notify::NotifyState;
use std::sync::Arc;

impl Process {
    /// Loads the configuration again. An invalid one changes nothing.
    pub(super) async fn reload(&mut self) {
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

    /// Applies a bundle as a reload does: wholly, or not at all.
    pub(super) async fn deliver(&mut self, delivery: Delivery) -> Result<(), Vec<String>> {
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
        delivery::compare(self.control_plane.as_ref(), model.control_plane.as_ref());
        Ok(())
    }
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

/// Loads the configuration on the disk thread, which may block.
pub(super) async fn load_on_disk_thread(
    disk: &DiskThread,
    config: &Source,
) -> Result<Loaded, StartError> {
    let config = config.clone();
    let loaded = disk.run(move || load(&config)).await?;
    loaded.map_err(StartError::Config)
}

/// Opens what `model` asks for of the admin interface and is not open `now`, on the thread that may wait
/// for a disk.
pub(super) async fn prepare_admin(
    disk: &DiskThread,
    now: Option<&Admin>,
    model: &Arc<Model>,
    inherited: &mut InheritedSockets,
) -> Result<AdminListeners, StartError> {
    let open = now.map(Admin::places).unwrap_or_default();
    let (settings, mut taken) = (Arc::clone(model), std::mem::take(inherited));
    let remover = disk.clone();
    let preparing = disk.run(move || {
        let prepared = AdminListeners::prepare(&open, &settings.admin, &mut taken);
        let prepared = prepared.inspect(|listeners| listeners.remove_files_on(&remover));
        (prepared, taken)
    });
    let (prepared, taken) = preparing.await?;
    *inherited = taken;
    prepared.map_err(|fault| of_configuration(vec![fault], model))
}

pub(super) fn warn(loaded: &Loaded) {
    for text in loaded.warnings.texts() {
        tracing::warn!(target: ANSWER, warning = %text.trim_end(), "configuration");
    }
}
