//! The newest events of each node.

use crate::error::StoreError;
use crate::row::{id, text, time};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::Page;
use control_wire::{NodeEvent, NodeEventId, NodeId};

/// Events that are kept of a node.
const KEPT: i64 = 1_000;

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
        sql(trim).bind(node).bind(KEPT).run(self).await?;
        Ok(())
    }

    /// The events of a node, in order of arrival.
    pub async fn node_events(
        &mut self,
        node: NodeId,
        page: Page,
    ) -> Result<Vec<(NodeEventId, NodeEvent)>, StoreError> {
        let list = "SELECT id, at, kind, message FROM node_events
                    WHERE node_id = $1 AND id > $2 ORDER BY id LIMIT $3";
        let list = sql(list).bind(node).bind(page.after.unwrap_or_default());
        let rows = list.bind(page.limit).rows(self).await?;
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
