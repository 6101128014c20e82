//! Heartbeats: one update each, of a row that is found by its key.

use crate::error::StoreError;
use crate::node::{to_json, verdict_name};
use crate::row::traffic::packed;
use crate::row::{number, optional_id, optional_number};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::DUPLICATE_MEMORY;
use control_wire::{BundleId, HeartbeatRequest, NodeId, NodeStatus, Verdict};
use jiff::Timestamp;
use sqlx::any::AnyRow;

/// Bundles that a node confirmed and that it may be led back to.
const MAX_CONFIRMED: i64 = 100;

/// Whether the process that reports came back twice after another one had taken over. Once, it may be a last
/// heartbeat that was late.
macro_rules! is_duplicate {
    () => {
        "COALESCE($6 <> instance AND earlier_instances LIKE '%' || $6 || '%' || $6 || '%', false)"
    };
}

/// Counters belong to the reported bundle, and are dropped when it changes. A reported bundle is confirmed
/// only if an order names it: a node could report anything.
macro_rules! update {
    ($status:literal) => {
        concat!(
            "UPDATE node_heartbeats SET seen_at = $2, cpu_percent = $3,
               software = COALESCE($4, software),
               instance = COALESCE($6, instance),
               earlier_instances = CASE
                 WHEN $6 <> instance
                 THEN SUBSTR(instance || ' ' || COALESCE(earlier_instances, ''), 1, 296)
                 ELSE earlier_instances
               END,
               duplicated_at = CASE WHEN ",
            is_duplicate!(),
            " THEN $2 ELSE duplicated_at END,
               duplicated_since = CASE
                 WHEN NOT ",
            is_duplicate!(),
            " OR duplicated_at > $7 THEN duplicated_since
                 ELSE $2
               END",
            $status,
            " WHERE node_id = $1
             RETURNING COALESCE((SELECT o.counter FROM node_orders o WHERE o.node_id = $1), 0)
               AS order_counter, duplicated_since, confirmed_bundle_id,
               (SELECT o.bundle_id FROM node_orders o WHERE o.node_id = $1) AS ordered_bundle_id,
               (SELECT c.confirmed_counter FROM node_bundles c WHERE c.node_id = $1
                AND c.bundle_id = node_heartbeats.confirmed_bundle_id) AS confirmed_counter,
               (SELECT c.rejected_counter FROM node_bundles c
                JOIN node_orders o ON o.node_id = c.node_id AND o.bundle_id = c.bundle_id
                WHERE c.node_id = $1) AS rejected_counter"
        )
    };
}

/// Findings of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenHeartbeat {
    /// The counter of the node's newest order; 0 without one.
    pub order: i64,
    /// Whether a second process with the node's identity was noticed just now, and no event `node.duplicated`
    /// tells of it yet.
    pub has_found_duplicate: bool,
}

impl Transaction {
    /// Writes what a node says; `None` if the node is gone.
    pub async fn write_heartbeat(
        &mut self,
        node: NodeId,
        said: &HeartbeatRequest,
        now: Timestamp,
    ) -> Result<Option<WrittenHeartbeat>, StoreError> {
        let HeartbeatRequest {
            health,
            version,
            status,
            traffic,
            instance,
        } = said;
        let text = match status {
            None => update!(", traffic = COALESCE($5, traffic)"),
            Some(_) => update!(
                ", traffic = CASE
                     WHEN $5 IS NULL AND active_bundle_id IS NOT DISTINCT FROM $10 THEN traffic
                     ELSE $5
                   END,
                 diverged_at = CASE
                     WHEN NOT EXISTS (SELECT 1 FROM node_orders o WHERE o.node_id = $1
                                      AND o.bundle_id IS DISTINCT FROM $10) THEN NULL
                     ELSE COALESCE(diverged_at, $2)
                   END,
                 confirmed_bundle_id = CASE
                     WHEN EXISTS (SELECT 1 FROM node_orders o WHERE o.node_id = $1
                                  AND $10 IN (o.bundle_id, o.previous_bundle_id)) THEN $10
                     ELSE confirmed_bundle_id
                   END,
                 desired_bundle_id = $8, staged_bundle_id = $9, active_bundle_id = $10,
                 last_good_bundle_id = $11, verdict_order = $12, verdict = $13, diagnostics = $14"
            ),
        };
        let mut update = sql(text)
            .bind(node)
            .bind(now)
            .bind(health.cpu_percent)
            .bind(version.clone())
            .bind(traffic.as_ref().map(packed).transpose()?)
            .bind(*instance)
            .bind(now - DUPLICATE_MEMORY);
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
        let Some(row) = update.row(self).await? else {
            return Ok(None);
        };
        if let Some(status) = status {
            self.note_bundles(node, status, &row).await?;
        }
        let is_new = optional_number(&row, "duplicated_since")? == Some(now.as_millisecond());
        Ok(Some(WrittenHeartbeat {
            order: number(&row, "order_counter")?,
            has_found_duplicate: is_new && !self.has_event_at(node, now).await?,
        }))
    }

    /// Keeps which bundles the node ran by its orders and which it rejected, where that is new. A bundle that it runs
    /// by the order before was not confirmed by the newest one.
    async fn note_bundles(
        &mut self,
        node: NodeId,
        status: &NodeStatus,
        row: &AnyRow,
    ) -> Result<(), StoreError> {
        let counter = number(row, "order_counter")?;
        let ordered: Option<BundleId> = optional_id(row, "ordered_bundle_id")?;
        let confirmed: Option<BundleId> = optional_id(row, "confirmed_bundle_id")?;
        if let Some(bundle) = confirmed.filter(|confirmed| status.active == Some(*confirmed)) {
            let own = counter - i64::from(ordered != confirmed);
            let known = optional_number(row, "confirmed_counter")?;
            if known.is_none_or(|known| known < own && ordered == confirmed) {
                let upsert = "INSERT INTO node_bundles (node_id, bundle_id, confirmed_counter)
                              VALUES ($1, $2, $3)
                              ON CONFLICT (node_id, bundle_id)
                              DO UPDATE SET confirmed_counter = excluded.confirmed_counter";
                let upsert = sql(upsert).bind(node).bind(bundle);
                upsert.bind(own).run(self).await?;
                self.forget_oldest_bundles(node).await?;
            }
        }
        let answered = status.order.and_then(|order| i64::try_from(order).ok());
        let is_rejected = status.verdict == Some(Verdict::Rejected) && answered == Some(counter);
        if let Some(bundle) = ordered.filter(|_| is_rejected) {
            let known = optional_number(row, "rejected_counter")?;
            if known.is_none_or(|known| known < counter) {
                let upsert = "INSERT INTO node_bundles (node_id, bundle_id, rejected_counter)
                              VALUES ($1, $2, $3)
                              ON CONFLICT (node_id, bundle_id)
                              DO UPDATE SET rejected_counter = excluded.rejected_counter";
                let upsert = sql(upsert).bind(node).bind(bundle);
                upsert.bind(counter).run(self).await?;
            }
        }
        Ok(())
    }

    /// Keeps the newest bundles of a node alone.
    async fn forget_oldest_bundles(&mut self, node: NodeId) -> Result<(), StoreError> {
        let delete = "DELETE FROM node_bundles WHERE node_id = $1
                        AND COALESCE(confirmed_counter, rejected_counter) < (
                          SELECT confirmed_counter FROM node_bundles
                          WHERE node_id = $1 AND confirmed_counter IS NOT NULL
                          ORDER BY confirmed_counter DESC LIMIT 1 OFFSET $2)";
        let delete = sql(delete).bind(node).bind(MAX_CONFIRMED - 1);
        delete.run(self).await?;
        Ok(())
    }

    /// Whether a heartbeat of the same millisecond has noticed the second process: its event is written already.
    async fn has_event_at(&mut self, node: NodeId, now: Timestamp) -> Result<bool, StoreError> {
        let event = "SELECT id FROM node_events
                     WHERE node_id = $1 AND at = $2 AND kind = 'node.duplicated' LIMIT 1";
        let event = sql(event).bind(node).bind(now);
        Ok(event.row(self).await?.is_some())
    }
}
