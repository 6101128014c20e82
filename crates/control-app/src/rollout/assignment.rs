//! Direct assignment of bundles to nodes, and recall of revoked bundles.

use crate::app::App;
use crate::audit::value::done;
use crate::bundle::approval::{Approval, check_policy};
use crate::bundle::find;
use crate::call::Call;
use crate::error::Error;
use crate::metric;
use crate::node::order::OrderTarget;
use crate::node::private_keys::require_holders;
use control_domain::{Access, Node, Refusal};
use control_store::Transaction;
use control_wire::{BundleId, NodeId, Order, ProjectId};
use jiff::Timestamp;
use metrics::counter;
use serde_json::json;
use std::collections::BTreeSet;

/// Maximum number of nodes per assignment; larger changes need a rollout.
const MAX_NODES: usize = 200;
/// Maximum number of nodes reverted in one transaction.
const RECALL_CHUNK: i64 = 200;

impl App {
    /// Orders nodes of the project to run a signed bundle.
    pub async fn assign_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
        nodes: &[NodeId],
    ) -> Result<Vec<Order>, Error> {
        let approval = self.judge_assignment(call, project, id, nodes).await?;
        let mut tx = self.store.begin().await?;
        // Locks before the bundle is read: a concurrent revocation is either visible here, or sees
        // these orders.
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let digest = found.value.assign(&call.actor)?.to_owned();
        call.expect_version(found.version)?;
        check_policy(&mut tx, project, id, call.now).await?;
        if nodes.is_empty() || MAX_NODES < nodes.len() {
            return Err(Refusal::invalid("nodes", "needs 1 to 200 nodes").into());
        }
        let tenant = found.value.tenant;
        let nodes: Vec<NodeId> = nodes
            .iter()
            .copied()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let found = check_nodes(&mut tx, project, &nodes).await?;
        require_holders(&mut tx, id, &found).await?;
        let bases = ordered_bundles(&mut tx, &nodes).await?;
        approval.refuse_if_needed(&mut tx, &bases).await?;
        let target = OrderTarget {
            org: tenant.org,
            bundle: id,
            digest,
            rollout: None,
        };
        let orders = self
            .write_orders(&mut tx, &target, &nodes, call.now)
            .await?;
        tx.note_change(done(&json!({"nodes": nodes})));
        self.commit(tx, call, "bundle.assigned", tenant, id.0)
            .await?;
        self.announce_orders(&nodes);
        Ok(orders)
    }

    /// Decides whether the assignment needs approval; checks the permission before anything else is
    /// read.
    async fn judge_assignment(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
        nodes: &[NodeId],
    ) -> Result<Approval, Error> {
        let mut tx = self.store.read().await?;
        let found = find(&mut tx, project, id).await?;
        call.actor
            .require(Access::WRITE_BUNDLES, found.value.tenant)?;
        let bases = ordered_bundles(&mut tx, nodes).await?;
        drop(tx);
        self.judge(project, id, &bases).await
    }

    /// Runs one round that moves nodes from a revoked bundle to their last good one; returns the
    /// number of nodes.
    pub async fn recall_bundles(&self, now: Timestamp) -> Result<usize, Error> {
        let waiting = self.store.read().await?.recalling_bundle().await?;
        let Some(id) = waiting else { return Ok(0) };
        let mut tx = self.store.begin().await?;
        // Of two concurrent replicas, the second finds only the rows that the first left.
        tx.lock_audit().await?;
        let bundle = tx.bundle(id).await?.ok_or(Refusal::NotFound)?.value;
        let recalls = tx.recalls(id, RECALL_CHUNK).await?;
        let mut action = "bundle.recalled";
        if i64::try_from(recalls.len()).is_ok_and(|count| count < RECALL_CHUNK) {
            tx.set_recalling(id, false).await?;
            let nodes = tx.nodes_without_fallback(id).await?;
            if nodes > 0 {
                tracing::error!(
                    bundle = %id, nodes,
                    "nodes keep a revoked bundle: they ran no other one that is signed still"
                );
                counter!(metric::NODES_WITHOUT_WAY_BACK).increment(nodes.unsigned_abs());
                action = "bundle.kept_by_nodes";
            }
        }
        let org = bundle.tenant.org;
        let orders = self.write_each(&mut tx, org, None, recalls, now).await?;
        let ordered: Vec<NodeId> = orders.iter().map(|order| order.node).collect();
        let call = Call::system(now);
        self.commit(tx, &call, action, bundle.tenant, id.0).await?;
        self.announce_orders(&ordered);
        Ok(ordered.len())
    }

    /// Starts another recall if a node runs a revoked bundle because it rejected the revert.
    pub(crate) async fn recall_again(&self, node: NodeId, active: BundleId) -> Result<(), Error> {
        if self.store.read().await?.needs_recall(node, active).await? {
            let mut tx = self.store.begin().await?;
            tx.recall_if_revoked(active).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

async fn check_nodes(
    tx: &mut Transaction,
    project: ProjectId,
    nodes: &[NodeId],
) -> Result<Vec<Node>, Error> {
    let mut found = Vec::with_capacity(nodes.len());
    for id in nodes {
        let node = tx.node(*id).await?.map(|found| found.value);
        let node = node.filter(|node| node.tenant.project == Some(project));
        let unknown = Refusal::invalid("nodes", "names a node that is not in the project");
        let node = node.ok_or(unknown)?;
        // After the comparison of the project: rollouts of other tenants stay invisible.
        if tx.is_held(*id).await? {
            return Err(Refusal::Held.into());
        }
        check_labels(&node)?;
        found.push(node);
    }
    Ok(found)
}

/// Refuses a node whose labels are not approved: it gets no orders.
pub(super) fn check_labels(node: &Node) -> Result<(), Refusal> {
    if node.requested_labels.is_none() {
        return Ok(());
    }
    Err(Refusal::WrongState {
        noun: "a node",
        state: "waiting for an approval of its labels",
        event: "be ordered to run a bundle",
    })
}

/// The bundles that the first [`MAX_NODES`] nodes are ordered to run.
async fn ordered_bundles(
    tx: &mut Transaction,
    nodes: &[NodeId],
) -> Result<BTreeSet<Option<BundleId>>, Error> {
    let mut bases = BTreeSet::new();
    for node in nodes.iter().take(MAX_NODES) {
        let order = tx.order(*node).await?;
        bases.insert(order.map(|stored| stored.order.bundle));
    }
    Ok(bases)
}
