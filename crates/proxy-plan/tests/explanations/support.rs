//! Plans from text, and questions to them.

use proxy_plan::{ExplainRequest, Explanation, Plan, TargetRegistry, UpstreamPlan, UpstreamStates};
use proxy_upstream::{BalancerState, Rotation, StickyToken, WHOLE_SHARE};
use std::sync::Arc;

pub(crate) const SHOP: &str = include_str!("shop.kdl");

/// The plan of a configuration, called `edge.kdl` in messages.
pub(crate) fn plan(text: &str) -> Plan {
    let loaded = proxy_config::parse(text, "edge.kdl").unwrap_or_else(|report| panic!("{report}"));
    Plan::compile(
        1,
        Arc::new(loaded.model),
        &mut TargetRegistry::default().begin(),
    )
}

/// A request in one line: `GET http://a.example/x Name:value …`.
pub(crate) fn request(line: &str) -> ExplainRequest {
    let mut words = line.split_ascii_whitespace();
    let mut next = || words.next().unwrap_or_default().to_owned();
    ExplainRequest {
        method: next(),
        url: next(),
        headers: words
            .map(|word| ExplainRequest::header(word).unwrap())
            .collect(),
        ..ExplainRequest::default()
    }
}

pub(crate) fn explain(text: &str, line: &str) -> Explanation {
    request(line).ask(&plan(text), &Only(&[0, 1, 2])).unwrap()
}

/// A view in which only these targets may be called.
#[derive(Debug)]
pub(crate) struct Only(pub(crate) &'static [u16]);

/// The second request under [`Only`].
#[derive(Debug)]
pub(crate) struct Second(&'static [u16], Rotation);

impl UpstreamStates for Only {
    type Balancer<'s> = Second;

    fn balancer<'s>(&'s self, upstream: &'s UpstreamPlan) -> Option<Second> {
        Some(Second(self.0, Rotation::new(upstream.targets.len(), 1)))
    }

    fn random(&self) -> u64 {
        0
    }
}

impl BalancerState for Second {
    fn ready(&self) -> &[u16] {
        self.0
    }

    fn weight(&self, _target: u16) -> u32 {
        1
    }

    fn has_equal_weights(&self) -> bool {
        true
    }

    fn share(&self, _target: u16) -> u32 {
        WHOLE_SHARE
    }

    fn active_requests(&self, _target: u16) -> u32 {
        0
    }

    fn latency_ns(&self, _target: u16) -> Option<f32> {
        None
    }

    fn address_hash(&self, target: u16) -> u64 {
        target.into()
    }

    fn session(&self, _token: StickyToken) -> Option<u16> {
        None
    }

    fn rotation(&self) -> &Rotation {
        &self.1
    }
}
