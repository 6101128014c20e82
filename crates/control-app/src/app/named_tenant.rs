//! The tenant that a request's path names, for checks before or without a handler.

use crate::app::{App, tenant};
use crate::error::Error;
use control_domain::{Access, Actor, Refusal, Tenant};
use control_wire::{ApiKeyId, OrgId, ProjectId};

/// Identifiers in a path that determine the tenant of its resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedTenant {
    /// Organization in the path.
    pub org: Option<OrgId>,
    /// Project in the path.
    pub project: Option<ProjectId>,
    /// API key in the path, which then names no organization.
    pub api_key: Option<ApiKeyId>,
}

impl App {
    /// Checks that the actor's credential suffices for `access`, before a handler loads the
    /// resource.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: with [`Refusal::NotFound`] if the tenant is not visible to the actor,
    /// else with the missing permission.
    pub async fn check_access(
        &self,
        actor: &Actor,
        access: Access,
        named: NamedTenant,
    ) -> Result<(), Error> {
        let Err(refusal) = actor.holds(access) else {
            return Ok(());
        };
        let is_of_tenant = matches!(access, Access::Member { .. } | Access::Enrolment);
        if !is_of_tenant || !matches!(actor, Actor::User { .. } | Actor::ApiKey { .. }) {
            return Err(refusal.into());
        }
        let is_seen = match self.tenant_named(named).await? {
            Some(tenant) => actor.reaches(tenant),
            // The body or the query may name the tenant: a user without organizations sees none.
            None => !actor.orgs().is_empty(),
        };
        Err(if is_seen { refusal } else { Refusal::NotFound }.into())
    }

    /// Checks the actor's permission `access` for the path's tenant before a page is shown: the
    /// page's handler may read with fewer rights than its form needs.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: with [`Refusal::NotFound`] if the tenant is not visible to the actor,
    /// else with the missing permission.
    pub async fn check_access_to(
        &self,
        actor: &Actor,
        access: Access,
        named: NamedTenant,
    ) -> Result<(), Error> {
        self.check_access(actor, access, named).await?;
        if !matches!(access, Access::Member { .. }) {
            return Ok(());
        }
        match self.tenant_named(named).await? {
            Some(tenant) => Ok(actor.require(access, tenant)?),
            None => Ok(()),
        }
    }

    /// Checks that the actor still has the permission `access` before a stored response is
    /// repeated: for the tenant `noted` with it, or else the path's.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with the permission that is missing now.
    pub async fn check_repetition(
        &self,
        actor: &Actor,
        access: Access,
        noted: Option<Tenant>,
        named: NamedTenant,
    ) -> Result<(), Error> {
        if !matches!(access, Access::Member { .. } | Access::Enrolment) {
            return Ok(actor.holds(access)?);
        }
        let tenant = match noted {
            Some(tenant) => Some(tenant),
            None => self.tenant_named(named).await?,
        };
        let tenant = tenant.ok_or(Refusal::NotFound)?;
        Ok(actor.require(access, tenant)?)
    }

    /// The tenant of the identifiers; `None` if the path names none.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] for a project or a key that does not exist.
    async fn tenant_named(&self, named: NamedTenant) -> Result<Option<Tenant>, Error> {
        let NamedTenant {
            org,
            project,
            api_key,
        } = named;
        if let Some(project) = project {
            let found = tenant(&mut self.store.read().await?, project).await?;
            return Ok(Some(found));
        }
        if let Some(key) = api_key {
            let found = self.store.read().await?.api_key(key).await?;
            return Ok(Some(found.ok_or(Refusal::NotFound)?.value.tenant));
        }
        Ok(org.map(Tenant::org))
    }
}
