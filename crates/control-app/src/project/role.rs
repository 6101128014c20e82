//! Roles of members in single projects, in addition to the role in the organization.

use crate::app::{App, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, ProjectRole, Refusal, Role, Tenant};
use control_store::{NamedProjectRole, Page, Sort, Transaction, Versioned};
use control_wire::{OrgId, ProjectId, UserId};

impl App {
    /// Members with a role in this project.
    pub async fn project_roles(
        &self,
        call: &Call,
        project: ProjectId,
        sort: Option<&Sort>,
        page: Page,
    ) -> Result<Vec<Versioned<ProjectRole>>, Error> {
        let mut tx = self.store.read().await?;
        let owner = tenant(&mut tx, project).await?;
        call.actor.require(Access::ADMINISTER, owner)?;
        Ok(tx.project_roles(project, sort, page).await?)
    }

    /// Project roles of an organization's members, at most `limit`, sorted by the members' names.
    pub async fn project_roles_of_org(
        &self,
        call: &Call,
        org: OrgId,
        limit: i64,
    ) -> Result<Vec<NamedProjectRole>, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        let mut tx = self.store.read().await?;
        Ok(tx.project_roles_of_org(org, limit).await?)
    }

    /// The role of a member in the project, apart from the role in the organization.
    pub async fn project_role(
        &self,
        call: &Call,
        project: ProjectId,
        user: UserId,
    ) -> Result<Versioned<ProjectRole>, Error> {
        let mut tx = self.store.read().await?;
        let owner = tenant(&mut tx, project).await?;
        call.actor.require(Access::ADMINISTER, owner)?;
        find(&mut tx, project, user).await
    }

    /// Gives a member of the organization a role in the project, effective at once for open
    /// sessions.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::NotFound`] for users that are not members.
    pub async fn grant_project_role(
        &self,
        call: &Call,
        project: ProjectId,
        user: UserId,
        role: Role,
    ) -> Result<Versioned<ProjectRole>, Error> {
        let mut tx = self.store.begin().await?;
        let owner = tenant(&mut tx, project).await?;
        let given = ProjectRole::grant(&call.actor, owner, user, role, call.now)?;
        // The lock excludes a concurrent removal of the member, which would leave the role behind.
        tx.lock_org(owner.org).await?;
        tx.member(owner.org, user).await?.ok_or(Refusal::NotFound)?;
        let before = tx.project_role(project, user).await?;
        match &before {
            Some(before) => call.expect_version(before.version)?,
            None => call.expect_no_version()?,
        }
        let version = tx.put_project_role(&given).await?;
        self.end_project_credentials(&mut tx, call, &given, Some(role))
            .await?;
        let change = match before {
            Some(before) => changed(&before.value.audited(), &given),
            None => created(&given),
        };
        tx.note_change(change);
        self.commit(tx, call, "project_role.given", owner, user.0)
            .await?;
        let value = given;
        Ok(Versioned { value, version })
    }

    /// Removes a member's role in the project; the role in the organization is unchanged.
    pub async fn revoke_project_role(
        &self,
        call: &Call,
        project: ProjectId,
        user: UserId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let owner = tenant(&mut tx, project).await?;
        call.actor.require(Access::CONTROL, owner)?;
        let found = find(&mut tx, project, user).await?;
        found.value.check_revoke(&call.actor)?;
        call.expect_version(found.version)?;
        tx.delete_project_role(project, user, found.version).await?;
        self.end_project_credentials(&mut tx, call, &found.value, None)
            .await?;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "project_role.taken", owner, user.0)
            .await
    }

    /// Ends enrolment tokens of the project that the member may no longer create.
    async fn end_project_credentials(
        &self,
        tx: &mut Transaction,
        call: &Call,
        given: &ProjectRole,
        role: Option<Role>,
    ) -> Result<(), Error> {
        let org_role = tx.roles(given.user).await?.get(&given.org).copied();
        if Some(Role::Operator) <= org_role.max(role) {
            return Ok(());
        }
        let ended = tx
            .end_project_tokens(given.project, given.user, given.org, call.now)
            .await?;
        self.record_ended(tx, call, ended).await
    }
}

async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    user: UserId,
) -> Result<Versioned<ProjectRole>, Error> {
    let found = tx.project_role(project, user).await?;
    Ok(found.ok_or(Refusal::NotFound)?)
}
