//! Certificates, keys and roots of the active configuration, kept across reloads and renewed.

mod faults;
mod renewal;
mod settings;
mod watching;

use crate::delivery::PrivateKeys;
use proxy_config::Diagnostic;
use proxy_model::Model;
use proxy_telemetry::{Gauge, Registry};
use proxy_tls::{ClientTls, PlatformRoots, ServerTls, TicketKeys, Watcher};
use rustls_pki_types::ServerName;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::task::{JoinError, spawn_blocking};

pub(crate) use renewal::CHECK_INTERVAL;
use watching::SharedWatcher;
pub(crate) use watching::{CertificateChanges, end};

/// Time for which one key encrypts session tickets.
const TICKETS_EVERY: Duration = Duration::from_hours(4);

/// TLS of the process: the loaded files, and their watcher.
#[derive(Debug)]
pub(crate) struct CertificateManager {
    loader: Loader,
    watcher: SharedWatcher,
    expiry: Vec<Arc<Gauge>>,
}

/// State for loading certificates, which can be sent to a blocking thread.
#[derive(Clone, Debug)]
struct Loader {
    /// Created when the first listener needs them, because their entropy takes a tenth of a second.
    tickets: Arc<OnceLock<Arc<TicketKeys>>>,
    platform: Arc<PlatformRoots>,
    held: LoadedTls,
}

/// TLS of one configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedTls {
    /// By index of the listener.
    pub(crate) listeners: Vec<Option<Arc<ServerTls>>>,
    /// By index of the upstream.
    pub(crate) upstreams: Vec<Option<LoadedUpstreamTls>>,
}

/// TLS to the targets of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct LoadedUpstreamTls {
    pub(crate) tls: Arc<ClientTls>,
    /// By index of the target.
    pub(crate) names: Vec<ServerName<'static>>,
}

impl CertificateManager {
    /// Without loaded files.
    pub(crate) fn new() -> Self {
        Self {
            loader: Loader::new(),
            watcher: SharedWatcher::default(),
            expiry: Vec::new(),
        }
    }

    /// Loads the files of `model`, on a blocking thread. Values with unchanged settings are kept,
    /// and updated with the contents now on disk, which apply to every handshake from then on.
    pub(crate) async fn load(
        &self,
        model: &Arc<Model>,
        keys: &PrivateKeys,
        now: SystemTime,
    ) -> Result<LoadedTls, Vec<Diagnostic>> {
        let (loader, model, keys) = (self.loader.clone(), Arc::clone(model), keys.clone());
        let loading = spawn_blocking(move || loader.load(&model, &keys, now));
        let lost = |error: JoinError| Err(vec![faults::of_thread(&error)]);
        loading.await.unwrap_or_else(lost)
    }

    /// The active certificates, keys and roots.
    pub(crate) fn loaded(&self) -> &LoadedTls {
        &self.loader.held
    }

    /// Activates `loaded_tls`: only its files are watched from now on.
    pub(crate) fn apply(&mut self, loaded_tls: LoadedTls, registry: &Registry) {
        self.watcher = loaded_tls.watcher();
        self.loader.held = loaded_tls;
        self.show_expiry(registry);
    }
}

impl Loader {
    fn new() -> Self {
        Self {
            tickets: Arc::default(),
            platform: Arc::new(PlatformRoots::new()),
            held: LoadedTls::default(),
        }
    }

    fn tickets(&self, now: SystemTime) -> Result<&Arc<TicketKeys>, Vec<Diagnostic>> {
        if let Some(known) = self.tickets.get() {
            return Ok(known);
        }
        let made = TicketKeys::new(TICKETS_EVERY, now);
        let made = made.map_err(|fault| vec![faults::of_process(&fault)])?;
        Ok(self.tickets.get_or_init(|| made))
    }

    /// Like [`CertificateManager::load`]. Blocks.
    fn load(
        &self,
        model: &Model,
        keys: &PrivateKeys,
        now: SystemTime,
    ) -> Result<LoadedTls, Vec<Diagnostic>> {
        let (mut loaded, mut found) = (LoadedTls::default(), Vec::new());
        for listener in &model.listeners {
            let server = listener.tls.as_ref().and_then(|tls| {
                let settings = settings::of_listener(tls, keys);
                let known = self.held.server(&settings).or(loaded.server(&settings));
                if let Some(known) = known {
                    return Some(Arc::clone(known));
                }
                let tickets = match self.tickets(now) {
                    Ok(tickets) => tickets,
                    Err(faults) => {
                        found.extend(faults);
                        return None;
                    }
                };
                match ServerTls::load(settings, tickets, now) {
                    Ok(server) => Some(Arc::new(server)),
                    Err(wrong) => {
                        found.extend(wrong.iter().map(|fault| faults::of_listener(tls, fault)));
                        None
                    }
                }
            });
            loaded.listeners.push(server);
        }
        for upstream in &model.upstreams {
            let upstream_tls = match &upstream.tls {
                None => None,
                Some(tls) => self.upstream_tls(upstream, tls, &loaded, &mut found),
            };
            loaded.upstreams.push(upstream_tls);
        }
        if !found.is_empty() {
            return Err(found);
        }
        // Values kept for unchanged settings are updated with the contents now on disk.
        let watcher = loaded.watcher();
        let kept = watcher.poll(now).kept;
        if kept.is_empty() {
            Ok(loaded)
        } else {
            let faults = kept.iter();
            Err(faults.map(|fault| faults::of_model(model, fault)).collect())
        }
    }

    fn upstream_tls(
        &self,
        upstream: &proxy_model::Upstream,
        tls: &proxy_model::UpstreamTls,
        loaded: &LoadedTls,
        found: &mut Vec<Diagnostic>,
    ) -> Option<LoadedUpstreamTls> {
        let settings = match settings::of_upstream(upstream, tls) {
            Ok(settings) => settings,
            Err(fault) => {
                found.push(fault);
                return None;
            }
        };
        let sni = settings.sni.clone();
        let known = self.held.client(&settings).or(loaded.client(&settings));
        let client = match known {
            Some(known) => Arc::clone(known),
            None => match ClientTls::load(settings, &self.platform) {
                Ok(client) => Arc::new(client),
                Err(wrong) => {
                    found.extend(wrong.iter().map(|fault| faults::of_upstream(tls, fault)));
                    return None;
                }
            },
        };
        match settings::target_names(upstream, sni.as_ref()) {
            Ok(names) => Some(LoadedUpstreamTls { tls: client, names }),
            Err(fault) => {
                found.push(fault);
                None
            }
        }
    }
}

impl LoadedTls {
    /// A watcher of every file.
    fn watcher(&self) -> SharedWatcher {
        let mut watcher = Watcher::new();
        for server in self.servers() {
            watcher.watch_server(server);
        }
        for client in self.clients() {
            watcher.watch_client(client);
        }
        SharedWatcher::new(watcher)
    }

    /// Each distinct listener TLS.
    fn servers(&self) -> impl Iterator<Item = &Arc<ServerTls>> {
        let all = self.listeners.iter().enumerate();
        all.filter_map(|(index, server)| {
            let server = server.as_ref()?;
            let mut earlier = self.listeners.iter().take(index).flatten();
            (!earlier.any(|other| Arc::ptr_eq(other, server))).then_some(server)
        })
    }

    /// Each distinct upstream TLS.
    fn clients(&self) -> impl Iterator<Item = &Arc<ClientTls>> {
        let all = self.upstreams.iter().enumerate();
        all.filter_map(|(index, upstream_tls)| {
            let client = &upstream_tls.as_ref()?.tls;
            let mut earlier = self.upstreams.iter().take(index).flatten();
            (!earlier.any(|other| Arc::ptr_eq(&other.tls, client))).then_some(client)
        })
    }

    fn server(&self, settings: &proxy_tls::ServerTlsSettings) -> Option<&Arc<ServerTls>> {
        self.servers().find(|server| server.settings() == settings)
    }

    fn client(&self, settings: &proxy_tls::ClientTlsSettings) -> Option<&Arc<ClientTls>> {
        self.clients().find(|client| client.settings() == settings)
    }
}

/// Loads the files of `model` for a check only. Returns the warnings.
///
/// # Errors
/// Unusable files.
pub(crate) fn check(
    model: &Model,
    keys: &PrivateKeys,
    now: SystemTime,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let loaded_tls = Loader::new().load(model, keys, now)?;
    Ok(faults::warnings(model, &loaded_tls, now))
}
