//! The creator of a credential: API key, invitation, enrolment token or password reset.

use crate::access::Role;
use control_wire::UserId;

/// User that created a credential, directly or through an API key, with its current role. The
/// credential never has more rights than its creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creator {
    /// User that created the credential.
    pub user: UserId,
    /// Current role of the user in the credential's organization; `None` after the user left.
    pub role: Option<Role>,
}

impl Creator {
    /// Returns true if a credential of this creator may use a permission that requires `role`.
    /// Always true for credentials from before creators were recorded.
    pub(crate) fn allows(creator: Option<Self>, role: Role) -> bool {
        creator.is_none_or(|creator| creator.role.is_some_and(|own| role <= own))
    }
}
