//! Settings of the connection pools.

use proxy_plan::{Plan, StateRegistry, StateTransaction, TargetPlan, UpstreamPlan};
use proxy_pool::{ConnectionLimit, IdleLimit, PoolSettings};
use proxy_upstream::TargetId;
use std::sync::Arc;

/// The limits on connections by target. They outlive plans: connections made under an earlier plan
/// still count.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimits {
    all: StateRegistry<TargetId, ConnectionLimit>,
    idle: StateRegistry<TargetId, IdleLimit>,
}

/// The limits of the next plan.
#[derive(Debug)]
pub(crate) struct LimitTransaction {
    all: StateTransaction<TargetId, ConnectionLimit>,
    idle: StateTransaction<TargetId, IdleLimit>,
}

impl ConnectionLimits {
    /// The limits that `plan` requires; active ones are not changed.
    pub(crate) fn prepare(&self, plan: &Plan) -> LimitTransaction {
        let (mut all, mut idle) = (self.all.begin(), self.idle.begin());
        for (upstream, target) in targets(plan) {
            if let Some(max) = upstream.max_connections {
                all.enter(target.id, || ConnectionLimit::new(max));
            }
            idle.enter(target.id, || IdleLimit::new(upstream.max_idle));
        }
        LimitTransaction { all, idle }
    }

    /// Activates the prepared limits of `plan`.
    pub(crate) fn commit(&mut self, transaction: LimitTransaction, plan: &Plan) {
        let LimitTransaction { all, idle } = transaction;
        self.all.commit(all);
        self.idle.commit(idle);
        for (upstream, target) in targets(plan) {
            if let Some((limit, max)) = self.get(target.id).zip(upstream.max_connections) {
                limit.set_max(max);
            }
            if let Some(limit) = self.idle.get(&target.id) {
                limit.set_max(upstream.max_idle);
            }
        }
    }

    /// The limit of `target`; `None` if its connections are unlimited.
    pub(crate) fn get(&self, target: TargetId) -> Option<Arc<ConnectionLimit>> {
        self.all.get(&target).cloned()
    }

    /// The limits on idle connections, one for each target.
    pub(crate) fn idle(&self) -> Vec<IdleLimit> {
        let limits = self.idle.states();
        limits.map(|limit| IdleLimit::clone(limit)).collect()
    }

    /// Pool settings of every target of `plan`.
    pub(crate) fn pool_settings(&self, plan: &Plan) -> Vec<PoolSettings> {
        let settings = targets(plan).map(|(upstream, target)| {
            let idle_limit = self.idle.get(&target.id);
            let idle_limit = idle_limit.map(|limit| IdleLimit::clone(limit));
            PoolSettings {
                target: target.id,
                idle_limit: idle_limit.unwrap_or_else(|| IdleLimit::new(upstream.max_idle)),
                idle_for: upstream.idle_for,
                max_lifetime: upstream.max_lifetime,
                limit: self.get(target.id),
            }
        });
        settings.collect()
    }
}

fn targets(plan: &Plan) -> impl Iterator<Item = (&UpstreamPlan, &TargetPlan)> {
    plan.upstreams().iter().flat_map(|upstream| {
        let targets = upstream.targets.iter();
        targets.map(move |target| (upstream, target))
    })
}
