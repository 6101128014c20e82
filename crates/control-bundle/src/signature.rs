//! The detached signature of a bundle: over its digest, by a key with an identifier.

use crate::error::BundleError;
use control_auth::{PublicKey, SigningPair, sha256};
use control_wire::SigningKeyId;

/// The name of an archive: its SHA-256 in Base64-URL, 43 characters.
pub fn digest(archive: &[u8]) -> String {
    sha256(archive)
}

/// The signature of a bundle by the key `kid`, in Base64-URL.
pub fn sign(digest: &str, kid: SigningKeyId, pair: &SigningPair) -> String {
    pair.sign(signed_text(digest, kid).as_bytes())
}

/// Checks that `signature` is of the bundle with this digest.
///
/// # Errors
///
/// [`BundleError::Signature`] if it is of another digest, by another key, or malformed.
pub fn verify(
    digest: &str,
    kid: SigningKeyId,
    key: &PublicKey,
    signature: &str,
) -> Result<(), BundleError> {
    key.verify(signed_text(digest, kid).as_bytes(), signature)
        .map_err(|_| BundleError::Signature)
}

/// The first line keeps a signature from standing for a token or an order.
fn signed_text(digest: &str, kid: SigningKeyId) -> String {
    format!("bundle v1\n{digest}\n{kid}\n")
}
