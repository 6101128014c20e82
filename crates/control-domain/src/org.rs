//! Organizations: owners of projects, members and keys.

pub(crate) mod membership;
mod quota;
mod retention;

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Tenant};
use crate::text::Name;
use control_wire::OrgId;
use jiff::Timestamp;
pub use quota::{QuotaKind, Quotas};
pub use retention::Retention;

/// An organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Org {
    /// UUID of version 7.
    pub id: OrgId,
    /// Its name, unique in the installation.
    pub name: Name,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Security requirements for members of an organization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrgSecurity {
    /// Sessions need a second factor.
    pub second_factor: bool,
}

impl Org {
    /// Creates an organization, for an administrator of the installation or at set-up.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for any other actor, or a bad name.
    pub fn create(actor: &Actor, id: OrgId, name: &str, now: Timestamp) -> Result<Self, Refusal> {
        let first = actor.holds(Access::SetUp);
        let own = first.or_else(|_| actor.holds(Access::System));
        own.or_else(|_| actor.holds(Access::FreshInstanceAdmin))?;
        Ok(Self {
            id,
            name: Name::parse("name", name)?,
            created_at: now,
        })
    }

    /// Renames the organization.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad name.
    pub fn rename(self, actor: &Actor, name: &str) -> Result<Self, Refusal> {
        actor.require(Access::ADMINISTER, self.tenant())?;
        let name = Name::parse("name", name)?;
        Ok(Self { name, ..self })
    }

    /// Checks that the organization may be deleted; `has_projects` says whether it still has
    /// projects.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or while it has projects.
    pub fn check_delete(&self, actor: &Actor, has_projects: bool) -> Result<(), Refusal> {
        actor.require(Access::CONTROL, self.tenant())?;
        (!has_projects)
            .then_some(())
            .ok_or(Refusal::InUse("projects"))
    }

    /// The organization, as the tenant of its own resources.
    pub fn tenant(&self) -> Tenant {
        Tenant::org(self.id)
    }
}
