//! The whole configuration as one value.

use crate::admin::Admin;
use crate::agent::Agent;
use crate::config_test::{ConfigTest, Prohibition};
use crate::control_plane::ControlPlane;
use crate::index::{AgentIndex, RouteIndex, UpstreamIndex};
use crate::limits::Limits;
use crate::listener::Listener;
use crate::observability::Observability;
use crate::peer_rule::PeerRule;
use crate::place::Sources;
use crate::policies::{Cache, TokenCarrier};
use crate::route::Route;
use crate::system::System;
use crate::upstream::Upstream;
use http::HeaderName;
use proxy_routing::Rule;

/// A validated configuration. Immutable; a reload creates a new one.
#[derive(Clone, Debug)]
pub struct Model {
    /// Listeners, in file order.
    pub listeners: Vec<Listener>,
    /// Routes, in file order.
    pub routes: Vec<Route>,
    /// Upstreams, in file order.
    pub upstreams: Vec<Upstream>,
    /// External agents, in file order.
    pub agents: Vec<Agent>,
    /// Global limits.
    pub limits: Limits,
    /// Bounds of the store of responses.
    pub cache: Cache,
    /// Settings of the admin interface.
    pub admin: Admin,
    /// Settings of the logs.
    pub observability: Observability,
    /// Settings of the process.
    pub system: System,
    /// The control plane of this node; `None` for a node without one.
    pub control_plane: Option<ControlPlane>,
    /// Permitted target addresses; `None` permits all, for a node's own configuration.
    pub peers: Option<PeerRule>,
    /// Tests of this configuration, in file order.
    pub tests: Vec<ConfigTest>,
    /// Requests that must not reach an upstream, in file order.
    pub prohibitions: Vec<Prohibition>,
    /// The files of the configuration, for the places in this model.
    pub sources: Sources,
}

impl Model {
    /// The route at `index`; `None` only for an index of another model.
    pub fn route(&self, index: RouteIndex) -> Option<&Route> {
        self.routes.get(index.position())
    }

    /// The upstream at `index`; `None` only for an index of another model.
    pub fn upstream(&self, index: UpstreamIndex) -> Option<&Upstream> {
        self.upstreams.get(index.position())
    }

    /// Names of the header fields with the tokens of clients, other than cookies, by the settings
    /// of routes.
    pub fn token_headers(&self) -> impl Iterator<Item = &HeaderName> {
        let tokens = self
            .routes
            .iter()
            .filter_map(|one| one.policies.jwt.as_ref());
        tokens.filter_map(|jwt| match &jwt.carrier {
            TokenCarrier::Header(name) => Some(&name.value),
            TokenCarrier::Cookie(_) => None,
        })
    }

    /// Marks the values of conditions and edits on [`Self::token_headers`] as secret, so that none
    /// is displayed.
    pub fn hide_tokens(&mut self) {
        let names: Vec<HeaderName> = self.token_headers().cloned().collect();
        if names.is_empty() {
            return;
        }
        for route in &mut self.routes {
            for condition in &mut route.matches.headers {
                if names.contains(condition.name()) {
                    condition.value.hide_value();
                }
            }
            let edits = &mut route.policies.request_headers;
            for field in edits.set.iter_mut().chain(&mut edits.add) {
                if names.contains(&field.name) {
                    field.value.value.set_sensitive(true);
                }
            }
        }
    }

    /// The rules of all routes, in order. If a listener relays connections, routes without a list
    /// of listeners are bound to the request listeners, because relayed connections match only
    /// routes that name their listener.
    pub fn rules(&self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = self.routes.iter().map(Route::rule).collect();
        let is_relayed = |listener: &&Listener| listener.protocol.is_relayed();
        if !self.listeners.iter().any(|one| is_relayed(&one)) {
            return rules;
        }
        let others = self.listeners.iter().filter(|one| !is_relayed(one));
        let mut others: Vec<String> = others.map(|one| one.name.clone()).collect();
        if others.is_empty() {
            // An unused listener name: an empty list would mean all listeners.
            others.push(String::new());
        }
        for rule in rules.iter_mut().filter(|rule| rule.listeners.is_empty()) {
            rule.listeners.clone_from(&others);
            rule.has_implied_listeners = true;
        }
        rules
    }

    /// The agent at `index`; `None` only for an index of another model.
    pub fn agent(&self, index: AgentIndex) -> Option<&Agent> {
        self.agents.get(index.position())
    }
}
