//! The order to a node to run a bundle.

use crate::error::BundleError;
use control_auth::PublicKey;
use control_wire::Order;

/// Checks that the signature of `order` is by `key`, the public half of the key that its `kid`
/// names.
///
/// # Errors
///
/// [`BundleError::Signature`] if a field was changed, or another key signed.
pub fn verify_order(order: &Order, key: &PublicKey) -> Result<(), BundleError> {
    key.verify(order.signed_text().as_bytes(), &order.signature)
        .map_err(|_| BundleError::Signature)
}
