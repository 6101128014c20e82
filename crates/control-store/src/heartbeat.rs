//! Heartbeats: one update each, of a row that is found by its key.

use crate::error::StoreError;
use crate::node::{to_json, verdict_name};
use crate::row::number;
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::{HeartbeatRequest, NodeId, NodeStatus};
use jiff::Timestamp;

/// What a node served is of the bundle that it runs: it goes with a change of that one. The bundle that a
/// node says it runs is confirmed only if its orders name it: a node could say anything.
macro_rules! update {
    ($status:literal) => {
        concat!(
            "UPDATE node_heartbeats SET seen_at = $2, cpu_percent = $3,
               software = COALESCE($4, software)",
            $status,
            " WHERE node_id = $1
             RETURNING COALESCE((SELECT o.counter FROM node_orders o WHERE o.node_id = $1), 0)
               AS order_counter"
        )
    };
}

impl Transaction {
    /// Writes what a node says; gives the counter of its newest order, 0 without one. `None` if
    /// the node is gone.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn write_heartbeat(
        &mut self,
        node: NodeId,
        said: &HeartbeatRequest,
        now: Timestamp,
    ) -> Result<Option<i64>, StoreError> {
        let HeartbeatRequest {
            health,
            version,
            status,
            traffic,
        } = said;
        let text = match status {
            None => update!(", traffic = COALESCE($5, traffic)"),
            Some(_) => update!(
                ", traffic = CASE
                     WHEN $5 IS NULL AND active_bundle_id IS NOT DISTINCT FROM $8 THEN traffic
                     ELSE $5
                   END,
                 diverged_at = CASE
                     WHEN NOT EXISTS (SELECT 1 FROM node_orders o WHERE o.node_id = $1
                                      AND o.bundle_id IS DISTINCT FROM $8) THEN NULL
                     ELSE COALESCE(diverged_at, $2)
                   END,
                 confirmed_bundle_id = CASE
                     WHEN EXISTS (SELECT 1 FROM node_orders o WHERE o.node_id = $1
                                  AND $8 IN (o.bundle_id, o.previous_bundle_id)) THEN $8
                     ELSE confirmed_bundle_id
                   END,
                 desired_bundle_id = $6, staged_bundle_id = $7, active_bundle_id = $8,
                 last_good_bundle_id = $9, verdict_order = $10, verdict = $11, diagnostics = $12"
            ),
        };
        let mut update = sql(text)
            .bind(node)
            .bind(now)
            .bind(health.cpu_percent)
            .bind(version.clone())
            .bind(traffic.as_ref().map(to_json).transpose()?);
        if let Some(status) = status {
            let NodeStatus {
                desired,
                staged,
                active,
                last_good,
                order,
                verdict,
                diagnostics,
            } = status;
            let order = order.and_then(|order| i64::try_from(order).ok());
            let reasons = (!diagnostics.is_empty()).then(|| to_json(diagnostics));
            update = update
                .bind(*desired)
                .bind(*staged)
                .bind(*active)
                .bind(*last_good)
                .bind(order)
                .bind(verdict.map(verdict_name))
                .bind(reasons.transpose()?);
        }
        let row = update.row(self).await?;
        row.map(|row| number(&row, "order_counter")).transpose()
    }
}
