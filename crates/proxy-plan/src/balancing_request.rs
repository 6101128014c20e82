//! The parts of a request that load balancing uses.

use crate::balancing::{BalancingPlan, StickyPlan};
use crate::decide::RequestHead;
use crate::upstream_states::UpstreamStates;
use http::header::COOKIE;
use proxy_model::UrlScheme;
use proxy_upstream::{BalancingRequest, LoadBalancer, StickyToken, client_hash};

impl BalancingPlan {
    /// The parts of a request that the balancer uses.
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
            request.is_https = head.scheme() == UrlScheme::Https;
        }
        request
    }
}

impl StickyPlan {
    /// The token in the request's cookie of this name.
    fn session(&self, head: &RequestHead<'_>) -> Option<StickyToken> {
        let fields = head.headers.get_all(COOKIE).iter();
        let mut pairs = fields.flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
        pairs.find_map(|pair| {
            let value = pair.trim_ascii().strip_prefix(self.cookie.as_bytes())?;
            StickyToken::parse(value.strip_prefix(b"=")?)
        })
    }
}
