//! Commands on projects.

mod delivery;
mod overview;
pub(crate) mod role;
pub(crate) mod second_person;
pub(crate) mod turns;
mod webhook;

use crate::app::{App, taken};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::error::Error;
use crate::project::second_person::check_independent;
use control_domain::{Access, PolicyChange, Project, QuotaKind, Refusal, Role, Tenant};
use control_store::{ListFilter, Page, Transaction, Versioned};
use control_wire::{OrgId, ProjectId};

impl App {
    /// Creates a project.
    pub async fn create_project(
        &self,
        call: &Call,
        org: OrgId,
        name: &str,
    ) -> Result<Versioned<Project>, Error> {
        let id = ProjectId::new(call.now, self.random_id());
        let project = Project::create(&call.actor, org, id, name, call.now)?;
        let mut tx = self.store.begin().await?;
        tx.insert_project(&project).await.map_err(taken("name"))?;
        self.hold_quota(&mut tx, org, QuotaKind::Projects).await?;
        tx.note_change(created(&project));
        self.commit(tx, call, "project.created", project.tenant(), id.0)
            .await?;
        Ok(Versioned::new(project))
    }

    /// The projects of an organization; an API key limited to one project sees only that one.
    pub async fn projects(
        &self,
        call: &Call,
        org: OrgId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Project>>, Error> {
        call.actor.require(Access::READ_ORG, Tenant::org(org))?;
        let mut tx = self.store.read().await?;
        let only = call.actor.only_project();
        Ok(tx.projects(org, only, filter, page).await?)
    }

    /// One project with its version.
    pub async fn project(&self, call: &Call, id: ProjectId) -> Result<Versioned<Project>, Error> {
        let found = find(&mut self.store.read().await?, id).await?;
        let tenant = found.value.tenant();
        call.actor.require(Access::READ_ORG, tenant)?;
        Ok(found)
    }

    /// Renames a project.
    pub async fn rename_project(
        &self,
        call: &Call,
        id: ProjectId,
        name: &str,
    ) -> Result<Versioned<Project>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, id).await?;
        let before = found.value.audited();
        let value = found.value.rename(&call.actor, name)?;
        call.expect_version(found.version)?;
        let updated = tx.update_project(&value, found.version).await;
        let version = updated.map_err(taken("name"))?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "project.renamed", value.tenant(), id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Requests another policy. A stricter policy takes effect at once. While rollouts need two
    /// persons, a weaker one takes effect only when a second administrator requests the same.
    pub async fn ask_policy(
        &self,
        call: &Call,
        id: ProjectId,
        change: PolicyChange,
    ) -> Result<Versioned<Project>, Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let mut found = find(&mut tx, id).await?;
        let before = found.value.audited();
        // The request of an administrator lapses with the role.
        if let Some(weaker) = &found.value.policy.weaker {
            let rights = tx.rights(weaker.asked_by).await?;
            if rights.role(found.value.tenant()) != Some(Role::Admin) {
                found.value.policy.weaker = None;
            }
        }
        let asked = found.value.policy.weaker.clone();
        let value = found.value.ask_policy(&call.actor, change)?;
        if let Some(asked) = asked
            && value.policy.weaker.is_none()
            && value.policy.rules == asked.rules
        {
            let (first, second) = (Some(asked.asked_by), call.actor.user());
            check_independent(&mut tx, id, first, second, call.now, call.now).await?;
        }
        call.expect_version(found.version)?;
        let version = tx.update_project(&value, found.version).await?;
        let action = match value.policy.weaker {
            None => "project.policy_changed",
            Some(_) => "project.weaker_policy_asked",
        };
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, action, value.tenant(), id.0).await?;
        Ok(Versioned { value, version })
    }

    /// Deletes a project without nodes.
    pub async fn delete_project(&self, call: &Call, id: ProjectId) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        // Taken first, as by a step of a rollout, which locks the rows deleted here afterwards.
        tx.lock_audit().await?;
        let found = find(&mut tx, id).await?;
        let has_nodes = tx.has_nodes(id).await?;
        found.value.check_delete(&call.actor, has_nodes)?;
        call.expect_version(found.version)?;
        tx.delete_project(id, found.version).await?;
        let tenant = found.value.tenant();
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "project.deleted", tenant, id.0).await
    }
}

async fn find(tx: &mut Transaction, id: ProjectId) -> Result<Versioned<Project>, Error> {
    Ok(tx.project(id).await?.ok_or(Refusal::NotFound)?)
}
