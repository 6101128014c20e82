//! A membership: a user's role in an organization.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Role, Tenant};
use control_wire::{OrgId, UserId};
use jiff::Timestamp;

/// A user's role in an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Organization of the membership.
    pub org: OrgId,
    /// User that is a member.
    pub user: UserId,
    /// Role of the user in the organization.
    pub role: Role,
    /// Time when the user became a member.
    pub created_at: Timestamp,
}

impl Membership {
    /// Changes the role; `other_admin` says whether the organization has another administrator.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if no administrator would be left.
    pub fn change_role(
        self,
        actor: &Actor,
        role: Role,
        other_admin: bool,
    ) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, self.tenant())?;
        if role != Role::Admin {
            self.leave_admin(other_admin)?;
        }
        Ok(Self { role, ..self })
    }

    /// Checks that the member may be removed; `other_admin` says whether there is another
    /// administrator.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if no administrator would be left.
    pub fn check_remove(&self, actor: &Actor, other_admin: bool) -> Result<(), Refusal> {
        actor.require(Access::CONTROL, self.tenant())?;
        self.leave_admin(other_admin)
    }

    /// Sets the role that the user's groups map to; `other_admin` says whether the organization has
    /// another administrator.
    ///
    /// # Errors
    ///
    /// [`Refusal::LastAdmin`] if no administrator would be left.
    pub fn with_mapped_role(self, role: Role, other_admin: bool) -> Result<Self, Refusal> {
        if role != Role::Admin {
            self.leave_admin(other_admin)?;
        }
        Ok(Self { role, ..self })
    }

    /// Checks that the membership may end because no group grants a role.
    ///
    /// # Errors
    ///
    /// [`Refusal::LastAdmin`] if no administrator would be left.
    pub fn may_end(&self, other_admin: bool) -> Result<(), Refusal> {
        self.leave_admin(other_admin)
    }

    /// The organization, as the tenant of its own resources.
    pub fn tenant(&self) -> Tenant {
        Tenant::org(self.org)
    }

    fn leave_admin(&self, other_admin: bool) -> Result<(), Refusal> {
        let last = self.role == Role::Admin && !other_admin;
        (!last).then_some(()).ok_or(Refusal::LastAdmin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_wire::ApiKeyId;
    use std::collections::BTreeSet;
    use uuid::Uuid;

    const ORG: OrgId = OrgId(Uuid::from_u128(1));

    fn member(role: Role) -> Membership {
        Membership {
            org: ORG,
            user: UserId(Uuid::from_u128(2)),
            role,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn the_last_administrator_stays() {
        let by = &Actor::ApiKey {
            id: ApiKeyId(Uuid::from_u128(3)),
            tenant: Tenant::org(ORG),
            scopes: BTreeSet::new(),
            expires_at: None,
            made_by: None,
        };
        let last = Err(Refusal::LastAdmin);
        assert_eq!(member(Role::Admin).check_remove(by, false), last);
        assert_eq!(member(Role::Admin).check_remove(by, true), Ok(()));
        assert_eq!(member(Role::Operator).check_remove(by, false), Ok(()));
        let demoted = |other| member(Role::Admin).change_role(by, Role::Reader, other);
        assert_eq!(demoted(false), Err(Refusal::LastAdmin));
        assert_eq!(demoted(true), Ok(member(Role::Reader)));
        let kept = member(Role::Admin).change_role(by, Role::Admin, false);
        assert_eq!(kept, Ok(member(Role::Admin)));
    }
}
