//! Compiled load balancing of an upstream.

use proxy_model::{LoadBalancing, Sticky, StickySecret, Upstream};
use proxy_upstream::{LoadBalancer, StickyKey, StickyToken};
use std::time::Duration;

/// Load balancing of an upstream.
#[derive(Debug)]
pub struct BalancingPlan {
    /// The kind of load balancing.
    pub balancer: LoadBalancer,
    /// Time in which the share of a recovered target grows to its full value.
    pub slow_start: Option<Duration>,
    /// The cookie that binds clients to targets; `None` without one.
    pub sticky: Option<StickyPlan>,
}

/// The cookie of a sticky upstream.
#[derive(Debug)]
pub struct StickyPlan {
    /// Name of the cookie.
    pub cookie: Box<str>,
    /// The session cookie's token of each target, by target position.
    pub tokens: Vec<StickyToken>,
}

impl BalancingPlan {
    /// Compiles the state for the targets of `upstream` with these `labels`.
    pub(crate) fn compile<'l>(
        upstream: &Upstream,
        labels: impl Iterator<Item = &'l str>,
        process_key: StickyKey,
    ) -> Self {
        let balancer = balancer(*upstream.load_balancing);
        let is_sticky = balancer == LoadBalancer::Sticky;
        Self {
            balancer,
            slow_start: upstream.slow_start.map(|window| *window),
            sticky: is_sticky.then(|| StickyPlan::compile(upstream, labels, process_key)),
        }
    }
}

impl StickyPlan {
    fn compile<'l>(
        upstream: &Upstream,
        labels: impl Iterator<Item = &'l str>,
        process_key: StickyKey,
    ) -> Self {
        let Sticky { cookie, secret } = &upstream.sticky;
        let key = match secret.as_ref().map(|secret| &secret.value) {
            Some(StickySecret(secret)) => StickyKey::from_secret(secret),
            None => process_key,
        };
        let token = |address: &str| StickyToken::new(&key, &upstream.name, address);
        Self {
            cookie: cookie.as_str().into(),
            tokens: labels.map(token).collect(),
        }
    }
}

const fn balancer(written: LoadBalancing) -> LoadBalancer {
    match written {
        LoadBalancing::RoundRobin => LoadBalancer::RoundRobin,
        LoadBalancing::Weighted => LoadBalancer::Weighted,
        LoadBalancing::LeastConnections => LoadBalancer::LeastConnections,
        LoadBalancing::IpHash => LoadBalancer::IpHash,
        LoadBalancing::RandomTwo => LoadBalancer::RandomTwo,
        LoadBalancing::PeakEwma => LoadBalancer::PeakEwma,
        LoadBalancing::Sticky => LoadBalancer::Sticky,
    }
}
