//! Operators' commands on rollouts, and the transaction that stores each step.

pub(crate) mod assignment;
pub(crate) mod metric_query;
pub(crate) mod progress;
mod route_names;
pub(crate) mod scheduler;

use crate::app::{App, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::bundle;
use crate::bundle::approval::{Approval, MAX_BASES, check_policy};
use crate::call::Call;
use crate::error::Error;
use crate::metric;
use crate::node::order::OrderTarget;
use crate::node::private_keys::require_chosen_holders;
use crate::project::second_person::check_independent;
use assignment::check_labels;
use control_domain::{
    Access, BundleState, NewRollout, Observation, Refusal, Rollout, RolloutChange, RolloutCommand,
    RolloutEvent, RolloutState, RouteNames,
};
use control_store::{
    ListFilter, NodeTarget, Page, Revert, RolloutFilter, RolloutNode, RolloutReach, StoreError,
    Transaction, Versioned,
};
use control_wire::{BundleId, NodeId, ProjectId, RolloutId};
use jiff::Timestamp;
use metrics::counter;
use progress::{RolloutProgress, StoredFigures};
use route_names::route_names;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of nodes ordered in one transaction.
const ORDER_CHUNK: i64 = 200;
/// Maximum number of nodes that a selection lists by identifier.
const MAX_LISTED_NODES: usize = 1_000;

/// Selection of nodes of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSelection {
    /// The nodes with these identifiers.
    Named(Vec<NodeId>),
    /// Nodes with all of these labels; empty selects all nodes.
    Labelled(BTreeMap<String, String>),
}

impl App {
    /// Plans a rollout; its nodes are selected now.
    pub async fn create_rollout(
        &self,
        call: &Call,
        project: ProjectId,
        mut new: NewRollout,
        selection: NodeSelection,
    ) -> Result<Versioned<Rollout>, Error> {
        let mut tx = self.store.begin().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = RolloutId::new(call.now, self.random_id());
        let bundle = new.bundle;
        if let NodeSelection::Labelled(labels) = &selection {
            new.labels.clone_from(labels);
        }
        let rollout = Rollout::create(&call.actor, tenant, id, new, call.now)?;
        if let Some(condition) = &rollout.condition {
            self.check_address("prometheus.url", &condition.url)?;
        }
        check_bundle(&mut tx, project, bundle).await?;
        tx.insert_rollout(&rollout).await?;
        let nodes = select_nodes(&mut tx, id, project, selection).await?;
        require_chosen_holders(&mut tx, id, project, bundle).await?;
        let rollout = rollout.plan(nodes)?;
        tx.number_batches(id, rollout.batch_size).await?;
        let version = tx.update_rollout(&rollout, 1).await?;
        tx.note_change(created(&rollout));
        self.commit(tx, call, "rollout.created", tenant, id.0)
            .await?;
        Ok(Versioned {
            value: rollout,
            version,
        })
    }

    /// Applies an operator's command.
    pub async fn command_rollout(
        &self,
        call: &Call,
        project: ProjectId,
        id: RolloutId,
        command: RolloutCommand,
    ) -> Result<Versioned<Rollout>, Error> {
        let start = self.judge_start(call, project, id, command).await?;
        let seen = self.observe_end(call, project, id, command).await?;
        let mut tx = self.store.begin().await?;
        // Waits for the current step, so that it does not cause the command's refusal.
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let mut rollout = found.value.clone();
        if let Some((approval, names)) = start {
            let bases = ordered_bundles(&mut tx, id).await?;
            let is_needed = approval.check_unchanged(&mut tx, &bases).await?;
            rollout = rollout.bound_by_policy(is_needed).counting_as_one(names);
        }
        let change = rollout.decide(&call.actor, command, call.now)?;
        call.expect_version(found.version)?;
        let moves = matches!(
            command,
            RolloutCommand::Start | RolloutCommand::Approve | RolloutCommand::Resume
        );
        if moves {
            check_policy(&mut tx, project, found.value.bundle, call.now).await?;
        }
        if command == RolloutCommand::Approve {
            let (first, second) = (found.value.submitted_person, call.actor.user());
            let begun = found.value.created_at;
            check_independent(&mut tx, project, first, second, begun, call.now).await?;
        }
        if change.rollout.state == RolloutState::Running {
            check_bundle(&mut tx, project, found.value.bundle).await?;
        }
        // A step may have opened the next batch since.
        let seen = seen.filter(|seen| seen.version == found.version);
        let seen = seen.as_ref().map(|seen| &seen.value);
        let stored = self.store_change(tx, call, &change, seen, found.version);
        let version = stored.await?;
        Ok(Versioned {
            value: change.rollout,
            version,
        })
    }

    /// For a start: decides whether the rollout needs approval, and finds the renamed routes for
    /// its gate. `None` for other commands.
    async fn judge_start(
        &self,
        call: &Call,
        project: ProjectId,
        id: RolloutId,
        command: RolloutCommand,
    ) -> Result<Option<(Approval, RouteNames)>, Error> {
        if command != RolloutCommand::Start {
            return Ok(None);
        }
        let mut tx = self.store.read().await?;
        let rollout = find(&mut tx, project, id).await?.value;
        call.actor.require(Access::WRITE_ROLLOUTS, rollout.tenant)?;
        let bases = ordered_bundles(&mut tx, id).await?;
        drop(tx);
        let compared = self.compare_bases(&rollout, &bases).await?;
        let bundle = rollout.bundle;
        let judged = self.judge_compared(project, bundle, &bases, &compared);
        Ok(Some((judged.await?, route_names(&bases, &compared))))
    }

    /// For a command that ends an open batch: its counts and figures, which are stored with its end.
    async fn observe_end(
        &self,
        call: &Call,
        project: ProjectId,
        id: RolloutId,
        command: RolloutCommand,
    ) -> Result<Option<Versioned<Observation>>, Error> {
        if !matches!(command, RolloutCommand::Cancel | RolloutCommand::RollBack) {
            return Ok(None);
        }
        let mut tx = self.store.read().await?;
        let found = find(&mut tx, project, id).await?;
        let (rollout, version) = (found.value, found.version);
        call.actor.require(Access::WRITE_ROLLOUTS, rollout.tenant)?;
        let batch = rollout.batch.as_ref();
        if batch.is_none_or(|batch| batch.ended_at.is_some()) {
            return Ok(None);
        }
        let since = self.online_since(call.now);
        let seen = observe_open_batch(&mut tx, &rollout, since).await;
        // An emergency command does not depend on statistics.
        let seen = seen.inspect_err(|error| {
            tracing::warn!(rollout = %id, %error, "the ended batch has no figures");
        });
        Ok(seen.ok().map(|value| Versioned { value, version }))
    }

    /// Number of nodes that the rollout ordered to run its bundle, by their last reports.
    pub async fn rollout_reach(
        &self,
        call: &Call,
        project: ProjectId,
        id: RolloutId,
    ) -> Result<RolloutReach, Error> {
        let mut tx = self.store.read().await?;
        let rollout = find(&mut tx, project, id).await?.value;
        call.actor.require(Access::READ_ROLLOUTS, rollout.tenant)?;
        let since = self.online_since(call.now);
        Ok(tx.rollout_reach(&rollout, since).await?)
    }

    /// The rollouts of a project, optionally in one state only.
    pub async fn rollouts(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &RolloutFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Rollout>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_ROLLOUTS, tenant)?;
        Ok(tx.rollouts(project, filter, page).await?)
    }

    /// Deletes a rollout that is planned or has ended.
    pub async fn delete_rollout(
        &self,
        call: &Call,
        project: ProjectId,
        id: RolloutId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        // Taken first, as by a step of the rollout, which locks these rows afterwards.
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        found.value.check_delete(&call.actor)?;
        call.expect_version(found.version)?;
        let tenant = found.value.tenant;
        tx.delete_rollout(id, found.version).await?;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "rollout.deleted", tenant, id.0).await
    }

    /// One rollout with its progress.
    pub async fn rollout(
        &self,
        call: &Call,
        project: ProjectId,
        id: RolloutId,
    ) -> Result<Versioned<RolloutProgress>, Error> {
        let mut tx = self.store.read().await?;
        let found = find(&mut tx, project, id).await?;
        let tenant = found.value.tenant;
        call.actor.require(Access::READ_ROLLOUTS, tenant)?;
        let progress = self.progress(&mut tx, found.value, call.now).await?;
        Ok(Versioned {
            value: progress,
            version: found.version,
        })
    }

    /// The bundle and the nodes of a rollout, with their progress.
    pub async fn rollout_nodes(
        &self,
        call: &Call,
        project: ProjectId,
        id: RolloutId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<(BundleId, Vec<RolloutNode>), Error> {
        let mut tx = self.store.read().await?;
        let found = find(&mut tx, project, id).await?;
        let tenant = found.value.tenant;
        call.actor.require(Access::READ_ROLLOUTS, tenant)?;
        let nodes = tx.rollout_nodes(found.value.id, filter, page).await?;
        Ok((found.value.bundle, nodes))
    }

    /// Stores a step with its effects in one transaction; returns the rollout's next version.
    ///
    /// Locks the audit log first, like every writer of rollouts, orders or bundles, so that
    /// transactions never deadlock. If two replicas take the same step, the second fails on the
    /// rollout's version.
    pub(crate) async fn store_change(
        &self,
        mut tx: Transaction,
        call: &Call,
        change: &RolloutChange,
        seen: Option<&Observation>,
        version: i64,
    ) -> Result<i64, Error> {
        let RolloutChange { rollout, event } = change;
        tx.lock_audit().await?;
        let before = tx
            .rollout(rollout.id)
            .await?
            .map(|found| found.value.audited());
        let version = tx.update_rollout(rollout, version).await?;
        // Completion deletes the samples of the last batch, and its figures are stored already.
        if let Some(seen) = seen
            && *event != RolloutEvent::Complete
        {
            keep_figures(&mut tx, rollout, seen).await?;
        }
        let ordered = self
            .apply_effects(&mut tx, rollout, *event, call.now)
            .await?;
        let (tenant, id) = (rollout.tenant, rollout.id);
        tx.note_change(changed(&before.unwrap_or_default(), rollout));
        self.commit(tx, call, &format!("rollout.{event}"), tenant, id.0)
            .await?;
        counter!(metric::ROLLOUT_EVENTS, "event" => event.name()).increment(1);
        self.announce_orders(&ordered);
        Ok(version)
    }

    /// Applies the effects of an event; returns the nodes that got new orders.
    async fn apply_effects(
        &self,
        tx: &mut Transaction,
        rollout: &Rollout,
        event: RolloutEvent,
        now: Timestamp,
    ) -> Result<Vec<NodeId>, Error> {
        let since = self.online_since(now);
        match event {
            RolloutEvent::Start | RolloutEvent::Approve => {
                let held = tx.hold_nodes(rollout.id).await;
                held.map_err(|error| {
                    if matches!(error, StoreError::Conflict) {
                        return Error::Refused(Refusal::Held);
                    }
                    error.into()
                })?;
            }
            RolloutEvent::OpenBatch => {
                tx.take_samples(rollout, since).await?;
                return self.order_batch(tx, rollout, now).await;
            }
            RolloutEvent::OrderNodes => return self.order_batch(tx, rollout, now).await,
            RolloutEvent::Resume if rollout.batch_under_way().is_some() => {
                tx.take_samples(rollout, since).await?;
                // A node that was silent for longer has reverted by itself. Within its trial it
                // runs the bundle, even if all nodes are offline after an outage of this process.
                tx.reopen_batch(rollout, now - self.trial_duration(&rollout.strategy))
                    .await?;
            }
            RolloutEvent::RevertNodes => return self.revert_nodes(tx, rollout, now).await,
            RolloutEvent::PassBatch => tx.drop_samples(rollout.id).await?,
            RolloutEvent::Complete | RolloutEvent::FinishRollback | RolloutEvent::Cancel => {
                tx.release_nodes(rollout.id).await?;
                tx.drop_samples(rollout.id).await?;
                // Until now the rollout was responsible for reverting its nodes if the bundle is
                // revoked.
                tx.recall_if_revoked(rollout.bundle).await?;
            }
            RolloutEvent::Submit
            | RolloutEvent::Resume
            | RolloutEvent::SwitchBatch
            | RolloutEvent::Pause
            | RolloutEvent::Fail
            | RolloutEvent::RollBack => {}
        }
        Ok(Vec::new())
    }

    async fn order_batch(
        &self,
        tx: &mut Transaction,
        rollout: &Rollout,
        now: Timestamp,
    ) -> Result<Vec<NodeId>, Error> {
        let number = rollout.batch.as_ref().map_or(0, |batch| batch.number);
        let found = tx.bundle(rollout.bundle).await?.ok_or(Refusal::NotFound)?;
        if found.value.state != BundleState::Signed {
            // Revoked after the decision on this step: the next step reverts the nodes.
            return Err(StoreError::Stale.into());
        }
        let nodes = tx.pending_nodes(rollout.id, number, ORDER_CHUNK).await?;
        for node in &nodes {
            tx.note_previous(rollout.id, *node).await?;
        }
        let archive = found.value.archive.ok_or(Refusal::NotFound)?;
        let target = OrderTarget {
            org: rollout.tenant.org,
            bundle: rollout.bundle,
            digest: archive.digest,
            rollout: Some(rollout.id),
        };
        for order in self.write_orders(tx, &target, &nodes, now).await? {
            let counter = i64::try_from(order.counter).unwrap_or(i64::MAX);
            tx.note_order(rollout.id, order.node, counter).await?;
        }
        Ok(nodes)
    }

    async fn revert_nodes(
        &self,
        tx: &mut Transaction,
        rollout: &Rollout,
        now: Timestamp,
    ) -> Result<Vec<NodeId>, Error> {
        let mut wanted = Vec::new();
        for Revert { node, to } in tx.reverts(rollout.id, ORDER_CHUNK).await? {
            match to {
                Some((bundle, digest)) => wanted.push(NodeTarget {
                    node,
                    bundle,
                    digest,
                }),
                None => tx.note_revert(rollout.id, node, 0).await?,
            }
        }
        let orders = self.write_each(tx, rollout.tenant.org, Some(rollout.id), wanted, now);
        let orders = orders.await?;
        for order in &orders {
            let counter = i64::try_from(order.counter).unwrap_or(i64::MAX);
            tx.note_revert(rollout.id, order.node, counter).await?;
        }
        Ok(orders.iter().map(|order| order.node).collect())
    }
}

/// A rollout of another project is indistinguishable from a missing one.
async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: RolloutId,
) -> Result<Versioned<Rollout>, Error> {
    let found = tx.rollout(id).await?;
    let found = found.filter(|found| found.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}

/// Counts the nodes of the open batch, and compares their traffic if the gate has a batch to judge.
async fn observe_open_batch(
    tx: &mut Transaction,
    rollout: &Rollout,
    since: Timestamp,
) -> Result<Observation, StoreError> {
    let batch = tx.count_batch(rollout, since, None).await?;
    let is_compared =
        rollout.strategy.gate.is_some() && batch.is_some_and(|counts| counts.ready > 0);
    let compared = if is_compared {
        Some(tx.compare_batch(rollout, since).await?)
    } else {
        None
    };
    Ok(Observation {
        batch,
        compared,
        ..Observation::default()
    })
}

/// Stores the figures of the batch that this step ended.
async fn keep_figures(
    tx: &mut Transaction,
    rollout: &Rollout,
    seen: &Observation,
) -> Result<(), Error> {
    let ended = rollout
        .batch
        .as_ref()
        .filter(|batch| batch.ended_at.is_some());
    let (Some(batch), Some(counts)) = (ended, seen.batch) else {
        return Ok(());
    };
    let both = rollout.strategy.gate.as_ref().zip(seen.compared.as_ref());
    let figures = both.map(|(gate, compared)| StoredFigures::new(gate, compared));
    let figures = figures.and_then(|figures| serde_json::to_string(&figures).ok());
    tx.keep_figures(rollout.id, batch.number, counts, figures)
        .await?;
    Ok(())
}

async fn check_bundle(tx: &mut Transaction, project: ProjectId, id: BundleId) -> Result<(), Error> {
    let found = bundle::find(tx, project, id).await;
    let found = found.map_err(|error| {
        if matches!(error, Error::Refused(Refusal::NotFound)) {
            return Refusal::invalid("bundle", "does not exist in the project").into();
        }
        error
    })?;
    if found.value.state != BundleState::Signed {
        return Err(Refusal::WrongState {
            noun: "a bundle",
            state: found.value.state.name(),
            event: "be rolled out",
        }
        .into());
    }
    Ok(())
}

async fn select_nodes(
    tx: &mut Transaction,
    id: RolloutId,
    project: ProjectId,
    selection: NodeSelection,
) -> Result<i64, Error> {
    let nodes: BTreeSet<NodeId> = match selection {
        NodeSelection::Labelled(labels) => {
            return Ok(tx.choose_nodes(id, project, &labels).await?);
        }
        NodeSelection::Named(nodes) if MAX_LISTED_NODES < nodes.len() => {
            return Err(Refusal::invalid("nodes", "are more than 1000: use labels").into());
        }
        NodeSelection::Named(nodes) => nodes.into_iter().collect(),
    };
    for node in &nodes {
        let found = tx.node(*node).await?.map(|found| found.value);
        let found = found.filter(|node| node.tenant.project == Some(project));
        let unknown = Refusal::invalid("nodes", "names a node that is not in the project");
        check_labels(&found.ok_or(unknown)?)?;
        tx.choose_node(id, *node).await?;
    }
    Ok(i64::try_from(nodes.len()).unwrap_or(i64::MAX))
}

/// The bundles that the rollout's nodes are ordered to run, and one more than the maximum if there are
/// too many to compare.
async fn ordered_bundles(
    tx: &mut Transaction,
    rollout: RolloutId,
) -> Result<BTreeSet<Option<BundleId>>, Error> {
    let limit = i64::from(MAX_BASES) + 1;
    Ok(tx
        .ordered_bundles(rollout, limit)
        .await?
        .into_iter()
        .collect())
}
