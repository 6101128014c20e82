//! Persistent state of a node.

use crate::trust::Trust;
use control_wire::{BundleId, NodeId, Order, OrgId, ProjectId, RegisterResponse, Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Identity of the node, assigned at enrolment and never changed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Identifier of the node.
    pub node: NodeId,
    /// Static key, exchanged for tokens.
    pub key: String,
    /// Project that the node belongs to.
    pub project: ProjectId,
    /// Organization of the project.
    pub org: OrgId,
    /// Keys pinned at enrolment.
    pub trust: Trust,
}

/// Persistent state of a node; stored before the action that depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistedState {
    /// Trusted signing keys; `None` before enrolment.
    pub trust: Option<Trust>,
    /// Counter of the newest order that was answered; never decreases.
    pub counter: u64,
    /// Answer to that order.
    pub answer: Option<Answer>,
    /// Order of the bundle that the node starts with.
    pub last_good: Option<Order>,
    /// Order on trial; its archive is kept in case it is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Order>,
    /// Processes that ended in a trial of the newest order.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interrupted_trials: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A node's answer to its newest order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Bundle of the order.
    pub bundle: BundleId,
    /// Digest in the order.
    pub digest: String,
    /// Whether the bundle was activated.
    pub verdict: Verdict,
    /// Reasons of a rejection.
    pub diagnostics: Vec<String>,
}

impl Identity {
    /// Identity in the response to a registration.
    pub fn new(response: RegisterResponse) -> Self {
        let RegisterResponse {
            node_id,
            node_key,
            project,
            org,
            signing_keys,
            heartbeat_interval_secs: _, // Every heartbeat is answered with it.
        } = response;
        Self {
            node: node_id,
            key: node_key,
            project,
            org,
            trust: Trust::pin(org, &signing_keys),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({}, …)", self.node)
    }
}
