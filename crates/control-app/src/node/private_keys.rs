//! Permission for private keys of certificates: a change by which a node could fetch one needs more
//! than the permission for nodes or bundles.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, Actor, Labels, Node, Refusal, Tenant};
use control_store::Transaction;
use control_wire::{BundleId, CertificateId, NodeId, ProjectId, RolloutId};
use jiff::SignedDuration;

/// Minimum time between two audit entries of the same refusal per replica, so that a node cannot
/// fill the audit log.
const NOTE_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// Refuses labels that newly admit the node to a certificate, unless the actor has the permission
/// for private keys.
pub(crate) async fn require_labels(
    tx: &mut Transaction,
    actor: &Actor,
    tenant: Tenant,
    before: &Labels,
    after: &Labels,
) -> Result<(), Error> {
    let project = tenant.project.ok_or(Refusal::NotFound)?;
    let needed = tx.certificate_labels(project).await?;
    let opens = |needed: &Labels| after.contain(needed) && !before.contain(needed);
    if needed.iter().any(opens) {
        actor.require(Access::DELIVER_KEYS, tenant)?;
    }
    Ok(())
}

/// Refuses a new credential for a node with certificates, unless the actor has the permission for
/// private keys: the credential can fetch them.
pub(crate) async fn require_credential(
    tx: &mut Transaction,
    actor: &Actor,
    node: &Node,
) -> Result<(), Error> {
    if tx.may_have_certificates(node.id).await? {
        actor.require(Access::DELIVER_KEYS, node.tenant)?;
    }
    Ok(())
}

/// Refuses nodes that lack labels for the bundle's certificates, and a bundle with a deleted
/// certificate.
pub(crate) async fn require_holders(
    tx: &mut Transaction,
    bundle: BundleId,
    nodes: &[Node],
) -> Result<(), Error> {
    for id in tx.listed_certificates(bundle).await? {
        let certificate = tx.certificate(id).await?.ok_or_else(deleted_certificate)?;
        let may_hold = |node: &Node| certificate.value.may_be_held_with(&node.labels);
        if !nodes.iter().all(may_hold) {
            let reason = "names a node without the labels that a certificate of the bundle needs";
            return Err(Refusal::invalid("nodes", reason).into());
        }
    }
    Ok(())
}

/// Refuses a rollout to nodes that lack labels for the bundle's certificates, and a rollout of a
/// bundle with a deleted certificate.
pub(crate) async fn require_chosen_holders(
    tx: &mut Transaction,
    rollout: RolloutId,
    project: ProjectId,
    bundle: BundleId,
) -> Result<(), Error> {
    for id in tx.listed_certificates(bundle).await? {
        let certificate = tx.certificate(id).await?.ok_or_else(deleted_certificate)?;
        for (name, value) in certificate.value.node_labels.pairs() {
            let without = tx.has_chosen_without(rollout, project, name, value);
            if without.await? {
                let reason =
                    "choose a node without the labels that a certificate of the bundle needs";
                return Err(Refusal::invalid("nodes", reason).into());
            }
        }
    }
    Ok(())
}

/// Refusal of a bundle that every node would reject.
fn deleted_certificate() -> Refusal {
    Refusal::invalid("bundle", "names a certificate that was deleted")
}

impl App {
    /// Records in the audit log that a node was refused a certificate, at most once an hour: the
    /// node may retry every second.
    pub(crate) async fn note_refused_certificate(
        &self,
        call: &Call,
        tenant: Tenant,
        node: NodeId,
        id: CertificateId,
    ) -> Result<(), Error> {
        let refused = (node, id);
        let last = self.refused_certificates.get(&refused);
        if last.is_some_and(|last| call.now < last + NOTE_INTERVAL) {
            return Ok(());
        }
        self.refused_certificates.insert(refused, call.now);
        let tx = self.store.begin().await?;
        self.commit(tx, call, "certificate.refused", tenant, id.0)
            .await
    }
}
