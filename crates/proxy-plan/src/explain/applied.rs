//! The settings that apply to one request.

use crate::decide::Decision;
use crate::plan::Plan;
use crate::route::RoutePlan;
use crate::upstream::UpstreamPlan;
use proxy_model::registry::{limits as limit_rows, upstreams as upstream_rows};
use proxy_model::{EffectiveSetting, Part, Route, Upstream, effective_in};

impl Plan {
    /// The settings of the decision's route, its upstream, the limits and the listener, without
    /// those that another one of them overrides.
    pub(super) fn applied(
        &self,
        decision: &Decision<'_>,
        listener_at: usize,
    ) -> Vec<EffectiveSetting> {
        let model = &*self.model;
        let own_route = decision.route.and_then(|one| model.routes.get(one.index));
        let own_upstream = decision.route.and_then(|one| self.upstream_of(one));
        let own_upstream = own_upstream.and_then(|one| model.upstreams.get(one.index));
        let own_listener = model.listeners.get(listener_at);
        let parts = [
            own_route.map(Part::Route),
            own_upstream.map(Part::Upstream),
            Some(Part::Limits),
            own_listener.map(Part::Listener),
        ];
        let parts = parts.into_iter().flatten();
        let mut settings: Vec<_> = parts.flat_map(|part| effective_in(model, part)).collect();
        let overridden = overridden(own_route, own_upstream);
        // Targets are listed as candidates.
        let target_limits =
            |setting: &EffectiveSetting| setting.row.starts_with(upstream_rows::TARGET.path);
        settings.retain(|one| !overridden.contains(&one.row) && !target_limits(one));
        settings
    }

    /// The upstream that a route forwards to.
    pub(super) fn upstream_of(&self, route: &RoutePlan) -> Option<&UpstreamPlan> {
        self.upstreams.get(route.service.upstream()?)
    }
}

/// Rows of the registry that do not apply to requests on this route and upstream.
fn overridden(route: Option<&Route>, upstream: Option<&Upstream>) -> Vec<&'static str> {
    let policies = route.map(|route| &route.policies);
    let times = policies.map(|policies| &policies.timeouts);
    let has_own_idle = upstream.is_none_or(|one| one.connection_pool.max_idle.is_some());
    let rows = [
        (
            times.is_some_and(|times| times.connect.is_some()),
            upstream_rows::CONNECT.path,
        ),
        (
            times.is_some_and(|times| times.read.is_some()),
            upstream_rows::READ.path,
        ),
        (
            times.is_some_and(|times| times.idle.is_some()),
            upstream_rows::IDLE.path,
        ),
        (
            policies.is_some_and(|policies| policies.max_body_size.is_some()),
            limit_rows::MAX_BODY_SIZE.path,
        ),
        (
            has_own_idle,
            limit_rows::MAX_IDLE_CONNECTIONS_PER_UPSTREAM.path,
        ),
    ];
    let rows = rows.into_iter().filter(|(is_overridden, _)| *is_overridden);
    rows.map(|(_, row)| row).collect()
}
