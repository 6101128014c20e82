//! A node: one proxy of the fleet.

pub(crate) mod drift;
pub(crate) mod enrolment_token;
pub(crate) mod heartbeat;
pub(crate) mod standing;
pub(crate) mod traffic;

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Tenant};
use crate::labels::Labels;
use crate::machine::{Transition, next_state};
use crate::named::named;
use crate::text::Name;
use control_wire::{BundleId, NodeId, NodeStatus, Traffic};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Time between two heartbeats of a node: 1 to 300 seconds, 30 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatInterval(u16);

/// Time without alternation after which one of two processes with the same identity has ended.
/// While both run, they alternate at least every five minutes, the longest heartbeat interval.
pub const DUPLICATE_MEMORY: SignedDuration = SignedDuration::from_mins(15);

named! {
    /// Presence of a node.
    #[schema(as = NodeStateName)]
    NodeState {
        /// Registered, without a heartbeat yet.
        Enrolled = "enrolled",
        /// Its last heartbeat is less than three intervals old.
        Online = "online",
        /// Missed three heartbeats.
        Offline = "offline",
        /// Deleted; its credentials are refused.
        Deleted = "deleted",
    }
}

named! {
    /// Events of a node.
    NodeTransitionEvent {
        /// The node sends a heartbeat.
        Heartbeat = "heartbeat",
        /// Three intervals pass without a heartbeat.
        Miss = "miss",
        /// The node is deleted.
        Delete = "delete",
    }
}

use NodeState::{Deleted, Enrolled, Offline, Online};
use NodeTransitionEvent::{Delete, Heartbeat, Miss};

/// Transitions of a node.
pub const NODE_TRANSITIONS: &[Transition<NodeState, NodeTransitionEvent>] = &[
    Transition::new(Enrolled, Heartbeat, Online),
    Transition::new(Online, Heartbeat, Online),
    Transition::new(Online, Miss, Offline),
    Transition::new(Offline, Heartbeat, Online),
    Transition::new(Enrolled, Delete, Deleted),
    Transition::new(Online, Delete, Deleted),
    Transition::new(Offline, Delete, Deleted),
];

/// A node, without its credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// UUID of version 7, assigned at registration.
    pub id: NodeId,
    /// Project that the node enrolled in.
    pub tenant: Tenant,
    /// Name, unique in the project.
    pub name: Name,
    /// Labels for selectors of rollouts and certificates.
    pub labels: Labels,
    /// Requested labels beyond the token's. `Some`: the node waits for approval and gets no orders.
    pub requested_labels: Option<Labels>,
    /// Time of registration.
    pub created_at: Timestamp,
    /// True while a second key waits for its first use.
    pub rotating: bool,
    /// Report of the last heartbeat; `None` before the first.
    pub report: Option<NodeReport>,
    /// Newest order; `None` before the first.
    pub order: Option<OrderSummary>,
}

/// Data that a node sends to register.
#[derive(Clone, Debug)]
pub struct NewNode<'a> {
    /// Name, unique in the project.
    pub name: &'a str,
    /// Requested labels.
    pub labels: BTreeMap<String, String>,
    /// Labels of the enrolment token; `None` if an operator registers the node, which then gets all
    /// requested labels.
    pub given: Option<Labels>,
}

/// A node's report as of its last heartbeat. Fields that a heartbeat omits keep their values.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReport {
    /// Time of receipt.
    pub seen_at: Timestamp,
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
    /// Version of the proxy.
    pub version: Option<String>,
    /// Reported bundles and verdict.
    pub status: NodeStatus,
    /// Request counters.
    pub traffic: Option<Traffic>,
    /// Set if two processes report as this node.
    pub duplicate: Option<DuplicateNode>,
}

/// Two running processes that claim to be one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateNode {
    /// Time of detection.
    pub since: Timestamp,
    /// Time of the last alternation.
    pub seen_at: Timestamp,
}

/// A node's newest order, without its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderSummary {
    /// Counter of the order; grows with every order to the node.
    pub counter: i64,
    /// Bundle that the node is ordered to run.
    pub bundle: BundleId,
    /// Time of creation.
    pub made_at: Timestamp,
}

impl HeartbeatInterval {
    /// Number of missed heartbeats after which a node is offline.
    const MAX_MISSED_HEARTBEATS: i64 = 3;

    /// An interval of `secs`, clamped to the bounds.
    #[must_use]
    pub fn from_secs(secs: u16) -> Self {
        Self(secs.clamp(1, 300))
    }

    /// The interval in seconds.
    #[must_use]
    pub fn secs(self) -> u16 {
        self.0
    }

    /// Time of the last heartbeat after which a node counts as online at `now`.
    #[must_use]
    pub fn online_since(self, now: Timestamp) -> Timestamp {
        now - SignedDuration::from_secs(Self::MAX_MISSED_HEARTBEATS * i64::from(self.0))
    }

    /// The interval as a duration.
    #[must_use]
    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_secs(self.0.into())
    }
}

impl Default for HeartbeatInterval {
    fn default() -> Self {
        Self(30)
    }
}

impl Node {
    /// Creates a node of `tenant`. An enrolment token grants its own labels; further requested
    /// labels wait for approval.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn register(
        actor: &Actor,
        tenant: Tenant,
        id: NodeId,
        new: NewNode<'_>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::Enrolment, tenant)?;
        let NewNode {
            name,
            labels,
            given,
        } = new;
        let asked = Labels::parse(labels)?;
        let (labels, requested_labels) = match given {
            Some(given) if given.contain(&asked) => (given, None),
            Some(given) => (given, Some(asked)),
            None => (asked, None),
        };
        Ok(Self {
            id,
            tenant,
            name: Name::parse("name", name)?,
            labels,
            requested_labels,
            created_at: now,
            rotating: false,
            report: None,
            order: None,
        })
    }

    /// The state at `now`.
    pub fn state(&self, interval: HeartbeatInterval, now: Timestamp) -> NodeState {
        match &self.report {
            None => Enrolled,
            Some(report) if interval.online_since(now) < report.seen_at => Online,
            Some(_) => Offline,
        }
    }

    /// Time since which two processes alternate as this node; `None` if they do not.
    pub fn duplicated_since(&self, now: Timestamp) -> Option<Timestamp> {
        let seen = self.report.as_ref().and_then(|report| report.duplicate)?;
        (now - DUPLICATE_MEMORY < seen.seen_at).then_some(seen.since)
    }

    /// Changes labels; the value `None` removes a label.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad label.
    pub fn label(
        self,
        actor: &Actor,
        changes: BTreeMap<String, Option<String>>,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_NODES, self.tenant)?;
        let labels = self.labels.clone().merge(changes)?;
        Ok(Self { labels, ..self })
    }

    /// Approves a waiting node, and grants its requested labels if `grants_labels` is set.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if the node does not wait.
    pub fn approve(self, actor: &Actor, grants_labels: bool) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_NODES, self.tenant)?;
        let requested = self.requested_labels.clone().ok_or(Refusal::WrongState {
            noun: "a node",
            state: "approved",
            event: "be approved",
        })?;
        let granted = requested
            .pairs()
            .clone()
            .into_iter()
            .filter(|_| grants_labels)
            .map(|(name, value)| (name, Some(value)));
        let labels = self.labels.clone().merge(granted.collect())?;
        Ok(Self {
            labels,
            requested_labels: None,
            ..self
        })
    }

    /// Checks that the node may get another key.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_key_rotation(&self, actor: &Actor) -> Result<(), Refusal> {
        actor.require(Access::WRITE_NODES, self.tenant)
    }

    /// Checks that the node may be deleted.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_delete(
        &self,
        actor: &Actor,
        interval: HeartbeatInterval,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        actor.require(Access::WRITE_NODES, self.tenant)?;
        let state = self.state(interval, now);
        let next = next_state(NODE_TRANSITIONS, state, Delete);
        next.map(drop).ok_or(Refusal::WrongState {
            noun: "a node",
            state: state.name(),
            event: Delete.name(),
        })
    }

    /// The tenant of node `id`, if the actor is that node and its credential satisfies `access`.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] for another node, otherwise the reason for the missing permission.
    pub fn own(actor: &Actor, access: Access, id: NodeId) -> Result<Tenant, Refusal> {
        actor.holds(access)?;
        let Actor::Node {
            id: own, tenant, ..
        } = actor
        else {
            return Err(Refusal::NotFound);
        };
        (*own == id).then_some(*tenant).ok_or(Refusal::NotFound)
    }
}
