//! The order to a node to run a bundle.

use crate::challenge::HttpChallenge;
use crate::id::{BundleId, NodeId, SigningKeyId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An order to a node: the bundle that it runs from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DesiredState {
    /// The newest order; absent until there is a first one.
    pub order: Option<Order>,
    /// Incremented when a certificate of the node's project is renewed: the node then fetches its
    /// bundle's certificates again.
    #[serde(default)]
    pub certificates: u64,
    /// Present if the order is a rollout's and its batch has not passed: the node reverts unless it
    /// is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    /// Validations of the node's hosts in progress. The node confirms that it answers them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub challenges: Vec<HttpChallenge>,
}

/// Trial of an order. Not signed: a forged one makes a node run its own former bundle at worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trial {
    /// Seconds from the switch in which the node must receive the confirmation: the deadline, one and
    /// a half soaks and three heartbeat intervals.
    pub confirm_secs: u64,
}

/// Confirmation of a node's newest order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// Confirmed: it was not a rollout's, its batch has passed, or an operator ended the rollout.
    #[default]
    Confirmed,
    /// An operator has paused its rollout: the time restarts.
    Held,
    /// Its batch is in progress.
    Pending,
}

/// A signed order: `node` shall run `bundle`.
///
/// The signature covers the node and a counter besides the digest. A captured order is thus worth
/// nothing to another node or at a later time, and a rollback to an older bundle is a newer order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Order {
    /// The node.
    pub node: NodeId,
    /// The bundle.
    pub bundle: BundleId,
    /// SHA-256 of the archive, Base64-URL.
    pub digest: String,
    /// Grows with every order to this node. A node rejects an order with a counter that is not higher.
    pub counter: u64,
    /// The key that signed.
    pub kid: SigningKeyId,
    /// Ed25519 over [`Order::signed_text`], Base64-URL.
    pub signature: String,
}

impl Order {
    /// Text that the signature covers.
    pub fn signed_text(&self) -> String {
        let Self {
            node,
            bundle,
            digest,
            counter,
            kid,
            signature: _,
        } = self;
        format!("order v1\n{node}\n{bundle}\n{digest}\n{counter}\n{kid}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn every_field_is_signed() {
        let order = Order {
            node: NodeId(Uuid::from_u128(1)),
            bundle: BundleId(Uuid::from_u128(2)),
            digest: "digest".to_owned(),
            counter: 3,
            kid: SigningKeyId(Uuid::from_u128(4)),
            signature: String::new(),
        };
        let text = order.signed_text();
        assert_eq!(
            text,
            "order v1\n00000000-0000-0000-0000-000000000001\n\
             00000000-0000-0000-0000-000000000002\ndigest\n3\n\
             00000000-0000-0000-0000-000000000004\n"
        );
    }
}
