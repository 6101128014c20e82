//! The bundles that the nodes of a project are ordered to run.

use crate::error::StoreError;
use crate::row::{number, optional_id};
use crate::statement::list::ListQuery;
use crate::store::Transaction;
use control_wire::{BundleId, ProjectId};
use std::collections::BTreeMap;

/// Nodes that wait for approval of their labels are left out, because no rollout includes them.
const ORDERS: &str = "SELECT o.bundle_id AS bundle_id, COUNT(*) AS nodes FROM nodes n
                      LEFT JOIN node_orders o ON o.node_id = n.id
                      WHERE n.requested_labels IS NULL AND n.project_id = ?";

/// A bundle that nodes are ordered to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedBundle {
    /// The bundle; `None` for nodes without an order.
    pub bundle: Option<BundleId>,
    /// Number of nodes with this order.
    pub nodes: i64,
}

impl Transaction {
    /// Bundles ordered for the nodes with all these labels, by descending number of nodes.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database fails.
    pub async fn bundles_in_force(
        &mut self,
        project: ProjectId,
        labels: &BTreeMap<String, String>,
        limit: i64,
    ) -> Result<Vec<OrderedBundle>, StoreError> {
        let all = ListQuery::new(ORDERS, project);
        let labelled = labels.iter().fold(all, |list, (name, value)| {
            list.and(
                "EXISTS (SELECT 1 FROM node_labels e WHERE e.node_id = n.id
                   AND e.name || '=' || e.value = ?)",
                Some(format!("{name}={value}")),
            )
        });
        let tail = " GROUP BY o.bundle_id ORDER BY COUNT(*) DESC, o.bundle_id LIMIT ?";
        let rows = labelled.groups(self, tail, limit).await?;
        let read = |row| {
            Ok(OrderedBundle {
                bundle: optional_id(row, "bundle_id")?,
                nodes: number(row, "nodes")?,
            })
        };
        rows.iter().map(read).collect()
    }
}
