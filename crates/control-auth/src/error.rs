//! Error of an invalid credential.

/// Error of an invalid credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The bytes do not have the form of a key, a signature or a hash.
    #[error("malformed")]
    Malformed,
    /// The signature is of other bytes, or by another key.
    #[error("signature does not match")]
    Signature,
    /// The time has passed.
    #[error("expired")]
    Expired,
}
