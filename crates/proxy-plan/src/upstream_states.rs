//! State that a decision needs in addition to the plan.

use crate::plan::Plan;
use crate::upstream::{TargetPlan, UpstreamPlan};
use proxy_upstream::{BalancerState, HealthyTargets, Rotation, StickyToken, WHOLE_SHARE};

/// The changing state read by a decision, as seen by its caller.
pub trait UpstreamStates {
    /// State for choosing between the targets of one upstream.
    type Balancer<'s>: BalancerState
    where
        Self: 's;

    /// The state of the targets of `upstream`; `None` for an upstream that is not known.
    fn balancer<'s>(&'s self, upstream: &'s UpstreamPlan) -> Option<Self::Balancer<'s>>;

    /// Random bits, new for each call.
    fn random(&self) -> u64;
}

/// States of upstreams without a running proxy: every target is healthy, and has had no request.
#[derive(Debug)]
pub struct AssumeHealthy {
    upstreams: Vec<IdleUpstream>,
}

/// Target states of the running process: health, draining, changed weights. Load is not read, so a
/// worker's next target may be another one.
#[derive(Debug)]
pub struct KnownHealth {
    upstreams: Vec<IdleUpstream>,
}

#[derive(Debug)]
struct IdleUpstream {
    ready: Vec<u16>,
    /// Targets that keep their sticky sessions: all healthy ones, also if they take no new clients.
    healthy: Vec<u16>,
    rotation: Rotation,
}

/// The state of one upstream under [`AssumeHealthy`] and [`KnownHealth`].
#[derive(Debug)]
pub struct IdleBalancer<'s> {
    plan: &'s UpstreamPlan,
    state: &'s IdleUpstream,
}

/// The upstreams of `plan` with all targets healthy.
fn healthy(plan: &Plan) -> Vec<IdleUpstream> {
    let upstreams = plan.upstreams().iter().map(|upstream| {
        let targets = || upstream.targets.iter().zip(0..=u16::MAX);
        let can_take = |target: &TargetPlan| 0 < weight(target);
        let has_other = targets().any(|(target, _)| !target.is_backup && can_take(target));
        let ready =
            targets().filter(|(target, _)| can_take(target) && !(has_other && target.is_backup));
        IdleUpstream {
            ready: ready.map(|(_, index)| index).collect(),
            healthy: targets().map(|(_, index)| index).collect(),
            rotation: Rotation::new(upstream.targets.len(), 0),
        }
    });
    upstreams.collect()
}

fn weight(target: &TargetPlan) -> u32 {
    target.state.overridden_weight().unwrap_or(target.weight)
}

impl AssumeHealthy {
    /// All targets of `plan` are ready, except those with weight 0.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self {
            upstreams: healthy(plan),
        }
    }
}

impl KnownHealth {
    /// Targets of `plan` are ready if a worker would choose from them.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let upstreams = plan.upstreams().iter().map(|upstream| {
            let targets = upstream.targets.iter().map(TargetPlan::candidate);
            let ready = HealthyTargets::new(targets);
            let indexed = upstream.targets.iter().zip(0..=u16::MAX);
            let healthy = indexed.filter(|(target, _)| target.state.causes().is_healthy());
            IdleUpstream {
                ready: ready.targets().to_vec(),
                healthy: healthy.map(|(_, index)| index).collect(),
                rotation: Rotation::new(upstream.targets.len(), 0),
            }
        });
        Self {
            upstreams: upstreams.collect(),
        }
    }
}

impl UpstreamStates for KnownHealth {
    type Balancer<'s> = IdleBalancer<'s>;

    fn balancer<'s>(&'s self, upstream: &'s UpstreamPlan) -> Option<IdleBalancer<'s>> {
        Some(IdleBalancer {
            plan: upstream,
            state: self.upstreams.get(upstream.index)?,
        })
    }

    fn random(&self) -> u64 {
        0
    }
}

impl UpstreamStates for AssumeHealthy {
    type Balancer<'s> = IdleBalancer<'s>;

    fn balancer<'s>(&'s self, upstream: &'s UpstreamPlan) -> Option<IdleBalancer<'s>> {
        Some(IdleBalancer {
            plan: upstream,
            state: self.upstreams.get(upstream.index)?,
        })
    }

    fn random(&self) -> u64 {
        0
    }
}

impl IdleBalancer<'_> {
    fn target(&self, target: u16) -> Option<&TargetPlan> {
        self.plan.targets.get(usize::from(target))
    }
}

impl BalancerState for IdleBalancer<'_> {
    fn ready(&self) -> &[u16] {
        &self.state.ready
    }

    fn weight(&self, target: u16) -> u32 {
        self.target(target)
            .map_or(1, |target| weight(target).max(1))
    }

    fn has_equal_weights(&self) -> bool {
        let mut weights = self.state.ready.iter().map(|target| self.weight(*target));
        weights
            .next()
            .is_none_or(|first| weights.all(|weight| weight == first))
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
        self.target(target).map_or(0, |target| target.hash)
    }

    fn session(&self, token: StickyToken) -> Option<u16> {
        let target = self.plan.target_of(token)?;
        self.state.healthy.contains(&target).then_some(target)
    }

    fn rotation(&self) -> &Rotation {
        &self.state.rotation
    }
}
