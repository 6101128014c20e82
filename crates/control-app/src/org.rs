//! Commands on organizations.

pub(crate) mod member;
mod removed_member;
pub(crate) mod security;

use crate::app::{App, taken};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, Actor, Membership, Org, Refusal, Role, Tenant};
use control_store::{ListFilter, Page, Transaction, Versioned};
use control_wire::OrgId;

impl App {
    /// Creates an organization; its creator becomes its administrator.
    pub async fn create_org(&self, call: &Call, name: &str) -> Result<Versioned<Org>, Error> {
        let mut tx = self.store.begin().await?;
        let org = self.insert_org(&mut tx, call, name).await?;
        if let Actor::User { id, .. } = call.actor {
            let membership = Membership {
                org: org.id,
                user: id,
                role: Role::Admin,
                created_at: call.now,
            };
            tx.insert_membership(membership).await?;
        }
        tx.note_change(created(&org));
        self.commit(tx, call, "org.created", org.tenant(), org.id.0)
            .await?;
        Ok(Versioned::new(org))
    }

    /// The organizations visible to the actor.
    pub async fn orgs(
        &self,
        call: &Call,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Org>>, Error> {
        call.actor.holds(Access::SignedIn)?;
        let mut tx = self.store.read().await?;
        if let Actor::User {
            id,
            owns_account: true,
            ..
        } = call.actor
        {
            return Ok(tx.orgs_of_user(id, filter, page).await?);
        }
        let mut orgs = Vec::new();
        for id in call.actor.orgs() {
            let found = tx.org(id).await?;
            let is_listed = |org: &Versioned<Org>| {
                Some(id.0) > page.after && filter.admits(org.value.name.as_str())
            };
            orgs.extend(found.filter(is_listed));
        }
        Ok(orgs)
    }

    /// One organization with its version.
    pub async fn org(&self, call: &Call, id: OrgId) -> Result<Versioned<Org>, Error> {
        call.actor.require(Access::READ_ORG, Tenant::org(id))?;
        find(&mut self.store.read().await?, id).await
    }

    /// Renames an organization.
    pub async fn rename_org(
        &self,
        call: &Call,
        id: OrgId,
        name: &str,
    ) -> Result<Versioned<Org>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, id).await?;
        let before = found.value.audited();
        let value = found.value.rename(&call.actor, name)?;
        call.expect_version(found.version)?;
        let updated = tx.update_org(&value, found.version).await;
        let version = updated.map_err(taken("name"))?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "org.renamed", value.tenant(), id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Deletes an organization without projects, together with its members and keys.
    pub async fn delete_org(&self, call: &Call, id: OrgId) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, id).await?;
        let has_projects = tx.has_projects(id).await?;
        found.value.check_delete(&call.actor, has_projects)?;
        call.expect_version(found.version)?;
        tx.delete_org(id, found.version).await?;
        let tenant = found.value.tenant();
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "org.deleted", tenant, id.0).await
    }

    /// Inserts an organization and its first signing key.
    pub(crate) async fn insert_org(
        &self,
        tx: &mut Transaction,
        call: &Call,
        name: &str,
    ) -> Result<Org, Error> {
        let id = OrgId::new(call.now, self.random_id());
        let org = Org::create(&call.actor, id, name, call.now)?;
        tx.insert_org(&org).await.map_err(taken("name"))?;
        self.first_signing_key(tx, org.id, call.now).await?;
        Ok(org)
    }
}

async fn find(tx: &mut Transaction, id: OrgId) -> Result<Versioned<Org>, Error> {
    Ok(tx.org(id).await?.ok_or(Refusal::NotFound)?)
}
