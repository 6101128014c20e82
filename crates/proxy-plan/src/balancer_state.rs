//! What a decision needs to know beyond the plan.

use crate::plan::Plan;
use crate::upstream::UpstreamPlan;

/// The changing facts that a decision reads, as the one who asks sees them.
pub trait BalancerState {
    /// How many requests this upstream has had before this one.
    fn rr_counter(&self, upstream: &UpstreamPlan) -> u32;

    /// Calls `with` with the targets that may be called, as indices into the upstream's targets.
    fn with_ready<T>(&self, upstream: &UpstreamPlan, with: impl FnOnce(&[u16]) -> T) -> T;
}

/// The view of somebody who has no running proxy at hand: everything is well and nothing was sent.
#[derive(Debug)]
pub struct AssumeHealthy {
    ready: Vec<Vec<u16>>,
}

impl AssumeHealthy {
    /// All targets of `plan` are ready.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let all = |upstream: &UpstreamPlan| {
            let targets = upstream.targets.iter().zip(0..=u16::MAX);
            targets.map(|(_, index)| index).collect()
        };
        Self {
            ready: plan.upstreams().iter().map(all).collect(),
        }
    }
}

impl BalancerState for AssumeHealthy {
    fn rr_counter(&self, _upstream: &UpstreamPlan) -> u32 {
        0
    }

    fn with_ready<T>(&self, upstream: &UpstreamPlan, with: impl FnOnce(&[u16]) -> T) -> T {
        with(self.ready.get(upstream.index).map_or(&[], Vec::as_slice))
    }
}
