//! An identity: the name of a user at an organization's identity provider.

use control_wire::{IdentityId, OrgId, UserId};
use jiff::Timestamp;

/// The name of a user at an organization's identity provider. Never replaced by an e-mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// UUID of version 7.
    pub id: IdentityId,
    /// The organization of the connection.
    pub org: OrgId,
    /// Issuer or entity ID of the identity provider; with `subject` unique.
    pub issuer: String,
    /// The user at the issuer.
    pub subject: String,
    /// User that signs in by this identity.
    pub user: UserId,
    /// Time of linking.
    pub created_at: Timestamp,
    /// The last sign-in by it.
    pub seen_at: Timestamp,
}
