//! The newest events of each node.

use crate::error::StoreError;
use crate::row::{id, text, time};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::{Page, Sort, SortColumn};
use control_wire::{NodeEvent, NodeEventId, NodeId};

/// Maximum number of stored events per node.
const MAX_EVENTS: i64 = 1_000;

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[(SortColumn::At, "at")],
};

impl Transaction {
    /// Adds events, and deletes all but the newest 1 000 of the node.
    ///
    /// # Errors
    ///
    /// [`StoreError::Reference`] if the node does not exist.
    pub async fn insert_node_events(
        &mut self,
        node: NodeId,
        events: impl Iterator<Item = (NodeEventId, &NodeEvent)>,
    ) -> Result<(), StoreError> {
        for (id, NodeEvent { at, kind, message }) in events {
            let insert = "INSERT INTO node_events (id, node_id, at, kind, message)
                          VALUES ($1, $2, $3, $4, $5)";
            let insert = sql(insert).bind(id).bind(node).bind(*at);
            let insert = insert.bind(kind.as_str()).bind(message.as_str());
            insert.run(self).await?;
        }
        let trim = "DELETE FROM node_events WHERE node_id = $1 AND id <=
                    (SELECT id FROM node_events WHERE node_id = $1
                     ORDER BY id DESC LIMIT 1 OFFSET $2)";
        sql(trim).bind(node).bind(MAX_EVENTS).run(self).await?;
        Ok(())
    }

    /// Events of a node, in order of arrival unless `sort` is set.
    pub async fn node_events(
        &mut self,
        node: NodeId,
        sort: Option<&Sort>,
        page: Page,
    ) -> Result<Vec<(NodeEventId, NodeEvent)>, StoreError> {
        let list = "SELECT id, at, kind, message FROM node_events WHERE node_id = ?";
        let list = ListQuery::new(list, node);
        let rows = list.sorted_rows(self, &SORTED, sort, page).await?;
        let events = rows.iter().map(|row| {
            let event = NodeEvent {
                at: time(row, "at")?,
                kind: text(row, "kind")?,
                message: text(row, "message")?,
            };
            Ok((id(row, "id")?, event))
        });
        events.collect()
    }
}
