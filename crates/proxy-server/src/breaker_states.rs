//! The metrics and events of circuit breakers.

use proxy_health::{BreakerState, CircuitBreaker};
use proxy_plan::{Plan, Service};
use proxy_telemetry::{GaugeSource, Registry, names};
use std::sync::Arc;

/// The circuit breakers of the current plan. Their states are exported until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct BreakerStates(Vec<Arc<BreakerSource>>);

#[derive(Debug)]
struct BreakerSource {
    upstream: Arc<str>,
    route: Arc<str>,
    breaker: CircuitBreaker,
}

impl GaugeSource for BreakerSource {
    fn value(&self) -> u64 {
        self.breaker.state().metric()
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
            let source = Arc::new(BreakerSource {
                upstream: Arc::clone(&upstream.name),
                route: Arc::clone(&route.id),
                breaker: route.breaker.clone()?,
            });
            let labels = [&*upstream.name, &*route.id];
            let shown: Arc<dyn GaugeSource> = Arc::clone(&source) as _;
            let weak = Arc::downgrade(&shown);
            registry.show_gauge(&names::CIRCUIT_BREAKER_STATE, labels, weak);
            Some(source)
        });
        Self(sources.collect())
    }

    /// Counts and logs the changes since the last call.
    pub(crate) fn report(&self, registry: &Registry) {
        for source in &self.0 {
            let entered = source.breaker.take_entered();
            for (state, times) in BreakerState::ALL.into_iter().zip(entered) {
                if times > 0 {
                    source.report(state, times, registry);
                }
            }
        }
    }
}

impl BreakerSource {
    fn report(&self, state: BreakerState, times: u64, registry: &Registry) {
        let (upstream, route) = (&*self.upstream, &*self.route);
        let labels = [upstream, route, state.name()];
        let counter = registry.counter(&names::CIRCUIT_BREAKER_TRANSITIONS_TOTAL, labels);
        counter.add(times);
        let change = match state {
            BreakerState::Open => {
                tracing::warn!(upstream, route, times, "a circuit breaker has opened");
                return;
            }
            BreakerState::Closed => "has closed",
            BreakerState::HalfOpen => "is half-open",
        };
        tracing::info!(upstream, route, times, "a circuit breaker {change}");
    }
}
