//! Drift of nodes from their orders: detection, listing, resolution.

use crate::app::audit_event::AuditEvent;
use crate::app::{App, tenant};
use crate::audit::value::{Audited, changed};
use crate::bundle::approval::Approval;
use crate::call::Call;
use crate::error::Error;
use crate::metric;
use crate::node::order::OrderTarget;
use crate::node::private_keys::require_holders;
use control_domain::{Access, Actor, BundleState, DRIFT_GRACE, Drift, DriftState, Refusal, Tenant};
use control_store::{Divergence, DriftFilter, Page, StoreError, Transaction, Versioned};
use control_wire::{BundleId, DriftId, NodeId, ProjectId};
use jiff::Timestamp;
use metrics::counter;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Maximum number of drifts per transaction.
const DRIFTS_PER_TRANSACTION: i64 = 100;

/// An operator's remedy for a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftRemedy {
    /// The node is ordered to run its assigned bundle again.
    Reorder,
    /// The node is ordered to run its current bundle; refused if that is not the one that the operator
    /// saw. `None` accepts any.
    Accept(Option<BundleId>),
}

impl App {
    /// The drifts of a project, optionally in one state only.
    pub async fn drifts(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &DriftFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Drift>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        Ok(tx.drifts(project, filter, page).await?)
    }

    /// One drift with its version.
    pub async fn drift(
        &self,
        call: &Call,
        project: ProjectId,
        id: DriftId,
    ) -> Result<Versioned<Drift>, Error> {
        let found = find(&mut self.store.read().await?, project, id).await?;
        call.actor.require(Access::READ_NODES, found.value.tenant)?;
        Ok(found)
    }

    /// Resolves a drift by a new order for its node.
    pub async fn resolve_drift(
        &self,
        call: &Call,
        project: ProjectId,
        id: DriftId,
        remedy: DriftRemedy,
    ) -> Result<Versioned<Drift>, Error> {
        let approval = self.judge_remedy(call, project, id, remedy).await?;
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let before = found.value.audited();
        let value = found.value.resolve(&call.actor, call.now)?;
        call.expect_version(found.version)?;
        let (node, tenant) = (value.node, value.tenant);
        if tx.is_held(node).await? {
            return Err(Refusal::Held.into());
        }
        let target = order_target(&mut tx, &call.actor, &value, remedy).await?;
        if let Some((bundle, approval)) = approval {
            // The node may have reported another bundle since the decision.
            if bundle != target.bundle {
                return Err(StoreError::Stale.into());
            }
            let bases = ordered_bundle(&mut tx, node).await?;
            approval.refuse_if_needed(&mut tx, &bases).await?;
        }
        let version = tx.update_drift(&value, found.version).await?;
        self.write_orders(&mut tx, &target, &[node], call.now)
            .await?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "drift.resolved", tenant, value.id.0)
            .await?;
        counter!(metric::DRIFT_EVENTS, "event" => "resolved").increment(1);
        self.announce_orders(&[node]);
        Ok(Versioned { value, version })
    }

    /// Decides whether accepting the node's current bundle needs approval; `None` for
    /// [`DriftRemedy::Reorder`].
    async fn judge_remedy(
        &self,
        call: &Call,
        project: ProjectId,
        id: DriftId,
        remedy: DriftRemedy,
    ) -> Result<Option<(BundleId, Approval)>, Error> {
        if remedy == DriftRemedy::Reorder {
            return Ok(None);
        }
        let mut tx = self.store.read().await?;
        let drift = find(&mut tx, project, id).await?.value;
        call.actor.require(Access::WRITE_NODES, drift.tenant)?;
        let target = order_target(&mut tx, &call.actor, &drift, remedy).await?;
        let bases = ordered_bundle(&mut tx, drift.node).await?;
        drop(tx);
        let approval = self.judge(project, target.bundle, &bases).await?;
        Ok(Some((target.bundle, approval)))
    }

    /// One round: opens drifts of nodes that differ for longer than the grace period, and resolves
    /// drifts of nodes that follow their orders again. Returns the number of changes.
    pub async fn watch_drift(&self, replica: Uuid, now: Timestamp) -> Result<usize, Error> {
        if !self.acquire_lease("drift", replica, now).await? {
            return Ok(0);
        }
        self.note_changed_drifts().await?;
        let opened = self.open_drifts(now).await?;
        let resolved = self.resolve_returned(now).await?;
        counter!(metric::DRIFT_EVENTS, "event" => "opened").increment(opened as u64);
        counter!(metric::DRIFT_EVENTS, "event" => "resolved").increment(resolved as u64);
        Ok(opened + resolved)
    }

    async fn open_drifts(&self, now: Timestamp) -> Result<usize, Error> {
        // Nodes could not report that they followed an order.
        if self.is_after_outage(now) {
            return Ok(0);
        }
        let since = now - DRIFT_GRACE;
        let mut late = self
            .store
            .read()
            .await?
            .divergences(since, DRIFTS_PER_TRANSACTION)
            .await?;
        if late.is_empty() {
            return Ok(0);
        }
        // In the order in which heartbeats lock their rows, behind the audit log.
        late.sort_by_key(|divergence| divergence.node);
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let call = Call::system(now);
        let mut changes = Changes::default();
        for divergence in late {
            let drift = self.drift_of(&divergence, now);
            tx.insert_drift(&drift).await?;
            changes.push("drift.opened", &drift);
        }
        self.commit_all(tx, &call, changes).await
    }

    /// Stores the bundles that nodes with open drifts run by now, page by page: nodes that report
    /// another one each time delay no others.
    async fn note_changed_drifts(&self) -> Result<(), Error> {
        let mut last = None;
        loop {
            let mut tx = self.store.read().await?;
            let page = tx.changed_drifts(last, DRIFTS_PER_TRANSACTION).await?;
            drop(tx);
            last = page.last().map(|found| found.value.node);
            if last.is_none() {
                return Ok(());
            }
            self.store_changed(page).await?;
        }
    }

    async fn store_changed(&self, found: Vec<Versioned<Drift>>) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        for Versioned { value, version } in found {
            match tx.update_drift(&value, version).await {
                // An operator resolved it first.
                Ok(_) | Err(StoreError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(tx.commit().await?)
    }

    async fn resolve_returned(&self, now: Timestamp) -> Result<usize, Error> {
        let returned = self
            .store
            .read()
            .await?
            .returned_drifts(DRIFTS_PER_TRANSACTION)
            .await?;
        if returned.is_empty() {
            return Ok(0);
        }
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let call = Call::system(now);
        let mut changes = Changes::default();
        for (Versioned { value, version }, by_rollout) in returned {
            let drift = value.follow(&Actor::System, by_rollout, now)?;
            match tx.update_drift(&drift, version).await {
                Ok(_) => changes.push("drift.resolved", &drift),
                // An operator resolved it first.
                Err(StoreError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.commit_all(tx, &call, changes).await
    }

    fn drift_of(&self, divergence: &Divergence, now: Timestamp) -> Drift {
        let Divergence {
            node,
            tenant,
            desired,
            active,
        } = *divergence;
        Drift {
            id: DriftId::new(now, self.random_id()),
            tenant,
            node,
            state: DriftState::Open,
            desired,
            active,
            opened_at: now,
            resolved_at: None,
            resolution: None,
        }
    }

    async fn commit_all(
        &self,
        mut tx: Transaction,
        call: &Call,
        changes: Changes,
    ) -> Result<usize, Error> {
        let Changes(mut entries) = changes;
        let count = entries.len();
        let Some((action, tenant, subject)) = entries.pop() else {
            return Ok(0);
        };
        for (action, tenant, subject) in entries {
            let event = AuditEvent {
                action,
                tenant: Some(tenant),
                subject,
            };
            self.record(&mut tx, call, event).await?;
        }
        self.commit(tx, call, action, tenant, subject).await?;
        Ok(count)
    }
}

/// Audit entries to write: action, tenant and drift.
#[derive(Debug, Default)]
struct Changes(Vec<(&'static str, Tenant, Uuid)>);

impl Changes {
    fn push(&mut self, action: &'static str, drift: &Drift) {
        self.0.push((action, drift.tenant, drift.id.0));
    }
}

/// The order that resolves a drift. Only a bundle that was ordered for the node before can be
/// accepted, because a compromised node may report any bundle.
async fn order_target(
    tx: &mut Transaction,
    actor: &Actor,
    drift: &Drift,
    remedy: DriftRemedy,
) -> Result<OrderTarget, Error> {
    let node = tx.node(drift.node).await?.ok_or(Refusal::NotFound)?.value;
    let ordered = node.order.map(|order| order.bundle);
    let report = node.report.as_ref();
    let active = report.and_then(|report| report.status.active);
    let bundle: Option<BundleId> = match remedy {
        DriftRemedy::Reorder => ordered,
        DriftRemedy::Accept(seen) => {
            if seen.is_some() && seen != active {
                let reason = "the node runs another bundle by now than its page showed";
                return Err(Refusal::invalid("remedy", reason).into());
            }
            active
        }
    };
    let unknown = Refusal::invalid("remedy", "the node says that it runs no bundle");
    let found = tx.bundle(bundle.ok_or(unknown)?).await?;
    let found = found.filter(|found| found.value.tenant == drift.tenant);
    let foreign = Refusal::invalid("remedy", "the bundle is not one of the project");
    let found = found.ok_or(foreign)?.value;
    if found.state != BundleState::Signed {
        return Err(Refusal::WrongState {
            noun: "a bundle",
            state: found.state.name(),
            event: "be ordered",
        }
        .into());
    }
    let bundle = found.id;
    let digest = found.archive.ok_or(Refusal::NotFound)?.digest;
    if remedy != DriftRemedy::Reorder {
        if !tx.was_ordered(node.id, bundle).await? {
            let reason = "the node was not ordered to run this bundle; assign it";
            return Err(Refusal::invalid("remedy", reason).into());
        }
        if !tx.listed_certificates(bundle).await?.is_empty() {
            actor.require(Access::DELIVER_KEYS, drift.tenant)?;
        }
    }
    require_holders(tx, bundle, &[node]).await?;
    Ok(OrderTarget {
        org: drift.tenant.org,
        bundle,
        digest,
        rollout: None,
    })
}

/// A drift of another project is indistinguishable from a missing one.
async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: DriftId,
) -> Result<Versioned<Drift>, Error> {
    let found = tx.drift(id).await?;
    let found = found.filter(|found| found.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}

/// The bundle that the node is ordered to run.
async fn ordered_bundle(
    tx: &mut Transaction,
    node: NodeId,
) -> Result<BTreeSet<Option<BundleId>>, Error> {
    let order = tx.order(node).await?;
    Ok(BTreeSet::from([order.map(|stored| stored.order.bundle)]))
}
