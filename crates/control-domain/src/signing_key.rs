//! Signing keys of an organization: tokens and orders to nodes are signed with them.

use crate::named::named;
use control_auth::PublicKey;
use control_wire::{OrgId, SecretId, SigningKeyId};
use jiff::Timestamp;

named! {
    /// What a signing key is used for.
    SigningKeyState {
        /// Signs and verifies; an organization has one.
        Active = "active",
        /// Verifies what it signed before.
        Retired = "retired",
        /// Neither.
        Deactivated = "deactivated",
    }
}

/// A signing key; its private half is a sealed secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey {
    /// The identifier, `kid` in tokens.
    pub id: SigningKeyId,
    /// The organization.
    pub org: OrgId,
    /// What it is used for.
    pub state: SigningKeyState,
    /// The public half.
    pub public_key: PublicKey,
    /// The sealed private half.
    pub secret: SecretId,
    /// When it was created.
    pub created_at: Timestamp,
}
