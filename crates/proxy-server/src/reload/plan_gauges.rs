//! The metrics that are read from the state of the current plan.

use crate::observe::cache_gauges::CacheGauges;
use crate::targets::breaker_states::BreakerStates;
use proxy_plan::Plan;
use proxy_telemetry::Registry;

/// Gauges of one plan. They are exported until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct PlanGauges {
    pub(crate) breakers: BreakerStates,
    _cache: CacheGauges,
}

impl PlanGauges {
    pub(crate) fn new(plan: &Plan, registry: &Registry) -> Self {
        Self {
            breakers: BreakerStates::new(plan, registry),
            _cache: CacheGauges::new(plan, registry),
        }
    }
}
