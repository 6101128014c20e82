//! How the connections of each target are kept.

use proxy_plan::{Plan, UpstreamPlan};
use proxy_pool::{ConnectionLimit, PoolSettings};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The ceilings on connections, by slot of the target. They outlive plans: connections made under an
/// earlier plan still count.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    limits: BTreeMap<u32, Arc<ConnectionLimit>>,
}

impl Pools {
    /// Settings for one of `workers` workers, by slot.
    pub(crate) fn settings(
        &mut self,
        plan: &Plan,
        slots: u32,
        workers: usize,
    ) -> Vec<Option<PoolSettings>> {
        let mut settings = vec![None; slots as usize];
        let mut limits = BTreeMap::new();
        for upstream in plan.upstreams() {
            for target in &upstream.targets {
                let limit = self.limit(upstream, target.slot);
                if let Some(limit) = &limit {
                    limits.insert(target.slot, Arc::clone(limit));
                }
                if let Some(place) = settings.get_mut(target.slot as usize) {
                    *place = Some(PoolSettings {
                        max_idle: (upstream.max_idle as usize).div_ceil(workers.max(1)),
                        idle_for: upstream.idle_for,
                        limit,
                    });
                }
            }
        }
        self.limits = limits;
        settings
    }

    fn limit(&self, upstream: &UpstreamPlan, slot: u32) -> Option<Arc<ConnectionLimit>> {
        let max = upstream.max_connections?;
        let Some(known) = self.limits.get(&slot) else {
            return Some(Arc::new(ConnectionLimit::new(max)));
        };
        known.set_max(max);
        Some(Arc::clone(known))
    }
}
