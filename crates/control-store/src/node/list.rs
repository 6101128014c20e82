//! Lists of nodes, and counts of them.

mod ordered;
mod standing;

pub use ordered::OrderedBundle;
pub use standing::StandingCounts;

use crate::error::StoreError;
use crate::node::select_nodes;
use crate::row::{id, number};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::{Page, Sort, SortColumn, Versioned};
use control_domain::{LabelCondition, LabelSelector, Node, NodeState};
use control_wire::{BundleId, ProjectId};
use jiff::Timestamp;

/// Maximum number of counted bundles: those with the most nodes.
const MAX_BUNDLES: i64 = 50;

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "n.id",
    columns: &[
        (SortColumn::Name, "n.name"),
        (SortColumn::SeenAt, "h.seen_at"),
        (SortColumn::Version, "COALESCE(h.software, '')"),
    ],
};

/// Filter of a project's nodes; absent fields admit all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// Only those with these labels.
    pub selector: LabelSelector,
    /// Only those in this state.
    pub state: Option<NodeState>,
    /// Limits the list to this name, or to a prefix that ends in `*`.
    pub name: Option<String>,
    /// Only nodes that report this bundle as active.
    pub bundle: Option<BundleId>,
    /// Only nodes with this proxy version, or with a version of this prefix if it ends in `*`.
    pub version: Option<String>,
    /// Sort order; `None` sorts by creation.
    pub sort: Option<Sort>,
}

/// Number of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCounts {
    /// Number of all nodes.
    pub total: i64,
    /// Number of nodes without a heartbeat.
    pub enrolled: i64,
    /// Number of online nodes.
    pub online: i64,
    /// Number of nodes by active bundle; at most 50 bundles.
    pub active: Vec<(BundleId, i64)>,
}

/// Each list starts from the table with the fewest matching rows.
const BY_NODE: &str = select_nodes!(
    listed "nodes n JOIN node_heartbeats h ON h.node_id = n.id
     LEFT JOIN node_orders o ON o.node_id = n.id WHERE n.project_id = ?"
);
const BY_HEARTBEAT: &str = select_nodes!(
    listed "node_heartbeats h JOIN nodes n ON n.id = h.node_id
     LEFT JOIN node_orders o ON o.node_id = h.node_id WHERE h.project_id = ?"
);
const BY_LABEL: &str = select_nodes!(
    listed "node_labels l JOIN nodes n ON n.id = l.node_id
     JOIN node_heartbeats h ON h.node_id = l.node_id
     LEFT JOIN node_orders o ON o.node_id = l.node_id WHERE l.project_id = ?"
);

/// Adds a condition on a label.
fn labelled(list: ListQuery, condition: &LabelCondition) -> ListQuery {
    match condition {
        LabelCondition::Equals(name, value) => list.and(
            "EXISTS (SELECT 1 FROM node_labels e WHERE e.node_id = n.id
               AND e.name || '=' || e.value = ?)",
            Some(format!("{name}={value}")),
        ),
        LabelCondition::Differs(name, value) => list.and(
            "NOT EXISTS (SELECT 1 FROM node_labels e WHERE e.node_id = n.id
               AND e.name || '=' || e.value = ?)",
            Some(format!("{name}={value}")),
        ),
        LabelCondition::Exists(name) => list.and(
            "EXISTS (SELECT 1 FROM node_labels e WHERE e.node_id = n.id AND e.name = ?)",
            Some(name.as_str()),
        ),
        LabelCondition::Absent(name) => list.and(
            "NOT EXISTS (SELECT 1 FROM node_labels e WHERE e.node_id = n.id AND e.name = ?)",
            Some(name.as_str()),
        ),
    }
}

impl Transaction {
    /// The nodes of a project. A node is online if its last heartbeat is later than `online_since`.
    ///
    /// Reads the table with the fewest candidates: of labels, of heartbeats for rare states, or of
    /// nodes.
    pub async fn nodes(
        &mut self,
        project: ProjectId,
        filter: &NodeFilter,
        online_since: Timestamp,
        page: Page,
    ) -> Result<Vec<Versioned<Node>>, StoreError> {
        let since = online_since.as_millisecond();
        // Heartbeat times after the first value, up to the second.
        let (after, up_to) = match filter.state {
            None => (-1, i64::MAX),
            Some(NodeState::Enrolled) => (-1, 0),
            Some(NodeState::Offline) => (0, since),
            Some(NodeState::Online) => (since, i64::MAX),
            Some(NodeState::Deleted) => return Ok(Vec::new()),
        };
        let rare = matches!(filter.state, Some(NodeState::Enrolled | NodeState::Offline));
        let conditions = filter.selector.conditions().iter();
        let first = conditions.clone().find_map(|condition| {
            let LabelCondition::Equals(name, value) = condition else {
                return None;
            };
            Some((name, value))
        });
        let (list, id) = match (first, rare) {
            (Some((name, value)), _) => {
                let list = ListQuery::new(BY_LABEL, project);
                let list = list.and("l.name = ?", Some(name.as_str()));
                (list.and("l.value = ?", Some(value.as_str())), "l.node_id")
            }
            (None, true) => (ListQuery::new(BY_HEARTBEAT, project), "h.node_id"),
            (None, false) => (ListQuery::new(BY_NODE, project), "n.id"),
        };
        let list = list
            .and("h.seen_at > ?", Some(after))
            .and("h.seen_at <= ?", Some(up_to))
            .and("h.active_bundle_id = ?", filter.bundle)
            .named("n.name", filter.name.as_deref())
            .named("h.software", filter.version.as_deref());
        let list = conditions.fold(list, labelled);
        let sort = filter.sort.as_ref();
        let columns = SortColumns { id, ..SORTED };
        list.sorted(self, &columns, sort, page).await
    }

    /// Counts the nodes of a project.
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
