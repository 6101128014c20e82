//! Identity of a user at an organization's identity provider.

use control_wire::{IdentityId, OrgId, UserId};
use jiff::Timestamp;

/// Identity of a user at an organization's identity provider, by issuer and subject and never by
/// e-mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// UUID of version 7.
    pub id: IdentityId,
    /// Organization of the connection to the provider.
    pub org: OrgId,
    /// Issuer or entity ID of the provider; unique together with `subject`.
    pub issuer: String,
    /// Identifier of the user at the issuer.
    pub subject: String,
    /// User that signs in by this identity.
    pub user: UserId,
    /// Time of linking.
    pub created_at: Timestamp,
    /// Time of the last sign-in by this identity.
    pub seen_at: Timestamp,
}
