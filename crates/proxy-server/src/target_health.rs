//! The metric of healthy targets.

use proxy_plan::Plan;
use proxy_telemetry::{Gauge, Registry, names};
use proxy_upstream::TargetState;
use std::sync::Arc;

/// The targets of the active plan with their gauges, which are exposed while this value exists.
#[derive(Debug, Default)]
pub(crate) struct TargetHealth(Vec<(Arc<TargetState>, Arc<Gauge>)>);

impl TargetHealth {
    /// For the targets of `plan`, with their current state.
    pub(crate) fn of(plan: &Plan, registry: &Registry) -> Self {
        let targets = plan.upstreams().iter().flat_map(|upstream| {
            upstream.targets.iter().map(|target| {
                let labels = [&*upstream.name, &*target.label];
                let gauge = registry.gauge(&names::UPSTREAM_TARGET_HEALTHY, labels);
                (Arc::clone(&target.state), gauge)
            })
        });
        let health = Self(targets.collect());
        health.publish();
        health
    }

    /// Updates the gauge of each target.
    pub(crate) fn publish(&self) {
        for (state, gauge) in &self.0 {
            gauge.set(u64::from(state.is_healthy()));
        }
    }
}
