//! The state that a decision reads in addition to the plan.

use crate::plan::Plan;
use crate::upstream::UpstreamPlan;

/// The changing state that a decision reads, as seen by the caller.
pub trait BalancerState {
    /// Number of requests that this upstream had before this one.
    fn rr_counter(&self, upstream: &UpstreamPlan) -> u32;

    /// Calls `with` with the targets that may be used, as indexes into the upstream's targets.
    fn with_ready<T>(&self, upstream: &UpstreamPlan, with: impl FnOnce(&[u16]) -> T) -> T;
}

/// The state for decisions without a running proxy: all targets are healthy and have had no
/// request.
#[derive(Debug)]
pub struct AssumeHealthy {
    ready: Vec<Vec<u16>>,
}

impl AssumeHealthy {
    /// For the targets of `plan`.
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
