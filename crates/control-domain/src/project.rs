//! Projects: owners of nodes, bundles, rollouts and services.

pub(crate) mod policy;
pub(crate) mod role;
pub(crate) mod webhook;

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Tenant};
use crate::project::policy::{PolicyChange, ProjectPolicy};
use crate::text::Name;
use control_wire::{OrgId, ProjectId};
use jiff::Timestamp;

/// A project of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// UUID of version 7.
    pub id: ProjectId,
    /// Organization that owns the project.
    pub org: OrgId,
    /// Its name, unique in the organization.
    pub name: Name,
    /// Policy for rollouts and assignments.
    pub policy: ProjectPolicy,
    /// Time of creation.
    pub created_at: Timestamp,
}

impl Project {
    /// Creates a project of `org`.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad name.
    pub fn create(
        actor: &Actor,
        org: OrgId,
        id: ProjectId,
        name: &str,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_PROJECTS, Tenant::org(org))?;
        Ok(Self {
            id,
            org,
            name: Name::parse("name", name)?,
            policy: ProjectPolicy::default(),
            created_at: now,
        })
    }

    /// Renames the project.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad name.
    pub fn rename(self, actor: &Actor, name: &str) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_PROJECTS, self.tenant())?;
        let name = Name::parse("name", name)?;
        Ok(Self { name, ..self })
    }

    /// Applies an administrator's request for another policy; a weaker policy may need a second
    /// person.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if no user is known for the actor.
    pub fn ask_policy(self, actor: &Actor, change: PolicyChange) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, self.tenant())?;
        let person = actor.user().ok_or(Refusal::UnknownPerson)?;
        let policy = self.policy.ask(change, person);
        Ok(Self { policy, ..self })
    }

    /// Checks that the project may be deleted; `has_nodes` says whether it still has nodes.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or while it has nodes.
    pub fn check_delete(&self, actor: &Actor, has_nodes: bool) -> Result<(), Refusal> {
        actor.require(Access::CONTROL, self.tenant())?;
        (!has_nodes).then_some(()).ok_or(Refusal::InUse("nodes"))
    }

    /// The project, as the tenant of its own resources.
    pub fn tenant(&self) -> Tenant {
        Tenant::project(self.org, self.id)
    }
}
