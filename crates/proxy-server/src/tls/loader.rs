//! Loading of certificates, keys and roots.

use super::faults;
use super::loaded::{LoadedTls, LoadedUpstreamTls};
use super::settings;
use crate::config::delivery::PrivateKeys;
use proxy_config::Diagnostic;
use proxy_model::Model;
use proxy_tls::{ChallengeCertificates, ClientTls, PlatformRoots, ServerTls, TicketKeys};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// Time for which one key encrypts session tickets.
const TICKETS_EVERY: Duration = Duration::from_hours(4);

/// State for loading certificates, which can be sent to a blocking thread.
#[derive(Clone, Debug)]
pub(super) struct Loader {
    /// Created when the first listener needs them, because their entropy takes a tenth of a second.
    pub(super) tickets: Arc<OnceLock<Arc<TicketKeys>>>,
    pub(super) platform: Arc<PlatformRoots>,
    /// Pending validations of hosts.
    pub(super) challenges: ChallengeCertificates,
    pub(super) held: LoadedTls,
}

impl Loader {
    pub(super) fn new() -> Self {
        Self {
            tickets: Arc::default(),
            platform: Arc::new(PlatformRoots::new()),
            challenges: ChallengeCertificates::default(),
            held: LoadedTls::default(),
        }
    }

    fn tickets(&self, now: SystemTime) -> Result<&Arc<TicketKeys>, Vec<Diagnostic>> {
        if let Some(known) = self.tickets.get() {
            return Ok(known);
        }
        let made = TicketKeys::new(TICKETS_EVERY, now);
        let made = made.map_err(|fault| vec![faults::process_diagnostic(&fault)])?;
        Ok(self.tickets.get_or_init(|| made))
    }

    /// Loads the files of `model`; values with unchanged settings are kept, and updated. Blocks.
    pub(super) fn load(
        &self,
        model: &Model,
        keys: &PrivateKeys,
        now: SystemTime,
    ) -> Result<LoadedTls, Vec<Diagnostic>> {
        let (mut loaded, mut found) = (LoadedTls::default(), Vec::new());
        for listener in &model.listeners {
            let server = listener.tls.as_ref().and_then(|tls| {
                let settings =
                    settings::listener_settings(tls, *listener.protocol, keys, &self.challenges);
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
                        found.extend(
                            wrong
                                .iter()
                                .map(|fault| faults::listener_diagnostic(tls, fault)),
                        );
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
        // Values kept for unchanged settings are updated with the contents now on disk. An expired
        // certificate is a warning at start and here: the valid one in use is kept.
        let watcher = loaded.watcher();
        let kept = watcher.poll(now).kept;
        let refused = kept.iter().filter(|fault| !fault.is_out_of_date());
        let faults: Vec<_> = refused
            .map(|fault| faults::model_diagnostic(model, fault))
            .collect();
        if faults.is_empty() {
            Ok(loaded)
        } else {
            Err(faults)
        }
    }

    fn upstream_tls(
        &self,
        upstream: &proxy_model::Upstream,
        tls: &proxy_model::UpstreamTls,
        loaded: &LoadedTls,
        found: &mut Vec<Diagnostic>,
    ) -> Option<LoadedUpstreamTls> {
        let settings = match settings::upstream_settings(upstream, tls) {
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
                    found.extend(
                        wrong
                            .iter()
                            .map(|fault| faults::upstream_diagnostic(tls, fault)),
                    );
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
