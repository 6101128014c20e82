//! The hosts that a bundle serves without TLS, where HTTP-01 challenges can be answered.

use proxy_model::{ListenerProtocol, Model};
use proxy_routing::HostPattern;
use quick_cache::Weighter;
use std::collections::HashSet;
use std::sync::Arc;

/// The hosts that a bundle serves without TLS.
#[derive(Debug, Default)]
pub(crate) struct PlainHosts {
    /// Set if a route without host patterns exists: it matches every host.
    are_all: bool,
    hosts: HashSet<HostPattern>,
}

/// Cache weight of a bundle: its number of hosts, at least 1.
#[derive(Clone, Debug)]
pub(crate) struct HostCount;

impl<K> Weighter<K, Arc<PlainHosts>> for HostCount {
    fn weight(&self, _: &K, plain: &Arc<PlainHosts>) -> u64 {
        1 + plain.hosts.len() as u64
    }
}

impl PlainHosts {
    pub(crate) fn new(model: Option<&Model>) -> Self {
        let is_plain = |model: &&Model| {
            let mut protocols = model.listeners.iter().map(|one| one.protocol.value);
            protocols.any(|protocol| protocol == ListenerProtocol::Http)
        };
        let routes = model.filter(is_plain).into_iter();
        let hosts = routes.flat_map(|model| &model.routes);
        let mut plain = Self::default();
        for hosts in hosts.map(|route| &route.matches.hosts) {
            plain.are_all |= hosts.is_empty();
            plain
                .hosts
                .extend(hosts.iter().map(|one| one.value.clone()));
        }
        plain
    }

    /// Returns true if the bundle has a listener without TLS and a route for `host`; a route
    /// without hosts matches all. Routes of TLS listeners count as well, because plain listeners
    /// often redirect every host to them.
    pub(crate) fn serve(&self, host: &str) -> bool {
        self.are_all || self.hosts.iter().any(|pattern| pattern.matches(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quick_cache::sync::Cache;

    #[test]
    fn bundles_in_memory_are_bounded_by_their_hosts() {
        let cache = Cache::with_weighter(10, 1_000, HostCount);
        for number in 0..100_u32 {
            let hosts =
                (0..100).map(|host| HostPattern::parse(&format!("h{host}.{number}.example")));
            let plain = PlainHosts {
                hosts: hosts.map(Result::unwrap).collect(),
                ..PlainHosts::default()
            };
            cache.insert(number, Arc::new(plain));
        }
        let (bundles, hosts) = (cache.len(), cache.weight());
        assert!(0 < bundles && hosts <= 1_000, "{bundles} with {hosts}");
    }
}
