//! An identity: the name of a user at an organization's identity provider.

use control_wire::{IdentityId, OrgId, UserId};
use jiff::Timestamp;

/// The name of a user at an organization's identity provider. Never replaced by an e-mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The identifier.
    pub id: IdentityId,
    /// The organization of the connection.
    pub org: OrgId,
    /// The issuer.
    pub issuer: String,
    /// The user at the issuer.
    pub subject: String,
    /// The user here.
    pub user: UserId,
    /// Time of linking.
    pub created_at: Timestamp,
    /// The last sign-in by it.
    pub seen_at: Timestamp,
}
