//! The metrics and events of circuit breakers.

use proxy_health::{BreakerState, CircuitBreaker};
use proxy_pipeline::Time;
use proxy_plan::{Plan, Service};
use proxy_telemetry::{GaugeSource, Registry, names};
use std::sync::Arc;

/// The circuit breakers of the current plan. Their states are exported until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct BreakerStates(Vec<Arc<BreakerSource>>);

#[derive(Debug)]
struct BreakerSource {
    owner: BreakerOwner,
    breaker: CircuitBreaker,
}

/// The component that a breaker guards.
#[derive(Debug)]
enum BreakerOwner {
    /// The upstream of a route.
    Upstream { name: Arc<str>, route: Arc<str> },
    /// An agent, on all routes that name it.
    Agent(Arc<str>),
}

impl GaugeSource for BreakerSource {
    fn value(&self) -> u64 {
        let time = Time::start();
        let now_ns = time.process_ns(time.elapsed());
        self.breaker.state_at(now_ns).metric()
    }
}

impl BreakerStates {
    /// The breakers of the routes and agents of `plan`.
    pub(crate) fn new(plan: &Plan, registry: &Registry) -> Self {
        let route_breakers = plan.routes().iter().filter_map(|route| {
            let Service::Upstream(position) = route.service else {
                return None;
            };
            let upstream = plan.upstreams().get(position)?;
            let owner = BreakerOwner::Upstream {
                name: Arc::clone(&upstream.name),
                route: Arc::clone(&route.id),
            };
            Some((owner, route.breaker.clone()?))
        });
        let agent_breakers = plan.agents().iter().filter_map(|agent| {
            let owner = BreakerOwner::Agent(Arc::clone(&agent.name));
            Some((owner, agent.state.breaker.clone()?))
        });
        let sources = route_breakers
            .chain(agent_breakers)
            .map(|(owner, breaker)| {
                let source = Arc::new(BreakerSource { owner, breaker });
                let shown: Arc<dyn GaugeSource> = Arc::clone(&source) as _;
                let weak = Arc::downgrade(&shown);
                registry.show_gauge(&names::CIRCUIT_BREAKER_STATE, source.owner.labels(), weak);
                source
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
        let [component, route] = self.owner.labels();
        let labels = [component, route, state.name()];
        let counter = registry.counter(&names::CIRCUIT_BREAKER_TRANSITIONS_TOTAL, labels);
        counter.add(times);
        let change = match state {
            BreakerState::Open => "has opened",
            BreakerState::Closed => "has closed",
            BreakerState::HalfOpen => "is half-open",
        };
        self.owner.log(change, times, state == BreakerState::Open);
    }
}

impl BreakerOwner {
    /// The labels `component` and `route`; an agent's breaker belongs to no single route.
    fn labels(&self) -> [&str; 2] {
        match self {
            Self::Upstream { name, route } => [name, route],
            Self::Agent(name) => [name, ""],
        }
    }

    fn log(&self, change: &str, times: u64, is_warning: bool) {
        match self {
            Self::Upstream { name, route } => {
                log_upstream_change(name, route, change, times, is_warning);
            }
            Self::Agent(name) => log_agent_change(name, change, times, is_warning),
        }
    }
}

fn log_upstream_change(upstream: &str, route: &str, change: &str, times: u64, is_warning: bool) {
    if is_warning {
        tracing::warn!(upstream, route, times, "a circuit breaker {change}");
    } else {
        tracing::info!(upstream, route, times, "a circuit breaker {change}");
    }
}

fn log_agent_change(agent: &str, change: &str, times: u64, is_warning: bool) {
    if is_warning {
        tracing::warn!(agent, times, "an agent's circuit breaker {change}");
    } else {
        tracing::info!(agent, times, "an agent's circuit breaker {change}");
    }
}
