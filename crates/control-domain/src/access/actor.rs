//! Authenticated actors, and the functions that apply the rules of [`Access`].

use crate::access::creator::Creator;
use crate::access::refusal::Refusal;
use crate::access::{Access, Role, Scope, ScopeRule, Tenant};
use control_wire::{
    ApiKeyId, EnrolmentTokenId, InvitationId, NodeId, OrgId, ProjectId, SessionId, UserId,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// An authenticated caller, with the rights of its credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The control plane itself.
    System,
    /// The bearer of a set-up link.
    SetUp {
        /// Identifier of the link, not its secret.
        id: Uuid,
    },
    /// The bearer of an invitation.
    Invitee {
        /// Identifier of the invitation, not its secret.
        id: InvitationId,
        /// The organization to join.
        tenant: Tenant,
    },
    /// A user with a session.
    User {
        /// Identifier of the user.
        id: UserId,
        /// Session that authenticated the request.
        session: SessionId,
        /// True if the user administers the whole installation.
        instance_admin: bool,
        /// The user's role in each of its organizations.
        roles: BTreeMap<OrgId, Role>,
        /// The user's roles in single projects; the higher one of project and organization applies.
        project_roles: BTreeMap<ProjectId, Role>,
        /// Organizations that require a second factor that this session lacks.
        locked: BTreeSet<OrgId>,
        /// True within 10 minutes of the user's last proof of identity.
        is_fresh: bool,
        /// True if the session has all rights of the user, and so may change the user's
        /// credentials.
        owns_account: bool,
    },
    /// An API key.
    ApiKey {
        /// Identifier of the key.
        id: ApiKeyId,
        /// The key's organization, and the project that it is limited to.
        tenant: Tenant,
        /// Scopes of the key; empty grants full access.
        scopes: BTreeSet<Scope>,
        /// Time of expiry; `None` if the key does not expire.
        expires_at: Option<Timestamp>,
        /// The user that created the key, if recorded: the key has no more rights than the user.
        made_by: Option<Creator>,
    },
    /// The bearer of an enrolment token.
    Enrolment {
        /// Identifier of the enrolment token.
        id: EnrolmentTokenId,
        /// The project that nodes join with it.
        tenant: Tenant,
        /// True if its registrations are used up: the token then only repeats lost responses.
        is_used_up: bool,
    },
    /// A node.
    Node {
        /// Identifier of the node.
        id: NodeId,
        /// Tenant of the node.
        tenant: Tenant,
        /// Credential that authenticated the request.
        by: NodeCredential,
    },
}

/// Credential of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeCredential {
    /// The static key from its registration.
    Key,
    /// A short-lived JWT.
    Token,
}

impl Actor {
    /// Returns true if both are the same actor with the same rights. The age of the proof of
    /// identity is ignored.
    pub fn has_rights_of(&self, other: &Self) -> bool {
        let aged = |actor: &Self| {
            let mut actor = actor.clone();
            if let Self::User { is_fresh, .. } = &mut actor {
                *is_fresh = false;
            }
            actor
        };
        aged(self) == aged(other)
    }

    /// The kind of actor, for the audit log.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::System => "system",
            Self::SetUp { .. } => "setup_link",
            Self::Invitee { .. } => "invitation",
            Self::User { .. } => "user",
            Self::ApiKey { .. } => "api_key",
            Self::Enrolment { .. } => "enrolment_token",
            Self::Node { .. } => "node",
        }
    }

    /// Identifier of the actor, for the audit log and rate limits; all zeros for [`Actor::System`].
    pub fn id(&self) -> Uuid {
        match self {
            Self::System => Uuid::nil(),
            Self::SetUp { id } => *id,
            Self::Invitee { id, .. } => id.0,
            Self::User { id, .. } => id.0,
            Self::ApiKey { id, .. } => id.0,
            Self::Enrolment { id, .. } => id.0,
            Self::Node { id, .. } => id.0,
        }
    }

    /// The user that acts, or that created the acting key.
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::User { id, .. } => Some(*id),
            Self::ApiKey { made_by, .. } => made_by.map(|creator| creator.user),
            Self::System
            | Self::SetUp { .. }
            | Self::Invitee { .. }
            | Self::Enrolment { .. }
            | Self::Node { .. } => None,
        }
    }

    /// Creator to record for values that this actor creates for `tenant`; `None` if no user is
    /// known.
    pub fn creator(&self, tenant: Tenant) -> Option<Creator> {
        match self {
            Self::User { id, .. } => Some(Creator {
                user: *id,
                role: self.role(tenant),
            }),
            Self::ApiKey { made_by, .. } => *made_by,
            Self::System
            | Self::SetUp { .. }
            | Self::Invitee { .. }
            | Self::Enrolment { .. }
            | Self::Node { .. } => None,
        }
    }

    /// The user's role for `tenant`: the higher one of organization and project; `None` for
    /// non-members and for actors without roles.
    pub fn role(&self, tenant: Tenant) -> Option<Role> {
        let Self::User {
            roles,
            project_roles,
            ..
        } = self
        else {
            return None;
        };
        higher_role(roles, project_roles, tenant)
    }

    /// Owner of the quota that all credentials of a user share: the user, or the organization for
    /// keys without a recorded user.
    pub fn quota_owner(&self) -> Uuid {
        match (self.user(), self) {
            (Some(user), _) => user.0,
            (None, Self::ApiKey { tenant, .. }) => tenant.org.0,
            (None, _) => self.id(),
        }
    }

    /// Owner of the resource share that the actor's requests use: its organization (the first one
    /// for a user with several), or the actor itself without one.
    pub fn share_owner(&self) -> Uuid {
        match self {
            Self::User { id, roles, .. } => roles.keys().next().map_or(id.0, |org| org.0),
            Self::Invitee { tenant, .. }
            | Self::ApiKey { tenant, .. }
            | Self::Enrolment { tenant, .. }
            | Self::Node { tenant, .. } => tenant.org.0,
            Self::System | Self::SetUp { .. } => self.id(),
        }
    }

    /// Checks that the actor has the permission `access` on resources of `tenant`.
    ///
    /// The tenant is compared first, so that resources of another tenant look like missing ones.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] for another tenant, otherwise the reason for the missing permission.
    pub fn require(&self, access: Access, tenant: Tenant) -> Result<(), Refusal> {
        if !self.reaches(tenant) {
            return Err(Refusal::NotFound);
        }
        if let Self::User { locked, .. } = self
            && locked.contains(&tenant.org)
        {
            return Err(Refusal::NoSecondFactor);
        }
        self.holds(access)?;
        match (self, access) {
            (Self::User { .. } | Self::ApiKey { .. }, Access::Enrolment) => {
                self.require(Access::WRITE_NODES, tenant)
            }
            (Self::User { .. }, Access::Member { role, .. }) => {
                let enough = self.role(tenant).is_some_and(|own| role <= own);
                enough.then_some(()).ok_or(Refusal::LowerRole(role))
            }
            (Self::ApiKey { tenant: own, .. }, Access::Member { scope, .. }) => {
                let limited = own.project.is_some() && tenant.project.is_none();
                let refused = limited && scope != ScopeRule::Any;
                (!refused).then_some(()).ok_or(Refusal::LimitedToProject)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the kind and strength of the credential satisfy `access`, apart from the tenant.
    ///
    /// # Errors
    ///
    /// The [`Refusal`] for the wrong kind or strength of credential.
    pub fn holds(&self, access: Access) -> Result<(), Refusal> {
        match (access, self) {
            (Access::Public, _) => Ok(()),
            // A used-up token is refused everywhere else, like a revoked one.
            (
                _,
                Self::Enrolment {
                    is_used_up: true, ..
                },
            ) if access != Access::Enrolment => Err(Refusal::Ended),
            (Access::SetUp, Self::SetUp { .. })
            | (Access::Invitee, Self::Invitee { .. })
            | (Access::SignedIn, Self::User { .. } | Self::ApiKey { .. })
            | (Access::Session, Self::User { .. })
            | (Access::Enrolment, Self::Enrolment { .. })
            | (Access::OwnNode, Self::Node { .. })
            | (
                Access::OwnNodeKey,
                Self::Node {
                    by: NodeCredential::Key,
                    ..
                },
            )
            | (Access::System, Self::System) => Ok(()),
            (Access::Enrolment, Self::User { .. } | Self::ApiKey { .. }) => {
                self.holds(Access::WRITE_NODES)
            }
            (Access::Member { role, .. }, Self::ApiKey { made_by, .. })
                if !Creator::allows(*made_by, role) =>
            {
                Err(Refusal::MakerRole(role))
            }
            (Access::Member { scope, .. }, Self::ApiKey { scopes, .. }) => {
                let enough = scopes.is_empty()
                    || match scope {
                        ScopeRule::Any => true,
                        ScopeRule::Has(scope) => scopes.contains(&scope),
                        ScopeRule::Unlimited => false,
                    };
                enough.then_some(()).ok_or(Refusal::MissingScope(scope))
            }
            (
                Access::Member { role, fresh, .. },
                Self::User {
                    roles,
                    project_roles,
                    is_fresh,
                    ..
                },
            ) => {
                let strongest = roles.values().chain(project_roles.values()).max();
                let enough = strongest.is_some_and(|own| role <= *own);
                enough.then_some(()).ok_or(Refusal::LowerRole(role))?;
                let proven = *is_fresh || !fresh;
                proven.then_some(()).ok_or(Refusal::NotFresh)
            }
            (Access::FreshSession, Self::User { .. }) => self.check_account_owner(),
            (Access::InstanceAdmin, Self::User { .. }) => self.check_instance_admin(false),
            (Access::FreshInstanceAdmin, Self::User { .. }) => self.check_instance_admin(true),
            _ => Err(Refusal::WrongCredential),
        }
    }

    fn check_instance_admin(&self, fresh: bool) -> Result<(), Refusal> {
        let Self::User {
            instance_admin: true,
            is_fresh,
            ..
        } = self
        else {
            return Err(Refusal::LowerRole(Role::Admin));
        };
        let proven = *is_fresh || !fresh;
        proven.then_some(()).ok_or(Refusal::NotFresh)
    }

    /// Checks the right to change the user's credentials: a fresh proof of identity, in a session
    /// with all rights of the user.
    fn check_account_owner(&self) -> Result<(), Refusal> {
        let is_owner = matches!(
            self,
            Self::User {
                is_fresh: true,
                owns_account: true,
                ..
            }
        );
        is_owner.then_some(()).ok_or(Refusal::NotFresh)
    }

    /// Checks that the actor is a session with all rights of its user. A session from an identity
    /// provider has the user's rights only in the provider's organization.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFresh`]: a further proof of identity gives the session all rights.
    pub fn require_account_owner(&self) -> Result<(), Refusal> {
        if let Self::User {
            owns_account: false,
            ..
        } = self
        {
            return Err(Refusal::NotFresh);
        }
        self.holds(Access::Session)
    }

    /// Organizations visible to the actor.
    pub fn orgs(&self) -> Vec<OrgId> {
        match self {
            Self::User { roles, .. } => roles.keys().copied().collect(),
            Self::ApiKey { tenant, .. }
            | Self::Invitee { tenant, .. }
            | Self::Enrolment { tenant, .. }
            | Self::Node { tenant, .. } => vec![tenant.org],
            Self::System | Self::SetUp { .. } => Vec::new(),
        }
    }

    /// The only project visible to the actor, if it is limited to one.
    pub fn only_project(&self) -> Option<ProjectId> {
        match self {
            Self::ApiKey { tenant, .. }
            | Self::Enrolment { tenant, .. }
            | Self::Node { tenant, .. } => tenant.project,
            Self::User { .. } | Self::System | Self::SetUp { .. } | Self::Invitee { .. } => None,
        }
    }

    /// Returns true if resources of `tenant` are visible to the actor.
    pub fn reaches(&self, tenant: Tenant) -> bool {
        let own_project = self.only_project();
        match self {
            Self::System => true,
            Self::SetUp { .. } => false,
            Self::User { roles, .. } => roles.contains_key(&tenant.org),
            Self::ApiKey { tenant: own, .. } => {
                let same_project = own_project.is_none() || tenant.project.is_none();
                own.org == tenant.org && (same_project || own_project == tenant.project)
            }
            Self::Invitee { tenant: own, .. }
            | Self::Enrolment { tenant: own, .. }
            | Self::Node { tenant: own, .. } => *own == tenant,
        }
    }
}

/// The higher of a member's roles in the organization and in the project; `None` for non-members.
pub(crate) fn higher_role(
    roles: &BTreeMap<OrgId, Role>,
    project_roles: &BTreeMap<ProjectId, Role>,
    tenant: Tenant,
) -> Option<Role> {
    let own = roles.get(&tenant.org).copied()?;
    let project_role = tenant
        .project
        .and_then(|id| project_roles.get(&id).copied());
    Some(project_role.map_or(own, |role| role.max(own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORG: OrgId = OrgId(Uuid::from_u128(1));
    const PROJECT: ProjectId = ProjectId(Uuid::from_u128(2));
    const OTHER: ProjectId = ProjectId(Uuid::from_u128(3));

    fn user(org: OrgId, role: Role) -> Actor {
        Actor::User {
            id: UserId(Uuid::from_u128(4)),
            session: SessionId(Uuid::from_u128(5)),
            instance_admin: false,
            roles: BTreeMap::from([(org, role)]),
            project_roles: BTreeMap::new(),
            locked: BTreeSet::new(),
            is_fresh: true,
            owns_account: true,
        }
    }

    fn key(tenant: Tenant, scopes: &[Scope]) -> Actor {
        Actor::ApiKey {
            id: ApiKeyId(Uuid::from_u128(6)),
            tenant,
            scopes: scopes.iter().copied().collect(),
            expires_at: None,
            made_by: None,
        }
    }

    #[test]
    fn a_user_and_the_keys_that_it_made_have_one_quota() {
        let made_by = |user: Option<u128>, id: u128| Actor::ApiKey {
            id: ApiKeyId(Uuid::from_u128(id)),
            tenant: Tenant::project(ORG, PROJECT),
            scopes: BTreeSet::new(),
            expires_at: None,
            made_by: user.map(|user| Creator {
                user: UserId(Uuid::from_u128(user)),
                role: Some(Role::Admin),
            }),
        };
        let own = user(ORG, Role::Admin).quota_owner();
        assert_eq!(made_by(Some(4), 10).quota_owner(), own);
        assert_eq!(made_by(Some(4), 11).quota_owner(), own);
        assert_ne!(made_by(Some(5), 12).quota_owner(), own);
        // All keys without a recorded user share their organization's quota.
        assert_eq!(made_by(None, 13).quota_owner(), ORG.0);
        assert_eq!(made_by(None, 14).quota_owner(), ORG.0);
    }

    #[test]
    fn a_role_holds_in_its_own_organization_only() {
        let tenant = Tenant::project(ORG, PROJECT);
        for (own, needed) in [
            (Role::Reader, Role::Operator),
            (Role::Operator, Role::Admin),
        ] {
            let access = Access::Member {
                scope: ScopeRule::Any,
                role: needed,
                fresh: false,
            };
            let refused = user(ORG, own).require(access, tenant);
            assert_eq!(refused, Err(Refusal::LowerRole(needed)));
            assert_eq!(user(ORG, needed).require(access, tenant), Ok(()));
            let stranger = user(OrgId(Uuid::from_u128(9)), Role::Admin);
            assert_eq!(stranger.require(access, tenant), Err(Refusal::NotFound));
        }
    }

    #[test]
    fn a_strong_role_elsewhere_gives_nothing_here() {
        let elsewhere = OrgId(Uuid::from_u128(9));
        let mut user = user(ORG, Role::Reader);
        let Actor::User { roles, .. } = &mut user else {
            unreachable!("made as a user")
        };
        roles.insert(elsewhere, Role::Admin);
        assert_eq!(user.holds(Access::ADMINISTER), Ok(()));
        assert_eq!(
            user.require(Access::ADMINISTER, Tenant::org(ORG)),
            Err(Refusal::LowerRole(Role::Admin))
        );
    }

    #[test]
    fn a_key_is_held_to_its_project_and_scopes() {
        let (own, other) = (Tenant::project(ORG, PROJECT), Tenant::project(ORG, OTHER));
        let full = key(Tenant::org(ORG), &[]);
        let limited = key(own, &[]);
        let scoped = key(Tenant::org(ORG), &[Scope::NodesRead]);
        let cases = [
            (&full, Access::ADMINISTER, Tenant::org(ORG), Ok(())),
            (&full, Access::WRITE_API_KEYS, other, Ok(())),
            (&limited, Access::WRITE_API_KEYS, own, Ok(())),
            (
                &limited,
                Access::WRITE_API_KEYS,
                other,
                Err(Refusal::NotFound),
            ),
            (&limited, Access::READ_ORG, Tenant::org(ORG), Ok(())),
            (
                &limited,
                Access::ADMINISTER,
                Tenant::org(ORG),
                Err(Refusal::LimitedToProject),
            ),
            (
                &scoped,
                Access::WRITE_API_KEYS,
                own,
                Err(Refusal::MissingScope(ScopeRule::Has(Scope::ApiKeysAdmin))),
            ),
            (
                &scoped,
                Access::ADMINISTER,
                own,
                Err(Refusal::MissingScope(ScopeRule::Unlimited)),
            ),
        ];
        for (actor, access, tenant, expected) in cases {
            assert_eq!(
                actor.require(access, tenant),
                expected,
                "{access:?} {tenant:?}"
            );
        }
    }

    #[test]
    fn a_key_may_do_no_more_than_its_maker_now() {
        let tenant = Tenant::org(ORG);
        let key = |role| Actor::ApiKey {
            id: ApiKeyId(Uuid::from_u128(6)),
            tenant,
            scopes: BTreeSet::new(),
            expires_at: None,
            made_by: Some(Creator {
                user: UserId(Uuid::from_u128(4)),
                role,
            }),
        };
        let lacks = |role| Err(Refusal::MakerRole(role));
        for (own, access, expected) in [
            (Some(Role::Admin), Access::ADMINISTER, Ok(())),
            (Some(Role::Operator), Access::ADMINISTER, lacks(Role::Admin)),
            (Some(Role::Operator), Access::WRITE_NODES, Ok(())),
            (Some(Role::Operator), Access::Enrolment, Ok(())),
            (
                Some(Role::Reader),
                Access::WRITE_NODES,
                lacks(Role::Operator),
            ),
            (Some(Role::Reader), Access::Enrolment, lacks(Role::Operator)),
            (Some(Role::Reader), Access::READ_NODES, Ok(())),
            (None, Access::READ_NODES, lacks(Role::Reader)),
        ] {
            assert_eq!(
                key(own).require(access, tenant),
                expected,
                "{own:?} {access:?}"
            );
        }
    }

    #[test]
    fn a_node_may_call_only_its_own_routes() {
        let tenant = Tenant::project(ORG, PROJECT);
        let node = |by| Actor::Node {
            id: NodeId(Uuid::from_u128(7)),
            tenant,
            by,
        };
        let (by_key, by_token) = (node(NodeCredential::Key), node(NodeCredential::Token));
        assert_eq!(by_key.require(Access::OwnNodeKey, tenant), Ok(()));
        assert_eq!(by_token.require(Access::OwnNode, tenant), Ok(()));
        let wrong = Err(Refusal::WrongCredential);
        assert_eq!(by_token.require(Access::OwnNodeKey, tenant), wrong);
        assert_eq!(by_key.require(Access::READ_ORG, tenant), wrong);
        assert_eq!(by_key.holds(Access::SignedIn), wrong);
    }
}
