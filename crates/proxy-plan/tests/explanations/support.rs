//! Plans from text, and questions to them.

use proxy_plan::{BalancerState, ExplainRequest, Explanation, Plan, TargetRegistry, UpstreamPlan};
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

/// Exactly these targets may be called.
#[derive(Debug)]
pub(crate) struct Only(pub(crate) &'static [u16]);

impl BalancerState for Only {
    fn rr_counter(&self, _upstream: &UpstreamPlan) -> u32 {
        1
    }

    fn with_ready<T>(&self, _upstream: &UpstreamPlan, with: impl FnOnce(&[u16]) -> T) -> T {
        with(self.0)
    }
}
