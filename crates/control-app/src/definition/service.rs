//! Commands on services.

use crate::app::{App, taken, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::definition::check_service;
use crate::error::Error;
use control_domain::{Access, Refusal, Service, ServiceSettings, Tenant};
use control_store::{Page, ServiceFilter, ServiceUse, Transaction, Versioned};
use control_wire::{CertificateId, ProjectId, ServiceId, UpstreamId};
use std::collections::BTreeMap;

impl App {
    /// Creates a service.
    pub async fn create_service(
        &self,
        call: &Call,
        project: ProjectId,
        settings: ServiceSettings,
    ) -> Result<Versioned<Service>, Error> {
        let mut tx = self.store.begin().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = ServiceId::new(call.now, self.random_id());
        let service = Service::create(&call.actor, tenant, id, settings, call.now)?;
        check_service(&service)?;
        check_references(&mut tx, &service).await?;
        tx.insert_service(&service).await.map_err(taken("name"))?;
        tx.note_change(created(&service));
        self.commit(tx, call, "service.created", tenant, id.0)
            .await?;
        Ok(Versioned::new(service))
    }

    /// The services of a project.
    pub async fn services(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &ServiceFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Service>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(tx.services(project, filter, page).await?)
    }

    /// Services that use each of these upstreams; upstreams without one are left out.
    pub async fn upstream_users(
        &self,
        call: &Call,
        project: ProjectId,
        upstreams: &[UpstreamId],
    ) -> Result<BTreeMap<UpstreamId, ServiceUse>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(tx.services_of_upstreams(project, upstreams).await?)
    }

    /// Services that use each of these certificates; certificates without one are left out.
    pub async fn certificate_users(
        &self,
        call: &Call,
        project: ProjectId,
        certificates: &[CertificateId],
    ) -> Result<BTreeMap<CertificateId, ServiceUse>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(tx.services_of_certificates(project, certificates).await?)
    }

    /// One service with its version.
    pub async fn service(
        &self,
        call: &Call,
        project: ProjectId,
        id: ServiceId,
    ) -> Result<Versioned<Service>, Error> {
        let found = find(&mut self.store.read().await?, project, id).await?;
        let tenant = found.value.tenant;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(found)
    }

    /// Replaces a service's settings.
    pub async fn update_service(
        &self,
        call: &Call,
        project: ProjectId,
        id: ServiceId,
        settings: ServiceSettings,
    ) -> Result<Versioned<Service>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        let before = found.value.audited();
        let value = found.value.update(&call.actor, settings)?;
        check_service(&value)?;
        call.expect_version(found.version)?;
        check_references(&mut tx, &value).await?;
        let updated = tx.update_service(&value, found.version).await;
        let version = updated.map_err(taken("name"))?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "service.updated", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Deletes a service.
    pub async fn delete_service(
        &self,
        call: &Call,
        project: ProjectId,
        id: ServiceId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        found.value.check_delete(&call.actor)?;
        call.expect_version(found.version)?;
        tx.delete_service(id, found.version).await?;
        let tenant = found.value.tenant;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "service.deleted", tenant, id.0).await
    }
}

async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: ServiceId,
) -> Result<Versioned<Service>, Error> {
    let found = tx.service(id).await?;
    let found = found.filter(|found| found.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}

/// Refuses an upstream or a certificate of another project.
async fn check_references(tx: &mut Transaction, service: &Service) -> Result<(), Error> {
    let own = |tenant: Tenant| tenant == service.tenant;
    let absent = "does not exist in the project";
    let upstream = tx.upstream(service.upstream).await?;
    if !upstream.is_some_and(|found| own(found.value.tenant)) {
        return Err(Refusal::invalid("upstream", absent).into());
    }
    let Some(certificate) = service.certificate else {
        return Ok(());
    };
    let certificate = tx.certificate(certificate).await?;
    if !certificate.is_some_and(|found| own(found.value.tenant)) {
        return Err(Refusal::invalid("certificate", absent).into());
    }
    Ok(())
}
