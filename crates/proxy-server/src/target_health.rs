//! The metric that tells which targets are healthy.

use proxy_plan::Plan;
use proxy_telemetry::{Gauge, Registry, names};
use proxy_upstream::TargetState;
use std::sync::Arc;

/// The targets of the plan in force, each with its gauge, which is shown for as long as this is kept.
#[derive(Debug, Default)]
pub(crate) struct TargetHealth(Vec<(Arc<TargetState>, Arc<Gauge>)>);

impl TargetHealth {
    /// That of the targets of `plan`, as it is now.
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

    /// Shows how each target is now.
    pub(crate) fn publish(&self) {
        for (state, gauge) in &self.0 {
            gauge.set(u64::from(state.is_healthy()));
        }
    }
}
