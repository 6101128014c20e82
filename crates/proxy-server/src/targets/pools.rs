//! Settings of the connection pools.

use proxy_plan::{Plan, StateRegistry, StateTransaction, TargetPlan, UpstreamPlan};
use proxy_pool::{ConnectionLimit, IdleLimit, PoolSettings};
use proxy_upstream::TargetId;
use std::sync::Arc;

/// The limits on connections to targets. They outlive plans: connections made under an earlier plan
/// still count.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimits {
    all: StateRegistry<TargetId, ConnectionLimit>,
    idle: StateRegistry<IdleScope, IdleLimit>,
}

/// The connections that share a limit on idle ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum IdleScope {
    /// To all targets of the upstream with this name: `max-idle-connections-per-upstream`.
    Upstream(Arc<str>),
    /// To one target: `max-idle` of its upstream.
    Target(TargetId),
}

/// The limits of the next plan.
#[derive(Debug)]
pub(crate) struct LimitTransaction {
    all: StateTransaction<TargetId, ConnectionLimit>,
    idle: StateTransaction<IdleScope, IdleLimit>,
}

impl ConnectionLimits {
    /// The limits that `plan` requires; active ones are not changed.
    pub(crate) fn prepare(&self, plan: &Plan) -> LimitTransaction {
        let (mut all, mut idle) = (self.all.begin(), self.idle.begin());
        for (upstream, target) in targets(plan) {
            if let Some(max) = upstream.max_connections {
                all.enter(target.id, || ConnectionLimit::new(max));
            }
            idle.enter(IdleScope::new(plan, upstream, target), || {
                IdleLimit::new(upstream.max_idle)
            });
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
            if let Some(limit) = self.idle.get(&IdleScope::new(plan, upstream, target)) {
                limit.set_max(upstream.max_idle);
            }
        }
    }

    /// The limit of `target`; `None` if its connections are unlimited.
    pub(crate) fn get(&self, target: TargetId) -> Option<Arc<ConnectionLimit>> {
        self.all.get(&target).cloned()
    }

    /// The limits on idle connections of upstreams that set none of their own.
    pub(crate) fn idle(&self) -> Vec<IdleLimit> {
        let limits = self.idle.entries();
        let shared = limits.filter(|(scope, _)| matches!(scope, IdleScope::Upstream(_)));
        shared.map(|(_, limit)| IdleLimit::clone(limit)).collect()
    }

    /// Pool settings of every target of `plan`.
    pub(crate) fn pool_settings(&self, plan: &Plan) -> Vec<PoolSettings> {
        let settings = targets(plan).map(|(upstream, target)| {
            let idle_limit = self.idle.get(&IdleScope::new(plan, upstream, target));
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

impl IdleScope {
    fn new(plan: &Plan, upstream: &UpstreamPlan, target: &TargetPlan) -> Self {
        let settings = plan.model().upstreams.get(upstream.index);
        let has_own = settings.is_some_and(|one| one.connection_pool.max_idle.is_some());
        if has_own {
            Self::Target(target.id)
        } else {
            Self::Upstream(Arc::clone(&upstream.name))
        }
    }
}

fn targets(plan: &Plan) -> impl Iterator<Item = (&UpstreamPlan, &TargetPlan)> {
    plan.upstreams().iter().flat_map(|upstream| {
        let targets = upstream.targets.iter();
        targets.map(move |target| (upstream, target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_plan::TargetRegistry;

    fn plan(registry: &mut TargetRegistry, limit: u32, more: &str) -> Plan {
        let text = format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
             routes {{ route \"r\" {{ upstream \"a\" }} }}\n\
             upstreams {{ upstream \"a\" {{ target \"127.0.0.1:81\"; target \"127.0.0.1:82\"; {more} }};\
             upstream \"b\" {{ target \"127.0.0.1:83\" }} }}\n\
             limits {{ max-idle-connections-per-upstream {limit} }}"
        );
        let loaded = proxy_config::parse(&text, "test.kdl").unwrap();
        let mut transaction = registry.begin();
        let plan = Plan::compile(1, Arc::new(loaded.model), &mut transaction);
        registry.commit(transaction);
        plan
    }

    /// The first of the targets that share the limit of each target.
    fn shared(limits: &ConnectionLimits, plan: &Plan) -> Vec<usize> {
        let settings = limits.pool_settings(plan);
        let first = |one: &PoolSettings| {
            let mut all = settings.iter();
            all.position(|other| other.idle_limit.is_same(&one.idle_limit))
        };
        settings.iter().filter_map(first).collect()
    }

    #[test]
    fn targets_of_an_upstream_share_its_idle_connections() {
        let (mut registry, mut limits) = (TargetRegistry::default(), ConnectionLimits::default());
        let first = plan(&mut registry, 100, "");
        limits.commit(limits.prepare(&first), &first);
        assert_eq!(shared(&limits, &first), [0, 0, 2]);
        assert_eq!(limits.idle().len(), 2);
        let before = limits.pool_settings(&first);

        let lowered = plan(&mut registry, 5, "");
        limits.commit(limits.prepare(&lowered), &lowered);
        let after = limits.pool_settings(&lowered);
        assert!(after[0].idle_limit.is_same(&before[0].idle_limit));

        // A number of the upstream's own is for each of its targets.
        let own = plan(&mut registry, 5, "connection-pool { max-idle 3 }");
        limits.commit(limits.prepare(&own), &own);
        assert_eq!(shared(&limits, &own), [0, 1, 2]);
        assert_eq!(limits.idle().len(), 1);
    }
}
