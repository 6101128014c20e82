//! State that outlives the process.

use crate::trust::Trust;
use control_wire::{BundleId, NodeId, Order, OrgId, ProjectId, RegisterResponse, Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The node's identity, assigned at its enrolment and never changed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The node's identifier.
    pub node: NodeId,
    /// The credential that tokens are issued for.
    pub key: String,
    /// Project that the node enrolled in.
    pub project: ProjectId,
    /// Organization of that project.
    pub org: OrgId,
    /// The keys that were pinned at the enrolment.
    pub trust: Trust,
}

/// Durable state of a node, written before the action that depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistedState {
    /// The signing keys trusted by this node; `None` until the first enrolment.
    pub trust: Option<Trust>,
    /// The counter of the newest order that was carried out or refused; it never falls.
    pub counter: u64,
    /// The answer to that order.
    pub answer: Option<Answer>,
    /// The order for the bundle that the node starts with.
    pub last_good: Option<Order>,
    /// The order on trial: its archive is kept in case that it is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Order>,
}

/// Result of the newest order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The bundle of the order.
    pub bundle: BundleId,
    /// The digest of the order.
    pub digest: String,
    /// Result of the activation.
    pub verdict: Verdict,
    /// Reason of the failure.
    pub diagnostics: Vec<String>,
}

impl Identity {
    /// The identity from a registration's response.
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
