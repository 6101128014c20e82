//! Certificates and keys of one configuration, loaded from files.

use super::watching::SharedWatcher;
use proxy_tls::{ClientTls, ServerTls, Watcher};
use rustls_pki_types::ServerName;
use std::sync::Arc;

/// TLS of the listeners and upstreams of one configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedTls {
    /// TLS of each listener, by its index; `None` without TLS.
    pub(crate) listeners: Vec<Option<Arc<ServerTls>>>,
    /// TLS of each upstream, by its index; `None` without TLS.
    pub(crate) upstreams: Vec<Option<LoadedUpstreamTls>>,
}

/// TLS to the targets of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct LoadedUpstreamTls {
    pub(crate) tls: Arc<ClientTls>,
    /// Name that each target's certificate must have, by the target's index.
    pub(crate) names: Vec<ServerName<'static>>,
}

impl LoadedTls {
    /// A watcher of all certificate and key files.
    pub(super) fn watcher(&self) -> SharedWatcher {
        let mut watcher = Watcher::new();
        for server in self.servers() {
            watcher.watch_server(server);
        }
        for client in self.clients() {
            watcher.watch_client(client);
        }
        SharedWatcher::new(watcher)
    }

    /// TLS of listeners, without duplicates: listeners with equal settings share it.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Arc<ServerTls>> {
        let all = self.listeners.iter().enumerate();
        all.filter_map(|(index, server)| {
            let server = server.as_ref()?;
            let mut earlier = self.listeners.iter().take(index).flatten();
            (!earlier.any(|other| Arc::ptr_eq(other, server))).then_some(server)
        })
    }

    /// TLS of upstreams, without duplicates.
    pub(super) fn clients(&self) -> impl Iterator<Item = &Arc<ClientTls>> {
        let all = self.upstreams.iter().enumerate();
        all.filter_map(|(index, upstream_tls)| {
            let client = &upstream_tls.as_ref()?.tls;
            let mut earlier = self.upstreams.iter().take(index).flatten();
            (!earlier.any(|other| Arc::ptr_eq(&other.tls, client))).then_some(client)
        })
    }

    pub(super) fn server(
        &self,
        settings: &proxy_tls::ServerTlsSettings,
    ) -> Option<&Arc<ServerTls>> {
        self.servers().find(|server| server.settings() == settings)
    }

    pub(super) fn client(
        &self,
        settings: &proxy_tls::ClientTlsSettings,
    ) -> Option<&Arc<ClientTls>> {
        self.clients().find(|client| client.settings() == settings)
    }
}
