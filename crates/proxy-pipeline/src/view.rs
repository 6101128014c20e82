//! The worker's state for decisions.

use crate::state::ActivePlan;
use proxy_plan::{BalancerState, UpstreamPlan};

impl BalancerState for ActivePlan {
    #[inline]
    fn rr_counter(&self, upstream: &UpstreamPlan) -> u32 {
        let active = self.upstreams.get(upstream.index);
        active.map_or(0, |active| active.rr_counter.get())
    }

    #[inline]
    fn with_ready<T>(&self, upstream: &UpstreamPlan, with: impl FnOnce(&[u16]) -> T) -> T {
        match self.upstreams.get(upstream.index) {
            Some(active) => with(active.ready.borrow().targets()),
            None => with(&[]),
        }
    }
}
