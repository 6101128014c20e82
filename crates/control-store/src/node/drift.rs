//! Drift: nodes that differ from their orders.

use crate::error::StoreError;
use crate::row::{id, named, optional_id, optional_text, optional_time, time, versioned};
use crate::statement::list::ListQuery;
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::{Drift, DriftResolution, DriftState, Tenant};
use control_wire::{BundleId, DriftId, NodeId, ProjectId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT d.id AS id, d.org_id AS org_id, d.project_id AS project_id,
               d.node_id AS node_id, d.state AS state, d.desired_bundle_id AS desired,
               d.active_bundle_id AS active, d.opened_at AS opened_at,
               d.resolved_at AS resolved_at, d.resolution AS resolution, d.version AS version
             FROM ",
            $rest
        )
    };
}

/// Open drifts after a node, whose node reports another bundle than is stored. Read from the open
/// drifts, which are few, so that a round costs no look at the fleet.
const CHANGED: &str = "SELECT d.id AS id, d.org_id AS org_id, d.project_id AS project_id,
                         d.node_id AS node_id, d.state AS state, d.desired_bundle_id AS desired,
                         h.active_bundle_id AS active, d.opened_at AS opened_at,
                         d.resolved_at AS resolved_at, d.resolution AS resolution,
                         d.version AS version
                       FROM drift d JOIN node_heartbeats h ON h.node_id = d.node_id
                       WHERE d.state = 'open' AND d.node_id > $1 AND h.diverged_at IS NOT NULL
                         AND h.is_drifting = 1
                         AND h.active_bundle_id IS DISTINCT FROM d.active_bundle_id
                       ORDER BY d.node_id LIMIT $2";

/// Filter of a project's drift events; absent fields admit all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriftFilter {
    /// Only those in this state.
    pub state: Option<DriftState>,
    /// Limits the list to one node.
    pub node: Option<NodeId>,
}

/// A node that differs from its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Identifier of the node.
    pub node: NodeId,
    /// Tenant of the node.
    pub tenant: Tenant,
    /// Bundle of the node's newest order.
    pub desired: BundleId,
    /// Bundle in the node's last report.
    pub active: Option<BundleId>,
}

impl Transaction {
    /// Up to `limit` nodes that have differed since before `since`, are held by no rollout, and
    /// have no open drift.
    pub async fn divergences(
        &mut self,
        since: Timestamp,
        limit: i64,
    ) -> Result<Vec<Divergence>, StoreError> {
        let list = "SELECT n.id AS node_id, n.org_id AS org_id, n.project_id AS project_id,
                      o.bundle_id AS desired, h.active_bundle_id AS active
                    FROM node_heartbeats h JOIN node_orders o ON o.node_id = h.node_id
                    JOIN nodes n ON n.id = h.node_id
                    WHERE h.diverged_at IS NOT NULL AND h.is_drifting = 0 AND h.diverged_at <= $1
                      AND NOT EXISTS (SELECT 1 FROM rollout_nodes r
                                      WHERE r.node_id = h.node_id AND r.held = 1)
                    ORDER BY h.diverged_at LIMIT $2";
        let rows = sql(list).bind(since).bind(limit).rows(self).await?;
        let divergence = |row| {
            Ok(Divergence {
                node: id(row, "node_id")?,
                tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
                desired: id(row, "desired")?,
                active: optional_id(row, "active")?,
            })
        };
        rows.iter().map(divergence).collect()
    }

    /// Up to `limit` open drifts of nodes that follow their orders again, each with whether a
    /// rollout made the order.
    pub async fn returned_drifts(
        &mut self,
        limit: i64,
    ) -> Result<Vec<(Versioned<Drift>, bool)>, StoreError> {
        let list = "SELECT d.id AS id, d.org_id AS org_id, d.project_id AS project_id,
                      d.node_id AS node_id, d.state AS state, d.desired_bundle_id AS desired,
                      d.active_bundle_id AS active, d.opened_at AS opened_at,
                      d.resolved_at AS resolved_at, d.resolution AS resolution,
                      d.version AS version,
                      CASE WHEN o.rollout_id IS NOT NULL AND o.made_at > d.opened_at
                        THEN 'rollout' END AS ordered_by
                    FROM node_heartbeats h JOIN drift d ON d.node_id = h.node_id
                    LEFT JOIN node_orders o ON o.node_id = h.node_id
                    WHERE h.diverged_at IS NULL AND h.is_drifting = 1 AND d.state = 'open'
                    ORDER BY h.node_id LIMIT $1";
        let rows = sql(list).bind(limit).rows(self).await?;
        let returned = |row| {
            let by_rollout = optional_text(row, "ordered_by")?.is_some();
            Ok((Drift::read(row)?, by_rollout))
        };
        rows.iter().map(returned).collect()
    }

    /// Up to `limit` open drifts of nodes after `after` that report another bundle by now than is
    /// stored, each with that bundle, in the order of nodes.
    pub async fn changed_drifts(
        &mut self,
        after: Option<NodeId>,
        limit: i64,
    ) -> Result<Vec<Versioned<Drift>>, StoreError> {
        let after = after.map(|node| node.to_string()).unwrap_or_default();
        let rows = sql(CHANGED).bind(after).bind(limit).rows(self).await?;
        rows.iter().map(Drift::read).collect()
    }

    /// Inserts a new drift.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the node has an open drift.
    pub async fn insert_drift(&mut self, drift: &Drift) -> Result<(), StoreError> {
        let Drift {
            id,
            tenant: Tenant { org, project },
            node,
            state,
            desired,
            active,
            opened_at,
            resolved_at: _,
            resolution: _,
        } = drift;
        let insert = "INSERT INTO drift (id, org_id, project_id, node_id, state,
                        desired_bundle_id, active_bundle_id, opened_at, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)";
        let insert = sql(insert).bind(*id).bind(*org).bind(*project).bind(*node);
        let insert = insert.bind(state.name()).bind(*desired).bind(*active);
        insert.bind(*opened_at).run(self).await?;
        self.mark_drifting(*node, true).await
    }

    /// Updates the drift if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_drift(&mut self, drift: &Drift, version: i64) -> Result<i64, StoreError> {
        let update = "UPDATE drift SET state = $1, resolved_at = $2, resolution = $3,
                        active_bundle_id = $4, version = version + 1 WHERE id = $5 AND version = $6";
        let update = sql(update).bind(drift.state.name()).bind(drift.resolved_at);
        let update = update.bind(drift.resolution.map(DriftResolution::name));
        let update = update.bind(drift.active);
        let version = update.bind(drift.id).write(self, version).await?;
        let is_open = drift.state == DriftState::Open;
        self.mark_drifting(drift.node, is_open).await?;
        Ok(version)
    }

    /// The drift, if it exists.
    pub async fn drift(&mut self, drift: DriftId) -> Result<Option<Versioned<Drift>>, StoreError> {
        let one = sql(select!("drift d WHERE d.id = $1"));
        one.bind(drift).one(self).await
    }

    /// The drifts of a project, optionally in one state only.
    pub async fn drifts(
        &mut self,
        project: ProjectId,
        filter: &DriftFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Drift>>, StoreError> {
        let DriftFilter { state, node } = filter;
        let list = ListQuery::new(select!("drift d WHERE d.project_id = ?"), project)
            .and("d.state = ?", state.map(DriftState::name))
            .and("d.node_id = ?", *node);
        list.page(self, "d.id", page).await
    }

    async fn mark_drifting(&mut self, node: NodeId, is_drifting: bool) -> Result<(), StoreError> {
        let update = sql("UPDATE node_heartbeats SET is_drifting = $2 WHERE node_id = $1");
        update.bind(node).bind(is_drifting).run(self).await?;
        Ok(())
    }
}

impl Record for Drift {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let resolution = optional_text(row, "resolution")?;
        let resolution = resolution.map(|name| {
            let resolution = DriftResolution::from_name(&name);
            resolution.ok_or(StoreError::Corrupt("resolution"))
        });
        let drift = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            node: id(row, "node_id")?,
            state: named(row, "state", DriftState::from_name)?,
            desired: id(row, "desired")?,
            active: optional_id(row, "active")?,
            opened_at: time(row, "opened_at")?,
            resolved_at: optional_time(row, "resolved_at")?,
            resolution: resolution.transpose()?,
        };
        versioned(drift, row)
    }
}

#[cfg(test)]
mod tests {
    use super::CHANGED;
    use crate::store::Store;
    use sqlx::{Row, query};

    #[tokio::test]
    async fn changed_drifts_are_read_from_the_open_ones() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.db");
        let url = format!("sqlite://{}?mode=rwc", file.display());
        let store = Store::open(&url).await.unwrap();
        let mut tx = store.read().await.unwrap();
        let explained = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {CHANGED}"));
        let rows = query(explained).fetch_all(tx.connection()).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        let drifts = "SEARCH d USING INDEX drift_one_open (node_id>?)";
        assert_eq!(plan[0], drifts, "{plan:#?}");
        assert_eq!(plan.len(), 2, "nothing is sorted: {plan:#?}");
    }
}
