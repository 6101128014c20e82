//! Settings of the connection pools.

use proxy_plan::{Plan, StateRegistry, StateTransaction, UpstreamPlan};
use proxy_pool::{ConnectionLimit, PoolSettings};
use proxy_upstream::TargetId;
use std::sync::Arc;

/// The connection limits by target. They outlive plans: connections made under an earlier plan
/// still count.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimits(StateRegistry<TargetId, ConnectionLimit>);

/// The limits of the next plan.
pub(crate) type LimitTransaction = StateTransaction<TargetId, ConnectionLimit>;

impl ConnectionLimits {
    /// The limits that `plan` requires; active ones are not changed.
    pub(crate) fn prepare(&self, plan: &Plan) -> LimitTransaction {
        let mut transaction = self.0.begin();
        for (target, max) in wanted(plan) {
            transaction.enter(target, || ConnectionLimit::new(max));
        }
        transaction
    }

    /// Activates the prepared limits of `plan`.
    pub(crate) fn commit(&mut self, transaction: LimitTransaction, plan: &Plan) {
        self.0.commit(transaction);
        for (target, max) in wanted(plan) {
            if let Some(limit) = self.get(target) {
                limit.set_max(max);
            }
        }
    }

    /// The limit of `target`; `None` if its connections are unlimited.
    pub(crate) fn get(&self, target: TargetId) -> Option<Arc<ConnectionLimit>> {
        self.0.get(&target).cloned()
    }

    /// Pool settings of every target of `plan` for one of `workers` workers.
    pub(crate) fn pool_settings(&self, plan: &Plan, workers: usize) -> Vec<PoolSettings> {
        let settings = |upstream: &UpstreamPlan, target| PoolSettings {
            target,
            max_idle: (upstream.max_idle as usize).div_ceil(workers.max(1)),
            idle_for: upstream.idle_for,
            limit: self.get(target),
        };
        let upstreams = plan.upstreams().iter();
        let targets = upstreams.flat_map(|upstream| {
            let targets = upstream.targets.iter();
            targets.map(move |target| settings(upstream, target.id))
        });
        targets.collect()
    }
}

/// The targets with a limit on their connections, and the limit.
fn wanted(plan: &Plan) -> impl Iterator<Item = (TargetId, u32)> {
    plan.upstreams().iter().flat_map(|upstream| {
        let max = upstream.max_connections;
        let targets = upstream.targets.iter();
        targets.filter_map(move |target| Some((target.id, max?)))
    })
}
