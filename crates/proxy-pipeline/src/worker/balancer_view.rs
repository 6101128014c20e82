//! Upstream and target state of a worker, as the router and the load balancer read it.

use crate::worker::active_plan::{ActivePlan, ActiveUpstream};
use crate::worker::state::Worker;
use proxy_plan::{TargetPlan, UpstreamPlan, UpstreamStates};
use proxy_upstream::{
    BalancerState, HealthyTargets, Rotation, StickyToken, WHOLE_SHARE, slow_start_share,
};
use std::cell::Ref;
use std::time::Duration;

/// The states of all upstreams in one worker at one moment.
#[derive(Debug)]
pub(crate) struct WorkerView<'w> {
    pub(crate) worker: &'w Worker,
    pub(crate) active: &'w ActivePlan,
    /// The time of the decision, since the worker's start.
    pub(crate) now: Duration,
}

/// The targets of one upstream in one worker.
#[derive(Debug)]
pub(crate) struct WorkerBalancer<'w> {
    plan: &'w UpstreamPlan,
    active: &'w ActiveUpstream,
    ready: Ref<'w, HealthyTargets>,
    worker: &'w Worker,
    now: Duration,
}

/// The backup targets of an upstream that still has main targets: for retries after all main
/// targets were tried.
#[derive(Debug)]
pub(crate) struct WaitingBackups<'w> {
    balancer: WorkerBalancer<'w>,
    rotation: &'w Rotation,
}

impl UpstreamStates for WorkerView<'_> {
    type Balancer<'s>
        = WorkerBalancer<'s>
    where
        Self: 's;

    #[inline]
    fn balancer<'s>(&'s self, upstream: &'s UpstreamPlan) -> Option<WorkerBalancer<'s>> {
        let active = self.active.upstreams.get(upstream.index)?;
        active.catch_up(upstream, self.worker.shared.target_changes.count());
        Some(WorkerBalancer {
            plan: upstream,
            active,
            ready: active.ready.borrow(),
            worker: self.worker,
            now: self.now,
        })
    }

    fn random(&self) -> u64 {
        self.worker.ids.random()
    }
}

impl<'w> WorkerBalancer<'w> {
    /// The backup targets that wait while these targets take requests.
    pub(crate) fn into_waiting_backups(self) -> WaitingBackups<'w> {
        let rotation = &self.active.backup_rotation;
        WaitingBackups {
            balancer: self,
            rotation,
        }
    }
}

impl WorkerBalancer<'_> {
    fn target(&self, target: u16) -> Option<&TargetPlan> {
        self.plan.targets.get(usize::from(target))
    }

    fn now_ns(&self) -> u64 {
        self.worker.time.process_ns(self.now)
    }
}

impl BalancerState for WorkerBalancer<'_> {
    #[inline]
    fn ready(&self) -> &[u16] {
        self.ready.targets()
    }

    fn weight(&self, target: u16) -> u32 {
        self.ready.weight(target)
    }

    #[inline]
    fn has_equal_weights(&self) -> bool {
        self.ready.has_equal_weights()
    }

    #[inline]
    fn share(&self, target: u16) -> u32 {
        let Some(window) = self.plan.balancing.slow_start else {
            return WHOLE_SHARE;
        };
        match self.target(target).map(|one| one.state.serving_since_ns()) {
            None | Some(0) => WHOLE_SHARE,
            Some(since_ns) => {
                let since = self.now_ns().saturating_sub(since_ns);
                slow_start_share(Duration::from_nanos(since), window)
            }
        }
    }

    fn active_requests(&self, target: u16) -> u32 {
        let target = self.target(target);
        target.map_or(0, |target| target.state.load().active())
    }

    fn latency_ns(&self, target: u16) -> Option<f32> {
        self.target(target)?.state.latency().nanos(self.now_ns())
    }

    fn address_hash(&self, target: u16) -> u64 {
        self.target(target).map_or(0, |target| target.hash)
    }

    fn session(&self, token: StickyToken) -> Option<u16> {
        let target = self.plan.target_of(token)?;
        let causes = self.target(target)?.state.causes();
        causes.is_healthy().then_some(target)
    }

    #[inline]
    fn rotation(&self) -> &Rotation {
        &self.active.rotation
    }
}

impl BalancerState for WaitingBackups<'_> {
    fn ready(&self) -> &[u16] {
        self.balancer.ready.waiting_backups()
    }

    fn weight(&self, target: u16) -> u32 {
        self.balancer.weight(target)
    }

    fn has_equal_weights(&self) -> bool {
        let mut weights = self.ready().iter().map(|target| self.weight(*target));
        let first = weights.next();
        weights.all(|weight| Some(weight) == first)
    }

    fn share(&self, target: u16) -> u32 {
        self.balancer.share(target)
    }

    fn active_requests(&self, target: u16) -> u32 {
        self.balancer.active_requests(target)
    }

    fn latency_ns(&self, target: u16) -> Option<f32> {
        self.balancer.latency_ns(target)
    }

    fn address_hash(&self, target: u16) -> u64 {
        self.balancer.address_hash(target)
    }

    fn session(&self, _: StickyToken) -> Option<u16> {
        None
    }

    fn rotation(&self) -> &Rotation {
        self.rotation
    }
}
