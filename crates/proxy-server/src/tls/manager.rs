//! The certificates, keys and roots in use, kept across reloads.

use super::faults;
use super::loaded::LoadedTls;
use super::loader::Loader;
use super::watching::CertificateWatch;
use crate::config::delivery::PrivateKeys;
use proxy_config::Diagnostic;
use proxy_model::Model;
use proxy_telemetry::{Gauge, Registry, names};
use proxy_tls::ChallengeCertificates;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::task::{JoinError, spawn_blocking};

/// TLS of the process: the loaded files, and the watch of them.
#[derive(Debug)]
pub(crate) struct CertificateManager {
    pub(super) loader: Loader,
    pub(super) watch: CertificateWatch,
    pub(super) expiry: Vec<Arc<Gauge>>,
}

/// A load of files outside the manager, which stays in use.
#[derive(Debug)]
pub(crate) struct CertificateLoad(Loader);

impl CertificateLoad {
    /// Loads the files of `model`, on a blocking thread that ends with the load. Values with
    /// unchanged settings are kept, and updated with the contents now on disk, which apply to every
    /// handshake from then on.
    pub(crate) async fn run(
        self,
        model: &Arc<Model>,
        keys: &PrivateKeys,
        now: SystemTime,
    ) -> Result<LoadedTls, Vec<Diagnostic>> {
        let Self(loader) = self;
        let (model, keys) = (Arc::clone(model), keys.clone());
        let loading = spawn_blocking(move || loader.load(&model, &keys, now));
        let lost = |error: JoinError| Err(vec![faults::thread_diagnostic(&error)]);
        loading.await.unwrap_or_else(lost)
    }
}

impl CertificateManager {
    /// A manager without loaded files.
    pub(crate) fn new() -> Self {
        Self {
            loader: Loader::new(),
            watch: CertificateWatch::new(),
            expiry: Vec::new(),
        }
    }

    /// Begins a load that keeps the values in use where their settings are unchanged.
    pub(crate) fn begin_load(&self) -> CertificateLoad {
        CertificateLoad(self.loader.clone())
    }

    /// Pending validations of hosts by certificate authorities.
    pub(crate) fn challenges(&self) -> &ChallengeCertificates {
        &self.loader.challenges
    }

    /// The active certificates, keys and roots.
    pub(crate) fn loaded(&self) -> &LoadedTls {
        &self.loader.held
    }

    /// Activates `loaded_tls`: only its files are watched from now on.
    pub(crate) fn apply(&mut self, loaded_tls: LoadedTls, registry: &Registry) {
        self.watch.apply(loaded_tls.watcher());
        self.loader.held = loaded_tls;
        self.show_expiry(registry);
    }

    /// Updates the metric of certificate expiry.
    pub(super) fn show_expiry(&mut self, registry: &Registry) {
        let servers = self
            .loader
            .held
            .servers()
            .flat_map(|server| server.certificates());
        let shown = servers.map(|certificate| {
            let file = certificate.file.display().to_string();
            let gauge = registry.gauge(&names::TLS_CERTIFICATE_EXPIRY_SECONDS, [&file]);
            let at = certificate.not_after.duration_since(UNIX_EPOCH);
            gauge.set(at.unwrap_or_default().as_secs());
            gauge
        });
        self.expiry = shown.collect();
    }
}
