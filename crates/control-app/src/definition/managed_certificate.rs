//! Managed certificates: obtained and renewed automatically by ACME.

pub(crate) mod issuance;
pub(crate) mod order;
mod serving_nodes;
pub(crate) mod validation;

use crate::app::{App, taken, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::definition::certificate::check_exchange;
use crate::error::Error;
use control_domain::{
    Access, Certificate, ManagedCertificate, ManagedCertificateSettings, Node, Refusal,
};
use control_store::{CertificateFilter, ListFilter, Page, PageOrder, Transaction, Versioned};
use control_wire::{ManagedCertificateId, NodeId, ProjectId};

/// Maximum number of managed certificates of one project.
const MAX_MANAGED: i64 = 100;
/// Maximum number of challenges that a node confirms in one request.
const MAX_CONFIRMED: usize = 1_000;

impl App {
    /// Creates a managed certificate; its first order is due at once.
    pub async fn create_managed_certificate(
        &self,
        call: &Call,
        project: ProjectId,
        settings: ManagedCertificateSettings,
    ) -> Result<Versioned<ManagedCertificate>, Error> {
        let mut tx = self.store.begin().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = ManagedCertificateId::new(call.now, self.random_id());
        let directories = &self.acme.directories;
        let made =
            ManagedCertificate::create(&call.actor, tenant, id, settings, directories, call.now)?;
        // Serializes writers, so that the limit is exact.
        tx.lock_audit().await?;
        if MAX_MANAGED <= tx.count_managed_certificates(project).await? {
            let limit = MAX_MANAGED.unsigned_abs();
            let (kind, owner) = ("managed certificates", "a project");
            return Err(Refusal::Quota { kind, owner, limit }.into());
        }
        require_free_name(&mut tx, project, made.name.as_str()).await?;
        let inserted = tx.insert_managed_certificate(&made).await;
        inserted.map_err(taken("name"))?;
        tx.note_change(created(&made));
        self.commit(tx, call, "managed_certificate.created", tenant, id.0)
            .await?;
        Ok(Versioned::new(made))
    }

    /// The managed certificates of a project.
    pub async fn managed_certificates(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<ManagedCertificate>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(tx.managed_certificates(project, filter, page).await?)
    }

    /// One managed certificate.
    pub async fn managed_certificate(
        &self,
        call: &Call,
        project: ProjectId,
        id: ManagedCertificateId,
    ) -> Result<Versioned<ManagedCertificate>, Error> {
        let found = find(&mut self.store.read().await?, project, id).await?;
        let tenant = found.value.tenant;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(found)
    }

    /// Changes the settings. Other hosts, another authority or another kind of key make an order
    /// due at once; until it is finished, the current certificate stays. Other labels take effect
    /// at once. If a certificate exists, changes of hosts and labels must pass the project's
    /// policy.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::Frozen`] or [`Refusal::CertificateExchange`] by the project's policy.
    pub async fn update_managed_certificate(
        &self,
        call: &Call,
        project: ProjectId,
        id: ManagedCertificateId,
        settings: ManagedCertificateSettings,
    ) -> Result<Versioned<ManagedCertificate>, Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let before = found.value.clone();
        let directories = &self.acme.directories;
        let value = found
            .value
            .update(&call.actor, settings, directories, call.now)?;
        call.expect_version(found.version)?;
        let has_certificate = value.certificate.is_some();
        let is_same = value.hosts == before.hosts && value.node_labels == before.node_labels;
        if has_certificate && !is_same {
            check_exchange(&mut tx, project, call.now).await?;
        }
        if value.name != before.name && !has_certificate {
            require_free_name(&mut tx, project, value.name.as_str()).await?;
        }
        if value.progress != before.progress {
            tx.forget_issuance(&before).await?;
            tx.write_progress(&value).await?;
        }
        rename_certificate(&mut tx, &value).await?;
        let updated = tx.update_managed_certificate(&value, found.version).await;
        let version = updated.map_err(taken("name"))?;
        tx.note_change(changed(&before.audited(), &value));
        let tenant = value.tenant;
        self.commit(tx, call, "managed_certificate.updated", tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Makes the next order due at once, for example after a fault was fixed.
    pub async fn renew_managed_certificate(
        &self,
        call: &Call,
        project: ProjectId,
        id: ManagedCertificateId,
    ) -> Result<Versioned<ManagedCertificate>, Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let value = found.value.renew(&call.actor, call.now)?;
        call.expect_version(found.version)?;
        tx.make_issuance_due(id, call.now).await?;
        let tenant = value.tenant;
        let action = "managed_certificate.renewal_requested";
        self.commit(tx, call, action, tenant, id.0).await?;
        let version = found.version;
        Ok(Versioned { value, version })
    }

    /// Deletes a managed certificate. The certificate that it obtained is kept, but no longer
    /// renewed.
    pub async fn delete_managed_certificate(
        &self,
        call: &Call,
        project: ProjectId,
        id: ManagedCertificateId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        found.value.check_delete(&call.actor)?;
        call.expect_version(found.version)?;
        tx.delete_managed_certificate(&found.value, found.version)
            .await?;
        tx.note_change(deleted(&found.value));
        let tenant = found.value.tenant;
        self.commit(tx, call, "managed_certificate.deleted", tenant, id.0)
            .await
    }

    /// Records challenges that a node is ready to answer. Unknown tokens are ignored: their
    /// validation may have ended.
    ///
    /// Not audited, because it happens for each validation on every node.
    pub async fn confirm_challenges(
        &self,
        call: &Call,
        node: NodeId,
        tokens: &[String],
    ) -> Result<(), Error> {
        let tenant = Node::own(&call.actor, Access::OwnNode, node)?;
        if MAX_CONFIRMED < tokens.len() {
            return Err(Refusal::invalid("tokens", "are more than 1000").into());
        }
        let mut tx = self.store.begin().await?;
        for token in tokens {
            tx.confirm_challenge(node, token).await?;
        }
        if let Some(reservation) = call.reservation {
            tx.commit_reply(reservation, Some(tenant)).await?;
        }
        Ok(tx.commit().await?)
    }
}

/// Copies name and labels of a managed certificate to the certificate that it obtained.
async fn rename_certificate(tx: &mut Transaction, value: &ManagedCertificate) -> Result<(), Error> {
    let Some(id) = value.certificate else {
        return Ok(());
    };
    let found = tx.certificate(id).await?.ok_or(Refusal::NotFound)?;
    if found.value.name == value.name && found.value.node_labels == value.node_labels {
        return Ok(());
    }
    let certificate = Certificate {
        name: value.name.clone(),
        node_labels: value.node_labels.clone(),
        ..found.value
    };
    let updated = tx.update_certificate(&certificate, found.version).await;
    updated.map_err(taken("name"))?;
    Ok(())
}

/// Refuses the name of an existing certificate: the first order would store a second one with that
/// name.
async fn require_free_name(
    tx: &mut Transaction,
    project: ProjectId,
    name: &str,
) -> Result<(), Error> {
    let filter = CertificateFilter {
        name: Some(name.to_owned()),
        ..CertificateFilter::default()
    };
    let page = Page {
        after: None,
        limit: 1,
        order: PageOrder::Oldest,
    };
    let found = tx.certificates(project, &filter, page).await?;
    let is_free = found.is_empty();
    is_free
        .then_some(())
        .ok_or_else(|| Refusal::Taken("name").into())
}

async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: ManagedCertificateId,
) -> Result<Versioned<ManagedCertificate>, Error> {
    let found = tx.managed_certificate(id).await?;
    let found = found.filter(|found| found.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}
