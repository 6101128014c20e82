//! Certificates: validation, sealing of private keys, delivery to nodes.

use crate::app::{App, taken, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::error::Error;
use control_auth::CheckedCertificate;
use control_bundle::digest;
use control_domain::{
    Access, ApprovalRule, Certificate, CertificateFacts, Labels, Node, Refusal, Tenant,
};
use control_store::{CertificateFilter, Page, StoreError, Transaction, Versioned};
use control_wire::{CertificateId, NodeCertificate, NodeId, ProjectId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use zeroize::Zeroizing;

/// A certificate as submitted by an operator.
pub struct NewCertificate {
    /// Its name, unique in the project.
    pub name: String,
    /// The certificate chain as PEM, leaf first.
    pub chain_pem: String,
    /// The leaf's private key as PEM.
    pub private_key_pem: Zeroizing<String>,
    /// Labels that a node needs to fetch the key. `None`: unchanged on update, none on creation.
    pub node_labels: Option<BTreeMap<String, String>>,
}

/// A certificate for a node.
#[derive(Debug)]
pub enum Delivery {
    /// The certificate with its key, which the node does not have.
    New(NodeCertificate),
    /// The node has the certificate with this tag.
    Known(String),
}

/// `ETag` of a certificate for nodes, by which they avoid fetching it again: SHA-256 of the chain in
/// PEM, Base64-URL.
#[must_use]
pub fn certificate_tag(chain_pem: &str) -> String {
    digest(chain_pem.as_bytes())
}

impl App {
    /// Creates a certificate; its private key is stored sealed, and no user can read it.
    pub async fn create_certificate(
        &self,
        call: &Call,
        project: ProjectId,
        new: NewCertificate,
    ) -> Result<Versioned<Certificate>, Error> {
        let mut tx = self.store.begin().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = CertificateId::new(call.now, self.random_id());
        let certificate = self
            .seal_certificate(&mut tx, call, tenant, id, new)
            .await?;
        let inserted = tx.insert_certificate(&certificate).await;
        inserted.map_err(taken("name"))?;
        tx.note_change(created(&certificate));
        self.commit(tx, call, "certificate.created", tenant, id.0)
            .await?;
        Ok(Versioned::new(certificate))
    }

    /// The certificates of a project.
    pub async fn certificates(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &CertificateFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Certificate>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(tx.certificates(project, filter, page).await?)
    }

    /// Names of these certificates; identifiers outside the project are left out.
    pub async fn certificate_names(
        &self,
        call: &Call,
        project: ProjectId,
        certificates: &BTreeSet<CertificateId>,
    ) -> Result<BTreeMap<CertificateId, String>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        let mut names = BTreeMap::new();
        for id in certificates {
            let found = tx.certificate(*id).await?.map(|found| found.value);
            let found = found.filter(|certificate| certificate.tenant == tenant);
            names.extend(found.map(|certificate| (*id, certificate.name.to_string())));
        }
        Ok(names)
    }

    /// One certificate, without its private key.
    pub async fn certificate(
        &self,
        call: &Call,
        project: ProjectId,
        id: CertificateId,
    ) -> Result<Versioned<Certificate>, Error> {
        let found = find(&mut self.store.read().await?, project, id).await?;
        let tenant = found.value.tenant;
        call.actor.require(Access::READ_SERVICES, tenant)?;
        Ok(found)
    }

    /// A certificate with its private key, for a node that has a bundle that names it. A
    /// compromised node must not get any other key.
    ///
    /// `known` are tags of chains that the node has, see [`certificate_tag`].
    ///
    /// Each delivery has an audit entry, and so has the first refusal per hour.
    pub async fn node_certificate(
        &self,
        call: &Call,
        node: NodeId,
        id: CertificateId,
        known: &[String],
    ) -> Result<Delivery, Error> {
        let tenant = Node::own(&call.actor, Access::OwnNode, node)?;
        let project = tenant.project.ok_or(Refusal::NotFound)?;
        let allowed = self.require_holder(project, node, id).await;
        if matches!(allowed, Err(Error::Refused(_))) {
            self.note_refused_certificate(call, tenant, node, id)
                .await?;
        }
        let allowed = allowed?;
        let tag = certificate_tag(&allowed.chain_pem);
        if known.contains(&tag) {
            return Ok(Delivery::Known(tag));
        }
        let mut tx = self.store.begin().await?;
        // Read again, apart from changes: a renewal deletes the secret.
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?.value;
        if found.node_labels != allowed.node_labels {
            return Err(StoreError::Stale.into());
        }
        let stored = tx.secret(found.secret).await?.ok_or(Refusal::NotFound)?;
        let key = self
            .sealer
            .open(&found.secret.to_string(), &stored.sealed)?;
        let key = std::str::from_utf8(&key).map_err(|_| Refusal::NotFound)?;
        self.commit(tx, call, "certificate.delivered", tenant, id.0)
            .await?;
        Ok(Delivery::New(NodeCertificate {
            id,
            chain_pem: found.chain_pem,
            private_key_pem: key.to_owned(),
        }))
    }

    /// Replaces a certificate and its key, as for a renewal; the old key is deleted. Nodes serve
    /// the new certificate at once, and its labels decide at once which nodes may fetch the key.
    /// Changed labels, and a certificate that is not a renewal, must pass the project's policy.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::Frozen`] or [`Refusal::CertificateExchange`] by the project's policy.
    pub async fn update_certificate(
        &self,
        call: &Call,
        project: ProjectId,
        id: CertificateId,
        mut new: NewCertificate,
    ) -> Result<Versioned<Certificate>, Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let kept = || found.value.node_labels.pairs().clone();
        new.node_labels.get_or_insert_with(kept);
        let sealed = self
            .seal_certificate(&mut tx, call, found.value.tenant, id, new)
            .await?;
        call.expect_version(found.version)?;
        if tx.manager_of(id).await?.is_some() {
            return Err(Refusal::WrongState {
                noun: "a certificate",
                state: "managed",
                event: "be replaced: delete its managed certificate first",
            }
            .into());
        }
        let has_same_nodes = sealed.node_labels == found.value.node_labels;
        if !has_same_nodes || !sealed.facts.renews(&found.value.facts, call.now) {
            check_exchange(&mut tx, project, call.now).await?;
        }
        let value = Certificate {
            created_at: found.value.created_at,
            ..sealed
        };
        let updated = tx.update_certificate(&value, found.version).await;
        let version = updated.map_err(taken("name"))?;
        tx.delete_secret(found.value.secret).await?;
        tx.note_change(changed(&found.value.audited(), &value));
        self.commit(tx, call, "certificate.updated", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Deletes a certificate that no service and no bundle of a node uses, and its key.
    pub async fn delete_certificate(
        &self,
        call: &Call,
        project: ProjectId,
        id: CertificateId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        let in_use = tx.certificate_in_use(id).await?;
        found.value.check_delete(&call.actor, in_use)?;
        call.expect_version(found.version)?;
        if tx.manager_of(id).await?.is_some() {
            return Err(Refusal::InUse("a managed certificate").into());
        }
        // Heartbeats and orders change the bundles of nodes under this lock.
        tx.lock_audit().await?;
        if tx.is_certificate_on_nodes(id).await? {
            return Err(Refusal::InUse("nodes or rollouts whose bundles name it").into());
        }
        tx.delete_certificate(id, found.version).await?;
        tx.delete_secret(found.value.secret).await?;
        let tenant = found.value.tenant;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "certificate.deleted", tenant, id.0)
            .await
    }

    /// The certificate, if the node has the labels that it needs, and a bundle of the node names
    /// it.
    async fn require_holder(
        &self,
        project: ProjectId,
        node: NodeId,
        id: CertificateId,
    ) -> Result<Certificate, Error> {
        self.require_named(node, id).await?;
        let mut tx = self.store.read().await?;
        let found = find(&mut tx, project, id).await?.value;
        let node = tx.node(node).await?.ok_or(Refusal::NotFound)?.value;
        if !found.may_be_held_with(&node.labels) {
            return Err(Refusal::NotFound.into());
        }
        Ok(found)
    }

    /// Checks that a bundle of the node names the certificate. Bundles with certificates that were
    /// never recorded are inspected first.
    async fn require_named(&self, node: NodeId, id: CertificateId) -> Result<(), Error> {
        let mut tx = self.store.read().await?;
        if tx.may_have_certificate(node, id).await? {
            return Ok(());
        }
        let unlisted = tx.unlisted_bundles(node).await?;
        drop(tx);
        let listed = self.list_certificates(&unlisted).await;
        if !unlisted.is_empty() {
            let mut tx = self.store.read().await?;
            if tx.may_have_certificate(node, id).await? {
                return Ok(());
            }
        }
        // An unreadable archive may name the certificate, so this is an error and not a refusal.
        listed?;
        Err(Refusal::NotFound.into())
    }

    async fn seal_certificate(
        &self,
        tx: &mut Transaction,
        call: &Call,
        tenant: Tenant,
        id: CertificateId,
        new: NewCertificate,
    ) -> Result<Certificate, Error> {
        let NewCertificate {
            name,
            chain_pem,
            private_key_pem,
            node_labels,
        } = new;
        let name = Certificate::prepare(&call.actor, tenant, &name)?;
        let checked = CheckedCertificate::check(&chain_pem, &private_key_pem, call.now)?;
        let CheckedCertificate {
            hosts,
            not_before,
            not_after,
            fingerprint,
        } = checked;
        let key = private_key_pem.as_bytes();
        let secret = self.seal(tx, Some(tenant.org), key, call.now).await?;
        Ok(Certificate {
            id,
            tenant,
            name,
            facts: CertificateFacts {
                hosts,
                not_before,
                not_after,
                fingerprint,
            },
            chain_pem,
            secret,
            node_labels: Labels::parse(node_labels.unwrap_or_default())?,
            created_at: call.now,
        })
    }
}

impl fmt::Debug for NewCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewCertificate({})", self.name)
    }
}

/// Checks that the project's policy permits a single person to replace a certificate or its node
/// labels now.
pub(crate) async fn check_exchange(
    tx: &mut Transaction,
    project: ProjectId,
    now: Timestamp,
) -> Result<(), Error> {
    let found = tx.project(project).await?.ok_or(Refusal::NotFound)?;
    let rules = found.value.policy.rules;
    // Certificates have no warnings.
    rules.check(Some(0), now)?;
    match rules.approve {
        ApprovalRule::None => Ok(()),
        ApprovalRule::Risky | ApprovalRule::All => Err(Refusal::CertificateExchange.into()),
    }
}

async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: CertificateId,
) -> Result<Versioned<Certificate>, Error> {
    let found = tx.certificate(id).await?;
    let found = found.filter(|found| found.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}
