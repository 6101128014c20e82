//! Drift: a node runs another bundle than ordered, or its files were edited on the disk.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Tenant};
use crate::machine::{Transition, next_state};
use crate::named::named;
use control_wire::{BundleId, DriftId, NodeId};
use jiff::{SignedDuration, Timestamp};

/// Time for which a node may differ from its order without a drift.
pub const DRIFT_GRACE: SignedDuration = SignedDuration::from_secs(120);

named! {
    /// State of a drift.
    #[schema(as = DriftStateName)]
    DriftState {
        /// The node differs still.
        Open = "open",
        /// The node follows its order again, or an operator resolved the drift.
        Resolved = "resolved",
    }
}

named! {
    /// Resolution of a drift.
    DriftEvent {
        /// The node runs the ordered bundle again.
        Follow = "follow",
        /// The node runs the bundle of a later rollout order.
        FollowRollout = "follow_rollout",
        /// An operator issues a new order.
        Resolve = "resolve",
    }
}

named! {
    /// Resolution of a drift.
    #[schema(as = DriftResolutionName)]
    DriftResolution {
        /// The node returned to its order.
        Automatic = "automatic",
        /// An operator made a new order.
        Manual = "manual",
        /// A later rollout moved the node.
        Rollout = "rollout",
    }
}

/// Transitions of a drift.
pub const DRIFT_TRANSITIONS: &[Transition<DriftState, DriftEvent>] = &[
    Transition::new(DriftState::Open, DriftEvent::Follow, DriftState::Resolved),
    Transition::new(
        DriftState::Open,
        DriftEvent::FollowRollout,
        DriftState::Resolved,
    ),
    Transition::new(DriftState::Open, DriftEvent::Resolve, DriftState::Resolved),
];

/// A period in which a node differed from its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// UUID of version 7.
    pub id: DriftId,
    /// Tenant of the node.
    pub tenant: Tenant,
    /// Node that differs from its order.
    pub node: NodeId,
    /// State of the drift.
    pub state: DriftState,
    /// Bundle of the node's newest order.
    pub desired: BundleId,
    /// Bundle that the node reports as active; `desired` if its files were edited.
    pub active: Option<BundleId>,
    /// Time of detection.
    pub opened_at: Timestamp,
    /// Time of the end; `None` while the drift is open.
    pub resolved_at: Option<Timestamp>,
    /// Reason for the end; `None` while the drift is open.
    pub resolution: Option<DriftResolution>,
}

impl Drift {
    /// Returns true if the node runs the ordered bundle, and its files were edited on the disk.
    pub fn is_edited(&self) -> bool {
        self.active == Some(self.desired)
    }

    /// Resolves the drift on behalf of an operator.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if the drift has ended.
    pub fn resolve(self, actor: &Actor, now: Timestamp) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_NODES, self.tenant)?;
        self.step(DriftEvent::Resolve, now)
    }

    /// Resolves the drift of a node that follows its order again.
    ///
    /// # Errors
    ///
    /// [`Refusal`] unless the actor is the control plane itself, or if the drift is resolved
    /// already.
    pub fn follow(self, actor: &Actor, by_rollout: bool, now: Timestamp) -> Result<Self, Refusal> {
        actor.require(Access::System, self.tenant)?;
        let event = if by_rollout {
            DriftEvent::FollowRollout
        } else {
            DriftEvent::Follow
        };
        self.step(event, now)
    }

    fn step(self, event: DriftEvent, now: Timestamp) -> Result<Self, Refusal> {
        let next = next_state(DRIFT_TRANSITIONS, self.state, event);
        let state = next.ok_or(Refusal::WrongState {
            noun: "a drift",
            state: self.state.name(),
            event: event.name(),
        })?;
        let resolution = match event {
            DriftEvent::Follow => DriftResolution::Automatic,
            DriftEvent::FollowRollout => DriftResolution::Rollout,
            DriftEvent::Resolve => DriftResolution::Manual,
        };
        Ok(Self {
            state,
            resolved_at: Some(now),
            resolution: Some(resolution),
            ..self
        })
    }
}
