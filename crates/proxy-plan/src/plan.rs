//! The compiled configuration.

use crate::agent::AgentPlan;
use crate::listener::ListenerPlan;
use crate::route::{CredentialsPlan, RoutePlan, TokenKeys};
use crate::targets::KeySetPlan;
use crate::upstream::UpstreamPlan;
use proxy_cache::{CacheStore, KeyTarget};
use proxy_model::Model;
use proxy_routing::Router;
use std::sync::Arc;

/// A compiled configuration. Immutable; a reload creates a new one, as do new addresses of a DNS
/// name.
#[derive(Debug)]
pub struct Plan {
    pub(crate) generation: u64,
    pub(crate) model: Arc<Model>,
    pub(crate) router: Arc<Router>,
    pub(crate) listeners: Arc<[ListenerPlan]>,
    pub(crate) routes: Arc<[RoutePlan]>,
    pub(crate) upstreams: Vec<UpstreamPlan>,
    pub(crate) agents: Vec<Arc<AgentPlan>>,
    pub(crate) reads_fields: bool,
    /// The store of responses; `None` if no route caches.
    pub(crate) cache: Option<Arc<CacheStore>>,
}

impl Plan {
    /// Number of the plan in this process, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns true if `other` is the same configuration, perhaps with other addresses of names.
    #[must_use]
    pub fn is_same_configuration(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.routes, &other.routes)
    }

    /// The configuration that the plan was compiled from.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The router of the plan's routes.
    #[must_use]
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The listeners, in file order.
    #[must_use]
    pub fn listeners(&self) -> &[ListenerPlan] {
        &self.listeners
    }

    /// Returns true if the connections of the listener with this index are encrypted.
    pub(crate) fn is_tls(&self, listener: usize) -> bool {
        let listener = self.model.listeners.get(listener);
        listener.is_some_and(|listener| listener.tls.is_some())
    }

    /// The routes, in file order.
    #[must_use]
    pub fn routes(&self) -> &[RoutePlan] {
        &self.routes
    }

    /// The key sets used by routes; may contain duplicates.
    pub fn key_sets(&self) -> impl Iterator<Item = &KeySetPlan> {
        self.routes.iter().filter_map(|route| {
            let CredentialsPlan::Token(token) = &**route.credentials.as_ref()? else {
                return None;
            };
            match &token.keys {
                TokenKeys::Remote(set) => Some(set),
                TokenKeys::Fixed(_) | TokenKeys::Absent => None,
            }
        })
    }

    /// The upstreams, in file order.
    #[must_use]
    pub fn upstreams(&self) -> &[UpstreamPlan] {
        &self.upstreams
    }

    /// Returns true if decisions may depend on header fields other than the host, the length and
    /// forwarding claims.
    #[inline]
    #[must_use]
    pub fn reads_fields(&self) -> bool {
        self.reads_fields
    }

    /// The store of responses; `None` if no route caches.
    #[inline]
    #[must_use]
    pub fn cache(&self) -> Option<&Arc<CacheStore>> {
        self.cache.as_ref()
    }

    /// The URL of `target` in the form of the keys of each route with a cache: routes differ in
    /// `ignore-query`.
    #[must_use]
    pub fn cache_urls(&self, target: KeyTarget<'_>) -> Vec<String> {
        let caches = self.routes.iter().filter_map(|route| route.cache.as_ref());
        let ignored = caches.map(|cache| &cache.settings.ignore_query);
        let without = ignored.filter(|names| !names.is_empty());
        let mut urls = vec![target.url(&[])];
        urls.extend(without.map(|names| target.url(names)));
        urls.sort_unstable();
        urls.dedup();
        urls
    }

    /// The agents, in file order.
    #[must_use]
    pub fn agents(&self) -> &[Arc<AgentPlan>] {
        &self.agents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TargetRegistry;

    fn reads_fields(route: &str, upstream: &str) -> bool {
        let text = format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
             routes {{ route \"r\" {{ upstream \"u\"; {route} }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"127.0.0.1:81\"; {upstream} }} }}"
        );
        let loaded = proxy_config::parse(&text, "test.kdl").unwrap();
        let mut targets = TargetRegistry::default().begin();
        let plan = Plan::compile(1, Arc::new(loaded.model), &mut targets);
        let again = plan.resolved(&mut targets);
        assert_eq!(plan.reads_fields(), again.reads_fields());
        plan.reads_fields()
    }

    #[test]
    fn decisions_depend_on_fields_by_conditions_credentials_cors_and_cookies() {
        const USER: &str =
            "user \"ann\" \"$2y$04$abcdefghijklmnopqrstuu5Eib6dQmcaRkU2y9cEEtmnhcGHVBJfm\"";
        let password = format!("policies {{ basic-auth {{ {USER} }} }}");
        for (route, upstream, expected) in [
            ("", "", false),
            ("matches { path-prefix \"/a\" }", "", false),
            ("matches { header \"X-Env: beta\" }", "", true),
            (&password, "", true),
            ("policies { cors { allow-origins \"*\" } }", "", true),
            ("", "load-balancing \"sticky\"", true),
        ] {
            assert_eq!(
                reads_fields(route, upstream),
                expected,
                "{route} {upstream}"
            );
        }
    }
}
