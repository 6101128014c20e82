//! Commands on upstreams.

use crate::app::{App, taken, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::definition::check_upstream;
use crate::error::Error;
use control_domain::{Access, Refusal, Upstream, UpstreamSettings};
use control_store::{ListFilter, Page, Transaction, Versioned};
use control_wire::{ProjectId, UpstreamId};
use std::collections::{BTreeMap, BTreeSet};

impl App {
    /// Creates an upstream.
    pub async fn create_upstream(
        &self,
        call: &Call,
        project: ProjectId,
        settings: UpstreamSettings,
    ) -> Result<Versioned<Upstream>, Error> {
        let mut tx = self.store.begin().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = UpstreamId::new(call.now, self.random_id());
        let upstream = Upstream::create(&call.actor, tenant, id, settings, call.now)?;
        check_upstream(&upstream)?;
        tx.insert_upstream(&upstream).await.map_err(taken("name"))?;
        tx.note_change(created(&upstream));
        self.commit(tx, call, "upstream.created", tenant, id.0)
            .await?;
        Ok(Versioned::new(upstream))
    }

    /// The upstreams of a project.
    pub async fn upstreams(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Upstream>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(tx.upstreams(project, filter, page).await?)
    }

    /// Names of these upstreams; identifiers outside the project are left out.
    pub async fn upstream_names(
        &self,
        call: &Call,
        project: ProjectId,
        upstreams: &BTreeSet<UpstreamId>,
    ) -> Result<BTreeMap<UpstreamId, String>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        let mut names = BTreeMap::new();
        for id in upstreams {
            let found = tx.upstream(*id).await?.map(|found| found.value);
            let found = found.filter(|upstream| upstream.tenant == tenant);
            names.extend(found.map(|upstream| (*id, upstream.name.to_string())));
        }
        Ok(names)
    }

    /// One upstream with its version.
    pub async fn upstream(
        &self,
        call: &Call,
        project: ProjectId,
        id: UpstreamId,
    ) -> Result<Versioned<Upstream>, Error> {
        let found = find(&mut self.store.read().await?, project, id).await?;
        let tenant = found.value.tenant;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(found)
    }

    /// Replaces an upstream's settings.
    pub async fn update_upstream(
        &self,
        call: &Call,
        project: ProjectId,
        id: UpstreamId,
        settings: UpstreamSettings,
    ) -> Result<Versioned<Upstream>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        let before = found.value.audited();
        let value = found.value.update(&call.actor, settings)?;
        check_upstream(&value)?;
        call.expect_version(found.version)?;
        let updated = tx.update_upstream(&value, found.version).await;
        let version = updated.map_err(taken("name"))?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "upstream.updated", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Deletes an upstream that no service uses.
    pub async fn delete_upstream(
        &self,
        call: &Call,
        project: ProjectId,
        id: UpstreamId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        let in_use = tx.upstream_in_use(id).await?;
        found.value.check_delete(&call.actor, in_use)?;
        call.expect_version(found.version)?;
        tx.delete_upstream(id, found.version).await?;
        let tenant = found.value.tenant;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "upstream.deleted", tenant, id.0)
            .await
    }
}

/// An upstream of another project is indistinguishable from a missing one.
async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: UpstreamId,
) -> Result<Versioned<Upstream>, Error> {
    let found = tx.upstream(id).await?;
    let found = found.filter(|found| found.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}
