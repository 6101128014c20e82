//! The compiled configuration.

use crate::listener::ListenerPlan;
use crate::route::RoutePlan;
use crate::upstream::UpstreamPlan;
use proxy_model::Model;
use proxy_routing::Router;
use std::sync::Arc;

/// A compiled configuration. Immutable; a reload makes a new one.
#[derive(Debug)]
pub struct Plan {
    pub(crate) generation: u64,
    pub(crate) model: Arc<Model>,
    pub(crate) router: Router,
    pub(crate) listeners: Vec<ListenerPlan>,
    pub(crate) routes: Vec<RoutePlan>,
    pub(crate) upstreams: Vec<UpstreamPlan>,
}

impl Plan {
    /// Number of the plan in this process, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The configuration it was made from.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The router of its rules.
    #[must_use]
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The listeners, in file order.
    #[must_use]
    pub fn listeners(&self) -> &[ListenerPlan] {
        &self.listeners
    }

    /// The routes, in file order.
    #[must_use]
    pub fn routes(&self) -> &[RoutePlan] {
        &self.routes
    }

    /// The upstreams, in file order.
    #[must_use]
    pub fn upstreams(&self) -> &[UpstreamPlan] {
        &self.upstreams
    }
}
