//! Routes of a frontend during the conversion: names, listeners, policies, priorities.

use crate::haproxy::backend::Backend;
use crate::haproxy::condition::Condition;
use crate::site::{Policies, Route, Service, Site};
use std::collections::HashMap;

/// Priority of the first rule; each further one has one less. All exceed those of routes without a
/// priority.
const FIRST_PRIORITY: u32 = 100_000;

/// A frontend during the conversion of its routes.
pub(in crate::haproxy) struct Frontend<'s> {
    name: &'s str,
    /// Names of its listeners without TLS.
    pub(in crate::haproxy) plain: Vec<String>,
    /// Names of its listeners with TLS.
    pub(in crate::haproxy) tls: Vec<String>,
    pub(super) policies: Policies,
    /// Number of routes with a priority so far.
    rules: u32,
    /// Set if a rule that may refuse requests was not migrated: all routes answer 501.
    pub(in crate::haproxy) is_closed: bool,
}

impl<'s> Frontend<'s> {
    pub(in crate::haproxy) fn new(name: &'s str) -> Self {
        Self {
            name,
            plain: Vec::new(),
            tls: Vec::new(),
            policies: Policies::default(),
            rules: 0,
            is_closed: false,
        }
    }

    /// A route for requests that meet `condition`; its name ends with `part`.
    pub(super) fn route(
        &self,
        site: &mut Site,
        part: &str,
        service: Service,
        condition: &Condition,
    ) -> Route {
        let name = site.route_name(&format!("{} {part}", self.name));
        let mut route = Route::new(name, service);
        route.listeners.clone_from(&self.plain);
        if !condition.is_plain {
            route.listeners.extend(self.tls.iter().cloned());
        }
        condition.clone().write(&mut route);
        route
    }

    /// Routes to a backend, which answer 501 if the frontend or the backend is closed. If the backend
    /// redirects to `https`, one route has the listeners without TLS, and another the rest.
    pub(super) fn backend_routes(
        &self,
        site: &mut Site,
        name: &str,
        condition: &Condition,
        backends: &HashMap<String, Backend>,
    ) -> Vec<Route> {
        let backend = backends.get(name);
        let mut route = self.route(site, name, Service::Upstream(name.to_owned()), condition);
        if self.is_closed || backend.is_some_and(|backend| backend.is_closed) {
            route.service = Service::not_migrated();
            return vec![route];
        }
        route.policies = joined(&self.policies, backend.map(|backend| &backend.policies));
        let redirect = backend.and_then(|backend| backend.to_https.as_ref());
        let Some(redirect) = redirect.filter(|_| !self.plain.is_empty()) else {
            return vec![route];
        };
        let mut plain = route.clone();
        plain.name = site.route_name(&format!("{} {name} to https", self.name));
        plain.listeners.clone_from(&self.plain);
        plain.service = redirect.clone();
        plain.policies = Policies {
            deny: self.policies.deny.clone(),
            ..Policies::default()
        };
        route.listeners.retain(|it| !self.plain.contains(it));
        if route.listeners.is_empty() {
            return vec![plain];
        }
        vec![plain, route]
    }

    /// Priority for the next rule.
    pub(in crate::haproxy) fn next_priority(&mut self) -> u32 {
        let priority = FIRST_PRIORITY.saturating_sub(self.rules);
        self.rules += 1;
        priority
    }
}

/// Combines the policies of frontend and backend.
fn joined(frontend: &Policies, backend: Option<&Policies>) -> Policies {
    let mut joined = frontend.clone();
    if let Some(backend) = backend.cloned() {
        // Both may have the same `option forwardfor` from `defaults`.
        let known = frontend.request_headers.as_slice();
        let new = backend.request_headers.into_iter();
        let new = new.filter(|it| !(it.is("set") && known.contains(it)));
        joined.request_headers.extend(new);
        joined.response_headers.extend(backend.response_headers);
        joined.rewrite = backend.rewrite.or(joined.rewrite);
        joined.settings.extend(backend.settings);
    }
    joined
}
