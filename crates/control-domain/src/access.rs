//! Permissions: which actors a command admits, and the tenant of a value.

pub(crate) mod actor;
pub(crate) mod creator;
pub(crate) mod refusal;

use crate::named::named;
use control_wire::{OrgId, ProjectId};

/// Permission that a command requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every request; credentials are not checked.
    Public,
    /// The bearer of the one-time set-up link.
    SetUp,
    /// The bearer of an invitation.
    Invitee,
    /// Any user with a session, and any API key.
    SignedIn,
    /// Any user with a session: only a person can consent, not a program.
    Session,
    /// Any user with a session and a fresh proof of identity: a stolen session must not change the
    /// user's credentials.
    FreshSession,
    /// An administrator of the whole installation.
    InstanceAdmin,
    /// An administrator of the whole installation with a fresh proof of identity.
    FreshInstanceAdmin,
    /// The bearer of an enrolment token, or an actor that may create one.
    Enrolment,
    /// The node itself, with its key or a token.
    OwnNode,
    /// The node itself, with its key: a token must not renew itself.
    OwnNodeKey,
    /// The control plane itself.
    System,
    /// A member of the organization, or one of its API keys.
    Member {
        /// Scope that an API key needs.
        scope: ScopeRule,
        /// Minimum role of a user.
        role: Role,
        /// Set if a user needs a fresh proof of identity; API keys are exempt.
        fresh: bool,
    },
}

/// Scope that an API key needs. A key without scopes has full access and passes every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeRule {
    /// Any key of the organization, even if limited to a project.
    Any,
    /// A key with this scope.
    Has(Scope),
    /// Only a key without scopes.
    Unlimited,
}

impl Access {
    /// Reads the organization and its projects.
    pub const READ_ORG: Self = Self::member(ScopeRule::Any, Role::Reader);
    /// Creates and renames projects.
    pub const WRITE_PROJECTS: Self = Self::member(ScopeRule::Unlimited, Role::Operator);
    /// Reads members, invitations and the audit log; renames the organization.
    pub const ADMINISTER: Self = Self::member(ScopeRule::Unlimited, Role::Admin);
    /// Changes members, signing keys, single sign-on and policies; deletes projects and the
    /// organization.
    pub const CONTROL: Self = Self::fresh(ScopeRule::Unlimited, Role::Admin);
    /// Reads nodes and enrolment tokens.
    pub const READ_NODES: Self = Self::member(ScopeRule::Has(Scope::NodesRead), Role::Reader);
    /// Registers, labels and deletes nodes.
    pub const WRITE_NODES: Self = Self::member(ScopeRule::Has(Scope::NodesWrite), Role::Operator);
    /// Lists and views API keys.
    pub const READ_API_KEYS: Self = Self::member(ScopeRule::Has(Scope::ApiKeysAdmin), Role::Admin);
    /// Creates, revokes and deletes API keys.
    pub const WRITE_API_KEYS: Self = Self::fresh(ScopeRule::Has(Scope::ApiKeysAdmin), Role::Admin);
    /// Lists, views, downloads, verifies and compares bundles.
    pub const READ_BUNDLES: Self = Self::member(ScopeRule::Has(Scope::BundlesRead), Role::Reader);
    /// Creates, assigns and revokes bundles.
    pub const WRITE_BUNDLES: Self =
        Self::member(ScopeRule::Has(Scope::BundlesWrite), Role::Operator);
    /// Lists and views services, upstreams and certificates.
    pub const READ_SERVICES: Self = Self::member(ScopeRule::Has(Scope::ServicesRead), Role::Reader);
    /// Creates, changes and deletes services, upstreams and certificates.
    pub const WRITE_SERVICES: Self =
        Self::member(ScopeRule::Has(Scope::ServicesWrite), Role::Operator);

    /// Lists and views rollouts.
    pub const READ_ROLLOUTS: Self = Self::member(ScopeRule::Has(Scope::RolloutsRead), Role::Reader);
    /// Creates and steers rollouts.
    pub const WRITE_ROLLOUTS: Self =
        Self::member(ScopeRule::Has(Scope::RolloutsWrite), Role::Operator);

    /// Decides which nodes get private keys of certificates. The specified list of scopes has none
    /// for it, so it is the same permission as for managing certificates.
    pub const DELIVER_KEYS: Self = Self::WRITE_SERVICES;

    const fn member(scope: ScopeRule, role: Role) -> Self {
        Self::Member {
            scope,
            role,
            fresh: false,
        }
    }

    const fn fresh(scope: ScopeRule, role: Role) -> Self {
        Self::Member {
            scope,
            role,
            fresh: true,
        }
    }
}

named! {
    /// Rights of a user in an organization or a project; each role includes the ones before it.
    #[schema(as = RoleName)]
    Role {
        /// Reads.
        Reader = "reader",
        /// Manages projects, bundles, rollouts, services and nodes.
        Operator = "operator",
        /// Controls the organization.
        Admin = "admin",
    }
}

named! {
    /// One right of an API key.
    #[schema(as = ScopeName)]
    Scope {
        /// Lists and views nodes.
        NodesRead = "nodes:read",
        /// Registers and deletes nodes, resolves drift.
        NodesWrite = "nodes:write",
        /// Lists, views, downloads and verifies bundles.
        BundlesRead = "bundles:read",
        /// Creates, assigns and revokes bundles.
        BundlesWrite = "bundles:write",
        /// Lists and views rollouts.
        RolloutsRead = "rollouts:read",
        /// Creates and steers rollouts.
        RolloutsWrite = "rollouts:write",
        /// Lists services, upstreams and certificates.
        ServicesRead = "services:read",
        /// Creates, updates and deletes services, upstreams and certificates.
        ServicesWrite = "services:write",
        /// Manages API keys.
        ApiKeysAdmin = "api_keys:admin",
    }
}

/// Tenant of a value: organization and project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Organization that owns the value.
    pub org: OrgId,
    /// Project of the value; `None` if it belongs to the organization as a whole.
    pub project: Option<ProjectId>,
}

impl Tenant {
    /// The tenant of values that belong to the organization as a whole.
    pub const fn org(org: OrgId) -> Self {
        Self { org, project: None }
    }

    /// The tenant of a project's values.
    pub const fn project(org: OrgId, project: ProjectId) -> Self {
        Self {
            org,
            project: Some(project),
        }
    }
}
