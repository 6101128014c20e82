//! Compilation of a model into a plan.

use crate::agent;
use crate::listener::ListenerPlan;
use crate::plan::Plan;
use crate::route::RoutePlan;
use crate::route::cache::store_limits;
use crate::targets::TargetTransaction;
use crate::upstream::UpstreamPlan;
use proxy_model::{Model, Route};
use proxy_routing::Router;
use std::sync::Arc;

impl Plan {
    /// Compiles `model` with the addresses resolved in `targets`. Targets of the active plan keep
    /// their IDs and states; new ones exist only in `targets` until it is committed.
    #[must_use]
    pub fn compile(generation: u64, model: Arc<Model>, targets: &mut TargetTransaction) -> Self {
        let upstreams = upstreams(&model, targets);
        let agents = agent::compile_all(&model, targets);
        let routes = model.routes.iter().enumerate();
        let routes: Arc<[RoutePlan]> = routes
            .map(|(index, route)| RoutePlan::compile(index, route, &model, &agents, targets))
            .collect();
        Self {
            generation,
            reads_fields: reads_fields(&model, &routes, &upstreams),
            router: Arc::new(Router::new(model.rules())),
            listeners: model.listeners.iter().map(ListenerPlan::compile).collect(),
            routes,
            upstreams,
            agents,
            cache: store_limits(&model).map(|limits| targets.cache(limits)),
            model,
        }
    }

    /// Compiles the same configuration with the addresses resolved in `targets`.
    #[must_use]
    pub fn resolved(&self, targets: &mut TargetTransaction) -> Self {
        let Self {
            generation,
            model,
            router,
            listeners,
            routes,
            upstreams: _,
            agents,
            reads_fields,
            cache,
        } = self;
        Self {
            generation: *generation,
            upstreams: upstreams(model, targets),
            model: Arc::clone(model),
            router: Arc::clone(router),
            listeners: Arc::clone(listeners),
            routes: Arc::clone(routes),
            agents: agents.clone(),
            reads_fields: *reads_fields,
            cache: cache.clone(),
        }
    }
}

/// Returns true if a rule, credentials, CORS or a sticky upstream reads header fields.
fn reads_fields(model: &Model, routes: &[RoutePlan], upstreams: &[UpstreamPlan]) -> bool {
    let is_matched = |route: &Route| !route.matches.headers.is_empty();
    let is_read = |route: &RoutePlan| route.credentials.is_some() || route.cors.is_some();
    let is_sticky = |upstream: &UpstreamPlan| upstream.balancing.sticky.is_some();
    model.routes.iter().any(is_matched)
        || routes.iter().any(is_read)
        || upstreams.iter().any(is_sticky)
}

fn upstreams(model: &Model, targets: &mut TargetTransaction) -> Vec<UpstreamPlan> {
    let upstreams = model.upstreams.iter().enumerate();
    let upstreams = upstreams
        .map(|(index, upstream)| UpstreamPlan::compile(index, upstream, &model.limits, targets));
    upstreams.collect()
}
