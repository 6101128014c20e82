//! Lists of nodes, and counts of them.

use crate::error::StoreError;
use crate::node::select_nodes;
use crate::row::{id, number};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::{Node, NodeState};
use control_wire::{BundleId, ProjectId};
use jiff::Timestamp;

/// Bundles that are counted, those of most nodes first.
const MAX_BUNDLES: i64 = 50;

/// Which nodes of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// Only those with this label of this value.
    pub label: Option<(String, String)>,
    /// Only those in this state.
    pub state: Option<NodeState>,
}

/// How many nodes there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCounts {
    /// All of them.
    pub total: i64,
    /// Those that have not sent a heartbeat yet.
    pub enrolled: i64,
    /// Those that are there.
    pub online: i64,
    /// By the bundle that they run, at most 50.
    pub active: Vec<(BundleId, i64)>,
}

impl Transaction {
    /// The nodes of a project. A node is online if its last heartbeat came after `online_since`.
    ///
    /// Nodes in rare states are found by the time of their heartbeat, the rest by their order.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn nodes(
        &mut self,
        project: ProjectId,
        filter: &NodeFilter,
        online_since: Timestamp,
        page: Page,
    ) -> Result<Vec<Versioned<Node>>, StoreError> {
        let since = online_since.as_millisecond();
        // Later than the first, up to the second.
        let (after, up_to) = match filter.state {
            None => (-1, i64::MAX),
            Some(NodeState::Enrolled) => (-1, 0),
            Some(NodeState::Offline) => (0, since),
            Some(NodeState::Online) => (since, i64::MAX),
            Some(NodeState::Deleted) => return Ok(Vec::new()),
        };
        let rare = matches!(filter.state, Some(NodeState::Enrolled | NodeState::Offline));
        let statement = match (&filter.label, rare) {
            (Some(_), _) => select_nodes!(
                listed "node_labels l JOIN nodes n ON n.id = l.node_id
                 JOIN node_heartbeats h ON h.node_id = l.node_id
                 LEFT JOIN node_orders o ON o.node_id = l.node_id
                 WHERE l.project_id = $1 AND h.seen_at > $2 AND h.seen_at <= $3
                   AND l.name = $4 AND l.value = $5
                   AND l.node_id > $6 ORDER BY l.node_id LIMIT $7"
            ),
            (None, true) => select_nodes!(
                listed "node_heartbeats h JOIN nodes n ON n.id = h.node_id
                 LEFT JOIN node_orders o ON o.node_id = h.node_id
                 WHERE h.project_id = $1 AND h.seen_at > $2 AND h.seen_at <= $3
                   AND h.node_id > $4 ORDER BY h.node_id LIMIT $5"
            ),
            (None, false) => select_nodes!(
                listed "nodes n JOIN node_heartbeats h ON h.node_id = n.id
                 LEFT JOIN node_orders o ON o.node_id = n.id
                 WHERE n.project_id = $1 AND h.seen_at > $2 AND h.seen_at <= $3
                   AND n.id > $4 ORDER BY n.id LIMIT $5"
            ),
        };
        let mut list = sql(statement).bind(project).bind(after).bind(up_to);
        if let Some((name, value)) = &filter.label {
            list = list.bind(name.as_str()).bind(value.as_str());
        }
        list.page(self, page).await
    }

    /// Counts the nodes of a project.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn count_nodes(
        &mut self,
        project: ProjectId,
        online_since: Timestamp,
    ) -> Result<NodeCounts, StoreError> {
        let counts = "SELECT COUNT(*) AS total,
                        COUNT(CASE WHEN seen_at = 0 THEN 1 END) AS enrolled,
                        COUNT(CASE WHEN seen_at > $2 THEN 1 END) AS online
                      FROM node_heartbeats WHERE project_id = $1";
        let counts = sql(counts).bind(project).bind(online_since);
        let row = counts.row(self).await?;
        let row = row.ok_or(StoreError::Corrupt("total"))?;
        let bundles = "SELECT active_bundle_id AS bundle, COUNT(*) AS nodes FROM node_heartbeats
                       WHERE project_id = $1 AND active_bundle_id IS NOT NULL
                       GROUP BY active_bundle_id ORDER BY nodes DESC, bundle LIMIT $2";
        let bundles = sql(bundles).bind(project).bind(MAX_BUNDLES);
        let bundles = bundles.rows(self).await?;
        let bundles = bundles.iter();
        Ok(NodeCounts {
            total: number(&row, "total")?,
            enrolled: number(&row, "enrolled")?,
            online: number(&row, "online")?,
            active: bundles
                .map(|row| Ok((id(row, "bundle")?, number(row, "nodes")?)))
                .collect::<Result<_, StoreError>>()?,
        })
    }
}
