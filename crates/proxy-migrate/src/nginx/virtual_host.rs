//! An nginx server as the context of its routes.

use super::scope::Scope;
use crate::site::{Route, Service, Site};

/// Properties of a server that its routes need.
#[derive(Clone)]
pub(super) struct Server<'d> {
    /// Name for the routes' names.
    pub(super) name: String,
    /// Host for tests of routes without a host.
    pub(super) sample_host: Option<String>,
    pub(super) hosts: Vec<String>,
    pub(super) listeners: Vec<String>,
    pub(super) scope: Scope<'d>,
}

impl Server<'_> {
    /// Creates a route of the server, named by a part of its path.
    pub(super) fn route(&self, site: &mut Site, part: &str, service: Service) -> Route {
        let name = site.route_name(&format!("{} {part}", self.name.replace('*', "any")));
        let mut route = Route::new(name, service);
        route.listeners.clone_from(&self.listeners);
        route.hosts.clone_from(&self.hosts);
        route.sample_host.clone_from(&self.sample_host);
        route
    }
}
