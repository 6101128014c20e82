//! How an upstream's requests are spread over its targets, compiled.

use crate::decide::RequestHead;
use crate::upstream_states::UpstreamStates;
use http::header::COOKIE;
use proxy_model::{LoadBalancing, Sticky, StickySecret, Upstream};
use proxy_upstream::{BalancingRequest, LoadBalancer, StickyKey, StickyToken, client_hash};
use std::time::Duration;

/// How an upstream's requests are spread over its targets.
#[derive(Debug)]
pub struct BalancingPlan {
    /// The kind of load balancing.
    pub balancer: LoadBalancer,
    /// Time in which the share of a target that comes back grows to the whole.
    pub slow_start: Option<Duration>,
    /// The cookie that binds clients to targets, where there is one.
    pub sticky: Option<StickyPlan>,
}

/// The cookie of a sticky upstream.
#[derive(Debug)]
pub struct StickyPlan {
    /// Its name.
    pub cookie: Box<str>,
    /// By position of the target: what the cookie says of it.
    pub tokens: Vec<StickyToken>,
}

impl BalancingPlan {
    pub(crate) fn compile(upstream: &Upstream, process_key: StickyKey) -> Self {
        let balancer = balancer(*upstream.load_balancing);
        let is_sticky = balancer == LoadBalancer::Sticky;
        Self {
            balancer,
            slow_start: upstream.slow_start.map(|window| *window),
            sticky: is_sticky.then(|| StickyPlan::compile(upstream, process_key)),
        }
    }

    /// What the choice looks at in a request.
    #[inline]
    pub(crate) fn request(
        &self,
        head: &RequestHead<'_>,
        states: &impl UpstreamStates,
    ) -> BalancingRequest {
        let mut request = BalancingRequest::default();
        if self.balancer == LoadBalancer::RoundRobin && self.slow_start.is_none() {
            return request;
        }
        if self.balancer == LoadBalancer::IpHash {
            request.client_hash = client_hash(head.client_ip);
        }
        if self.balancer.reads_random() || self.slow_start.is_some() {
            request.random = states.random();
        }
        if let Some(sticky) = &self.sticky {
            request.session = sticky.session(head);
        }
        request
    }
}

impl StickyPlan {
    fn compile(upstream: &Upstream, process_key: StickyKey) -> Self {
        let Sticky { cookie, secret } = &upstream.sticky;
        let key = match secret.as_ref().map(|secret| &secret.value) {
            Some(StickySecret(secret)) => StickyKey::from_secret(secret),
            None => process_key,
        };
        let targets = upstream.targets.iter();
        let token = |address: String| StickyToken::new(&key, &upstream.name, &address);
        Self {
            cookie: cookie.as_str().into(),
            tokens: targets
                .map(|target| token(target.address.to_string()))
                .collect(),
        }
    }

    /// What the request's cookie of this name says.
    fn session(&self, head: &RequestHead<'_>) -> Option<StickyToken> {
        let fields = head.headers.get_all(COOKIE).iter();
        let mut pairs = fields.flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
        pairs.find_map(|pair| {
            let value = pair.trim_ascii().strip_prefix(self.cookie.as_bytes())?;
            StickyToken::parse(value.strip_prefix(b"=")?)
        })
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
