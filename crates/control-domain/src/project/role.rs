//! A member's role in one project, for example operator of one project and reader of the rest.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Role, Tenant};
use control_wire::{OrgId, ProjectId, UserId};
use jiff::Timestamp;

/// A member's role in one project; the higher one of this role and the organization's applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectRole {
    /// The project's organization.
    pub org: OrgId,
    /// Project in which the role applies.
    pub project: ProjectId,
    /// Member of the organization that has the role.
    pub user: UserId,
    /// Operator or administrator; every member may read anyway.
    pub role: Role,
    /// Time of granting.
    pub created_at: Timestamp,
}

impl ProjectRole {
    /// Grants a role; only administrators of the project or the organization may.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for the role reader, which every member has.
    pub fn grant(
        actor: &Actor,
        tenant: Tenant,
        user: UserId,
        role: Role,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, tenant)?;
        let project = tenant.project.ok_or(Refusal::NotFound)?;
        if role == Role::Reader {
            return Err(Refusal::invalid("role", "is what every member has"));
        }
        Ok(Self {
            org: tenant.org,
            project,
            user,
            role,
            created_at: now,
        })
    }

    /// Checks that the role may be removed.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_revoke(&self, actor: &Actor) -> Result<(), Refusal> {
        actor.require(Access::CONTROL, self.tenant())
    }

    /// The project, as the tenant of its own resources.
    pub fn tenant(&self) -> Tenant {
        Tenant::project(self.org, self.project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::ScopeRule;
    use control_wire::SessionId;
    use std::collections::{BTreeMap, BTreeSet};
    use uuid::Uuid;

    const ORG: OrgId = OrgId(Uuid::from_u128(1));
    const OWN: ProjectId = ProjectId(Uuid::from_u128(2));
    const OTHER: ProjectId = ProjectId(Uuid::from_u128(3));

    fn member(role: Role, own: Role) -> Actor {
        Actor::User {
            id: UserId(Uuid::from_u128(4)),
            session: SessionId(Uuid::from_u128(5)),
            instance_admin: false,
            roles: BTreeMap::from([(ORG, role)]),
            project_roles: BTreeMap::from([(OWN, own)]),
            locked: BTreeSet::new(),
            is_fresh: true,
            owns_account: true,
        }
    }

    #[test]
    fn the_higher_role_counts_and_only_in_its_project() {
        for (role, own) in [
            (Role::Reader, Role::Operator),
            (Role::Reader, Role::Admin),
            (Role::Operator, Role::Admin),
            (Role::Admin, Role::Operator),
        ] {
            let actor = member(role, own);
            for needed in Role::ALL.iter().copied() {
                let access = Access::Member {
                    scope: ScopeRule::Any,
                    role: needed,
                    fresh: false,
                };
                let may = |tenant| actor.require(access, tenant).is_ok();
                let here = may(Tenant::project(ORG, OWN));
                assert_eq!(here, needed <= role.max(own), "{role} {own} {needed}");
                assert_eq!(may(Tenant::project(ORG, OTHER)), needed <= role);
                assert_eq!(may(Tenant::org(ORG)), needed <= role);
            }
        }
    }

    #[test]
    fn an_administrator_of_one_project_grants_roles_there() {
        let (admin, user) = (member(Role::Reader, Role::Admin), UserId(Uuid::nil()));
        let grant = |project, role| {
            let tenant = Tenant::project(ORG, project);
            ProjectRole::grant(&admin, tenant, user, role, Timestamp::UNIX_EPOCH)
        };
        assert!(grant(OWN, Role::Operator).is_ok());
        assert!(matches!(
            grant(OWN, Role::Reader),
            Err(Refusal::Invalid { .. })
        ));
        assert_eq!(
            grant(OTHER, Role::Operator),
            Err(Refusal::LowerRole(Role::Admin))
        );
    }
}
