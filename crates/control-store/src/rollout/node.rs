//! Nodes of rollouts: selection, holds, orders.

use crate::error::StoreError;
use crate::row::{
    id, number, optional_id, optional_json, optional_number, optional_text, text, time,
};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn};
use control_domain::{BatchCounts, Rejection, Rollout};
use control_wire::{BundleId, NodeId, ProjectId, RolloutId};
use jiff::Timestamp;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

/// SQL condition: node `h` runs bundle `$3` by the newest order of its rollout `r`, and is online, with
/// its last heartbeat later than `$4`.
macro_rules! ready {
    () => {
        "h.active_bundle_id = $3 AND h.verdict = 'accepted'
         AND h.verdict_order >= r.order_counter AND r.pending = 0 AND h.seen_at > $4"
    };
}
pub(crate) use ready;

/// A node of a rollout, with the progress that it reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutNode {
    /// Identifier of the node.
    pub node: NodeId,
    /// Current name of the node.
    pub name: String,
    /// Number of its batch, from 1.
    pub batch: i64,
    /// Bundle before the rollout; `None` for a node without one.
    pub previous: Option<BundleId>,
    /// Counter of the rollout's order to the node.
    pub order: Option<i64>,
    /// Counter of the order to revert; 0 if there was no bundle to revert to.
    pub back_order: Option<i64>,
    /// Active bundle in the node's last report.
    pub active: Option<BundleId>,
    /// Counter of the order that the node's verdict answers.
    pub verdict_order: Option<i64>,
    /// True if the node accepted that order, false if it rejected it.
    pub accepted: Option<bool>,
    /// Time of the last heartbeat; 1970 before the first.
    pub seen_at: Timestamp,
}

/// Nodes of a batch without an order yet.
const PENDING: &str = "SELECT node_id FROM rollout_nodes
                       WHERE rollout_id = $1 AND batch = $2 AND pending = 1
                       ORDER BY node_id LIMIT $3";
const COUNT_BATCH: &str = concat!(
    "SELECT COUNT(*) AS nodes, COUNT(CASE WHEN r.pending = 1 THEN 1 END) AS unordered,
       COUNT(CASE WHEN h.seen_at <= $4 THEN 1 END) AS offline,
       COUNT(CASE WHEN ",
    ready!(),
    " THEN 1 END) AS ready, COUNT(CASE WHEN ",
    ready!(),
    " AND h.seen_at > $5 THEN 1 END) AS reported
     FROM rollout_nodes r JOIN node_heartbeats h ON h.node_id = r.node_id
     WHERE r.rollout_id = $1 AND r.batch = $2"
);
const REJECTION: &str = "SELECT n.name AS name, h.diagnostics AS diagnostics
                         FROM rollout_nodes r JOIN node_heartbeats h ON h.node_id = r.node_id
                         JOIN nodes n ON n.id = r.node_id
                         WHERE r.rollout_id = $1 AND r.batch = $2 AND r.pending = 0
                           AND h.verdict = 'rejected' AND h.verdict_order = r.order_counter
                         ORDER BY r.node_id LIMIT 1";
/// Queries of a step about the current batch.
#[cfg(test)]
pub(crate) const BATCH_QUERIES: [&str; 3] = [PENDING, COUNT_BATCH, REJECTION];

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "r.node_id",
    columns: &[(SortColumn::Name, "n.name"), (SortColumn::Batch, "r.batch")],
};

impl Transaction {
    /// At most `limit` different bundles that the rollout's nodes are ordered to run; `None` stands
    /// for nodes without an order.
    pub async fn ordered_bundles(
        &mut self,
        rollout: RolloutId,
        limit: i64,
    ) -> Result<Vec<Option<BundleId>>, StoreError> {
        let list = "SELECT DISTINCT o.bundle_id AS bundle_id FROM rollout_nodes n
                    LEFT JOIN node_orders o ON o.node_id = n.node_id
                    WHERE n.rollout_id = $1 LIMIT $2";
        let rows = sql(list).bind(rollout).bind(limit).rows(self).await?;
        rows.iter()
            .map(|row| optional_id(row, "bundle_id"))
            .collect()
    }

    /// Selects the nodes of a project with all these labels; no labels select all. Returns their
    /// number.
    pub async fn choose_nodes(
        &mut self,
        rollout: RolloutId,
        project: ProjectId,
        labels: &BTreeMap<String, String>,
    ) -> Result<i64, StoreError> {
        let mut labels = labels.iter();
        let chosen = match labels.next() {
            None => {
                let all = "INSERT INTO rollout_nodes (rollout_id, node_id, batch)
                           SELECT $1, id, 0 FROM nodes
                           WHERE project_id = $2 AND requested_labels IS NULL";
                sql(all).bind(rollout).bind(project)
            }
            Some((name, value)) => {
                let first = "INSERT INTO rollout_nodes (rollout_id, node_id, batch)
                             SELECT $1, l.node_id, 0 FROM node_labels l
                             JOIN nodes n ON n.id = l.node_id
                             WHERE l.project_id = $2 AND l.name = $3 AND l.value = $4
                               AND n.requested_labels IS NULL";
                let first = sql(first).bind(rollout).bind(project);
                first.bind(name.as_str()).bind(value.as_str())
            }
        };
        let mut count = chosen.run(self).await?;
        for (name, value) in labels {
            let others = "DELETE FROM rollout_nodes WHERE rollout_id = $1 AND node_id NOT IN
                          (SELECT node_id FROM node_labels
                           WHERE project_id = $2 AND name = $3 AND value = $4)";
            let others = sql(others).bind(rollout).bind(project);
            let others = others.bind(name.as_str()).bind(value.as_str());
            count = count.saturating_sub(others.run(self).await?);
        }
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Returns true if a selected node lacks the label.
    pub async fn has_chosen_without(
        &mut self,
        rollout: RolloutId,
        project: ProjectId,
        name: &str,
        value: &str,
    ) -> Result<bool, StoreError> {
        let found = "SELECT node_id FROM rollout_nodes WHERE rollout_id = $1 AND node_id NOT IN
                     (SELECT node_id FROM node_labels
                      WHERE project_id = $2 AND name = $3 AND value = $4) LIMIT 1";
        let found = sql(found).bind(rollout).bind(project);
        let found = found.bind(name).bind(value);
        Ok(found.row(self).await?.is_some())
    }

    /// Selects a node by its identifier.
    pub async fn choose_node(
        &mut self,
        rollout: RolloutId,
        node: NodeId,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO rollout_nodes (rollout_id, node_id, batch) VALUES ($1, $2, 0)";
        sql(insert).bind(rollout).bind(node).run(self).await?;
        Ok(())
    }

    /// Divides the selected nodes into batches, numbered from 1, in the order of node identifiers.
    pub async fn number_batches(
        &mut self,
        rollout: RolloutId,
        batch_size: i64,
    ) -> Result<(), StoreError> {
        let update = "UPDATE rollout_nodes SET batch = numbered.batch
                      FROM (SELECT node_id AS numbered_id,
                              (ROW_NUMBER() OVER (ORDER BY node_id) - 1) / $2 + 1 AS batch
                            FROM rollout_nodes WHERE rollout_id = $1) AS numbered
                      WHERE rollout_id = $1 AND node_id = numbered.numbered_id";
        sql(update).bind(rollout).bind(batch_size).run(self).await?;
        Ok(())
    }

    /// Holds the nodes of a rollout, so that no other rollout can order them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if another rollout holds one of the nodes.
    pub async fn hold_nodes(&mut self, rollout: RolloutId) -> Result<(), StoreError> {
        self.set_held(rollout, true).await
    }

    /// Releases the nodes of a rollout.
    pub async fn release_nodes(&mut self, rollout: RolloutId) -> Result<(), StoreError> {
        self.set_held(rollout, false).await
    }

    async fn set_held(&mut self, rollout: RolloutId, held: bool) -> Result<(), StoreError> {
        let update = "UPDATE rollout_nodes SET held = $2 WHERE rollout_id = $1 AND held <> $2";
        sql(update).bind(rollout).bind(held).run(self).await?;
        Ok(())
    }

    /// Returns true if a rollout holds the node.
    pub async fn is_held(&mut self, node: NodeId) -> Result<bool, StoreError> {
        let held = sql("SELECT node_id FROM rollout_nodes WHERE node_id = $1 AND held = 1");
        Ok(held.bind(node).row(self).await?.is_some())
    }

    /// Marks nodes of the batch that do not run the bundle as pending, so that a resumed rollout
    /// orders them again. A node with the bundle keeps its order if its last heartbeat is later than `since`.
    pub async fn reopen_batch(
        &mut self,
        rollout: &Rollout,
        since: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(batch) = &rollout.batch else {
            return Ok(());
        };
        let update = concat!(
            "UPDATE rollout_nodes SET pending = 1
             WHERE rollout_id = $1 AND batch = $2 AND node_id NOT IN (
               SELECT r.node_id FROM rollout_nodes r
               JOIN node_heartbeats h ON h.node_id = r.node_id
               WHERE r.rollout_id = $1 AND r.batch = $2 AND ",
            ready!(),
            ")"
        );
        let update = sql(update).bind(rollout.id).bind(batch.number);
        update.bind(rollout.bundle).bind(since).run(self).await?;
        Ok(())
    }

    /// Up to `limit` nodes of a batch without an order yet.
    pub async fn pending_nodes(
        &mut self,
        rollout: RolloutId,
        batch: i64,
        limit: i64,
    ) -> Result<Vec<NodeId>, StoreError> {
        let list = sql(PENDING).bind(rollout).bind(batch).bind(limit);
        let rows = list.rows(self).await?;
        rows.iter().map(|row| id(row, "node_id")).collect()
    }

    /// Stores the node's previous bundle at its first order: the last one that it confirmed, if
    /// still signed, or else the ordered one. Call it before the order is written.
    pub async fn note_previous(
        &mut self,
        rollout: RolloutId,
        node: NodeId,
    ) -> Result<(), StoreError> {
        let previous = "UPDATE rollout_nodes SET previous_bundle_id = (
                          SELECT COALESCE(b.id, o.bundle_id) FROM node_heartbeats h
                          LEFT JOIN bundles b ON b.id = h.confirmed_bundle_id
                            AND b.project_id = h.project_id AND b.state = 'signed'
                          LEFT JOIN node_orders o ON o.node_id = h.node_id
                          WHERE h.node_id = $2)
                        WHERE rollout_id = $1 AND node_id = $2 AND order_counter IS NULL";
        sql(previous).bind(rollout).bind(node).run(self).await?;
        Ok(())
    }

    /// Stores the counter of the node's order.
    pub async fn note_order(
        &mut self,
        rollout: RolloutId,
        node: NodeId,
        counter: i64,
    ) -> Result<(), StoreError> {
        let update = "UPDATE rollout_nodes SET order_counter = $3, pending = 0
                      WHERE rollout_id = $1 AND node_id = $2";
        let update = sql(update).bind(rollout).bind(node);
        update.bind(counter).run(self).await?;
        Ok(())
    }

    /// Counts the progress of the current batch's nodes. A node is online if its last heartbeat is
    /// later than `online_since`.
    pub async fn count_batch(
        &mut self,
        rollout: &Rollout,
        online_since: Timestamp,
        reports_since: Option<Timestamp>,
    ) -> Result<Option<BatchCounts>, StoreError> {
        let Some(batch) = &rollout.batch else {
            return Ok(None);
        };
        let counts = sql(COUNT_BATCH).bind(rollout.id).bind(batch.number);
        let counts = counts.bind(rollout.bundle).bind(online_since);
        let counts = counts.bind(reports_since.unwrap_or(online_since));
        let row = counts
            .row(self)
            .await?
            .ok_or(StoreError::Corrupt("nodes"))?;
        Ok(Some(BatchCounts {
            nodes: number(&row, "nodes")?,
            unordered: number(&row, "unordered")?,
            ready: number(&row, "ready")?,
            reported: number(&row, "reported")?,
            offline: number(&row, "offline")?,
        }))
    }

    /// A node of the current batch that rejected the rollout's order.
    pub async fn rejection(&mut self, rollout: &Rollout) -> Result<Option<Rejection>, StoreError> {
        let Some(batch) = &rollout.batch else {
            return Ok(None);
        };
        let first = sql(REJECTION).bind(rollout.id).bind(batch.number);
        let Some(row) = first.row(self).await? else {
            return Ok(None);
        };
        let diagnostics: Option<Vec<String>> = optional_json(&row, "diagnostics")?;
        Ok(Some(Rejection {
            node: text(&row, "name")?,
            diagnostic: diagnostics.unwrap_or_default().into_iter().next(),
        }))
    }

    /// The nodes of a rollout, in the order of identifiers, which is also the order of batches.
    pub async fn rollout_nodes(
        &mut self,
        rollout: RolloutId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<RolloutNode>, StoreError> {
        let list = "SELECT r.node_id AS node_id, n.name AS name, r.batch AS batch,
                      r.previous_bundle_id AS previous, r.order_counter AS order_counter,
                      r.back_counter AS back_counter, h.active_bundle_id AS active,
                      h.verdict_order AS verdict_order, h.verdict AS verdict,
                      h.seen_at AS seen_at
                    FROM rollout_nodes r JOIN nodes n ON n.id = r.node_id
                    JOIN node_heartbeats h ON h.node_id = r.node_id
                    WHERE r.rollout_id = ?";
        let ListFilter { name, sort } = filter;
        let list = ListQuery::new(list, rollout).named("n.name", name.as_deref());
        let rows = list.sorted_rows(self, &SORTED, sort.as_ref(), page).await?;
        rows.iter().map(rollout_node).collect()
    }
}

fn rollout_node(row: &AnyRow) -> Result<RolloutNode, StoreError> {
    let verdict = optional_text(row, "verdict")?;
    Ok(RolloutNode {
        node: id(row, "node_id")?,
        name: text(row, "name")?,
        batch: number(row, "batch")?,
        previous: optional_id(row, "previous")?,
        order: optional_number(row, "order_counter")?,
        back_order: optional_number(row, "back_counter")?,
        active: optional_id(row, "active")?,
        verdict_order: optional_number(row, "verdict_order")?,
        accepted: verdict.map(|verdict| verdict == "accepted"),
        seen_at: time(row, "seen_at")?,
    })
}
