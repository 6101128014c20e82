//! The part of a reload that may block: on a disk, on the reader of a pipe, on a name server.

use crate::config::delivery::PrivateKeys;
use crate::error::apply_error::ApplyError;
use crate::observe::logs::{LogSettings, OpenLogs};
use crate::observe::otlp::open_collector;
use crate::runtime::disk_thread::DiskThread;
use crate::runtime::system_clock::now;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::targets::dns::{FirstLookUps, FoundNames};
use crate::tls::{CertificateLoad, LoadedTls};
use crate::worker::worker_pool::worker_count;
use proxy_model::{BindAddress, Model};
use proxy_otlp::Collector;
use proxy_telemetry::{LineRing, Registry};
use std::sync::Arc;

/// Copies of the server's state, so that the server keeps running while a reload waits.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(super) disk: DiskThread,
    pub(super) certificates: CertificateLoad,
    pub(super) names: FirstLookUps,
    /// Settings of the open logs.
    pub(super) logs: LogSettings,
    pub(super) listeners: ListenerSet,
    pub(super) registry: Arc<Registry>,
    pub(super) recording: Arc<LineRing>,
}

/// Files, sockets and addresses for a model. If it is dropped instead of applied, nothing changes.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(super) model: Arc<Model>,
    pub(super) loaded_tls: LoadedTls,
    pub(super) names: FoundNames,
    /// `None` if the open logs remain in use.
    pub(super) logs: Option<OpenLogs>,
    pub(super) listeners: ListenerSet,
    /// `None` if nothing is exported.
    pub(super) collector: Option<Collector>,
}

impl Opening {
    /// The bound addresses of the active listeners.
    pub(crate) fn bound(&self) -> Vec<BindAddress> {
        self.listeners.bound().cloned().collect()
    }

    /// Opens and reads the files, sockets and addresses of `model`. `keys` are the keys held in
    /// memory.
    ///
    /// # Errors
    /// The first resource that cannot be opened.
    pub(crate) async fn open(
        self,
        model: Arc<Model>,
        keys: &PrivateKeys,
        inherited: &mut InheritedSockets,
    ) -> Result<Opened, ApplyError> {
        let Self {
            disk,
            certificates,
            names,
            logs,
            listeners,
            registry,
            recording,
        } = self;
        let loaded_tls = certificates.run(&model, keys, now()).await;
        let loaded_tls = loaded_tls.map_err(ApplyError::Tls)?;
        let names = names.run(&model).await;
        let logs = if logs == LogSettings::from(&model.observability) {
            None
        } else {
            Some(open_logs(&disk, &model, &registry, &recording).await?)
        };
        let collector = open_collector(&disk, &model).await?;
        let listeners = arrange(&disk, listeners, &model, inherited).await?;
        Ok(Opened {
            model,
            loaded_tls,
            names,
            logs,
            listeners,
            collector,
        })
    }
}

/// Opens the logs of `model`. A pipe without a reader, or a disk that hangs, blocks only the disk
/// thread.
pub(super) async fn open_logs(
    disk: &DiskThread,
    model: &Arc<Model>,
    registry: &Arc<Registry>,
    recording: &Arc<LineRing>,
) -> Result<OpenLogs, ApplyError> {
    let (model, registry) = (Arc::clone(model), Arc::clone(registry));
    let recording = Arc::clone(recording);
    let opening = disk.run(move || OpenLogs::open(&model.observability, &registry, &recording));
    let opened = opening.await.map_err(ApplyError::Disk)?;
    opened.map_err(ApplyError::Log)
}

/// The sockets for `model`. The disk thread checks and binds the files of Unix sockets; if the
/// process ends in the meantime, its inherited sockets are closed.
pub(super) async fn arrange(
    disk: &DiskThread,
    listeners: ListenerSet,
    model: &Arc<Model>,
    inherited: &mut InheritedSockets,
) -> Result<ListenerSet, ApplyError> {
    let (model, remover) = (Arc::clone(model), disk.clone());
    let mut taken = std::mem::take(inherited);
    let arranging = disk.run(move || {
        let arranged = listeners.arrange(&model, worker_count(&model), &mut taken);
        let arranged = arranged.inspect(|listeners| listeners.remove_files_on(&remover));
        (arranged, taken)
    });
    let (arranged, taken) = arranging.await.map_err(ApplyError::Disk)?;
    *inherited = taken;
    Ok(arranged?)
}
