//! The hosts that a bundle answers without TLS, where an authority validates them.

use proxy_model::{ListenerProtocol, Model};
use std::sync::Arc;

/// The hosts that a bundle answers without TLS.
#[derive(Debug, Default)]
pub(crate) struct PlainHosts {
    model: Option<Arc<Model>>,
}

impl PlainHosts {
    pub(crate) fn new(model: Option<Model>) -> Self {
        let has_plain_listener = |model: &Model| {
            let mut protocols = model.listeners.iter().map(|one| one.protocol.value);
            protocols.any(|protocol| protocol == ListenerProtocol::Http)
        };
        Self {
            model: model.filter(has_plain_listener).map(Arc::new),
        }
    }

    /// Returns true if a listener without TLS exists, and a route is of `host`: a route without hosts is of all. The
    /// routes of other listeners count as well, because plain ones often redirect all hosts there.
    pub(crate) fn serve(&self, host: &str) -> bool {
        let routes = self.model.iter().flat_map(|model| &model.routes);
        let mut hosts = routes.map(|route| &route.matches.hosts);
        hosts.any(|hosts| hosts.is_empty() || hosts.iter().any(|one| one.value.matches(host)))
    }
}
