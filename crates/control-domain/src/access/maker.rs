//! The user that made a credential: an API key, an invitation, an enrolment token.

use crate::access::Role;
use control_wire::UserId;

/// The user that created a credential, directly or through a key, with its current rights. They
/// limit the credential's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    /// User that created the credential.
    pub user: UserId,
    /// The user's role in the credential's organization; `None` after it left.
    pub role: Option<Role>,
}

impl Maker {
    /// Returns true if a credential of this maker may use a permission that requires `role`. Always
    /// true for credentials older than the record of makers.
    pub(crate) fn allows(maker: Option<Self>, role: Role) -> bool {
        maker.is_none_or(|maker| maker.role.is_some_and(|own| role <= own))
    }
}
