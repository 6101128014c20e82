//! The order to a node to run a bundle.

use crate::error::BundleError;
use control_auth::{PublicKey, SigningPair};
use control_wire::{BundleId, NodeId, SigningKeyId};

/// A signed order: `node` is to run `bundle`.
///
/// The signature covers the node and a counter besides the digest. A captured order is thus worth
/// nothing to another node or at a later time, and a rollback to an older bundle is a newer order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The node that is to obey.
    pub node: NodeId,
    /// The bundle to run.
    pub bundle: BundleId,
    /// [`crate::digest`] of its archive.
    pub digest: String,
    /// Grows with every order to this node; a node refuses one that does not.
    pub counter: u64,
    /// The key that signed.
    pub kid: SigningKeyId,
    /// In Base64-URL.
    pub signature: String,
}

impl Order {
    /// Signs an order with the key `kid`.
    pub fn sign(
        node: NodeId,
        (bundle, digest): (BundleId, &str),
        counter: u64,
        (kid, pair): (SigningKeyId, &SigningPair),
    ) -> Self {
        let mut order = Self {
            node,
            bundle,
            digest: digest.to_owned(),
            counter,
            kid,
            signature: String::new(),
        };
        order.signature = pair.sign(order.signed_text().as_bytes());
        order
    }

    /// Whether the signature is by `key`, the public half of the key that `kid` names.
    ///
    /// # Errors
    ///
    /// [`BundleError::Signature`] if a field was changed, or another key signed.
    pub fn verify(&self, key: &PublicKey) -> Result<(), BundleError> {
        key.verify(self.signed_text().as_bytes(), &self.signature)
            .map_err(|_| BundleError::Signature)
    }

    fn signed_text(&self) -> String {
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
