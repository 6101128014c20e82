//! The metric that tells the states of circuit breakers.

use proxy_health::CircuitBreaker;
use proxy_plan::{Plan, Service};
use proxy_telemetry::{GaugeSource, Registry, names};
use std::sync::Arc;

/// The circuit breakers of the current plan. Their states are exported until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct BreakerStates(
    #[expect(dead_code, reason = "the registry holds weak references to them")]
    Vec<Arc<dyn GaugeSource>>,
);

#[derive(Debug)]
struct BreakerSource(CircuitBreaker);

impl GaugeSource for BreakerSource {
    fn value(&self) -> u64 {
        self.0.state().metric()
    }
}

impl BreakerStates {
    /// Those of the routes of `plan`.
    pub(crate) fn of(plan: &Plan, registry: &Registry) -> Self {
        let sources = plan.routes().iter().filter_map(|route| {
            let Service::Upstream(position) = route.service else {
                return None;
            };
            let upstream = plan.upstreams().get(position)?;
            let breaker = route.breaker.clone()?;
            let source: Arc<dyn GaugeSource> = Arc::new(BreakerSource(breaker));
            let labels = [&*upstream.name, &*route.id];
            let weak = Arc::downgrade(&source);
            registry.show_gauge(&names::CIRCUIT_BREAKER_STATE, labels, weak);
            Some(source)
        });
        Self(sources.collect())
    }
}
