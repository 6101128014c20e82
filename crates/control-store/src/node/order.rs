//! Orders: the bundle assigned to each node.

use crate::error::StoreError;
use crate::row::{id, named, number, optional_number, text, written_rows};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::SigningKeyState;
use control_wire::{BundleId, Confirmation, NodeId, Order, RolloutId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

/// Maximum number of a node's orders that a restored database is assumed to lack.
const MAX_LOST_ORDERS: i64 = 1_000_000;

/// An order as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOrder {
    /// The signed order as the node receives it.
    pub order: Order,
    /// State of the key that signed the order.
    pub key_state: SigningKeyState,
    /// Soak time and deadline of the rollout that tries the order; `None` once it is confirmed.
    pub trial_secs: Option<u64>,
}

/// SQL expression for the confirmation of order `o`: required only for forward orders of a rollout.
macro_rules! confirmation {
    () => {
        "COALESCE((SELECT CASE
           WHEN b.state = 'passed' OR a.state IN ('completed', 'cancelled') THEN 'confirmed'
           WHEN a.state = 'paused' THEN 'held'
           ELSE 'pending'
         END
         FROM rollout_nodes n JOIN rollouts a ON a.id = n.rollout_id
         LEFT JOIN rollout_batches b ON b.rollout_id = n.rollout_id AND b.number = n.batch
         WHERE n.rollout_id = o.rollout_id AND n.node_id = o.node_id
           AND n.order_counter = o.counter), 'confirmed')"
    };
}
pub(crate) use confirmation;

/// The column `confirmation`.
pub(crate) fn read_confirmation(row: &AnyRow) -> Result<Confirmation, StoreError> {
    named(row, "confirmation", |name| match name {
        "confirmed" => Some(Confirmation::Confirmed),
        "held" => Some(Confirmation::Held),
        "pending" => Some(Confirmation::Pending),
        _ => None,
    })
}

impl Transaction {
    /// The newest order to a node.
    pub async fn order(&mut self, node: NodeId) -> Result<Option<StoredOrder>, StoreError> {
        let newest = concat!(
            "SELECT o.node_id AS node_id, o.counter AS counter, o.bundle_id AS bundle_id,
               o.digest AS digest, o.kid AS kid, o.signature AS signature, k.state AS state,
               t.deadline_secs + t.soak_secs + t.soak_secs / 2 AS trial_secs, ",
            confirmation!(),
            " AS confirmation
             FROM node_orders o JOIN signing_keys k ON k.id = o.kid
             LEFT JOIN rollouts t ON t.id = o.rollout_id
             WHERE o.node_id = $1"
        );
        let row = sql(newest).bind(node).row(self).await?;
        let Some(row) = row else { return Ok(None) };
        let counter = u64::try_from(number(&row, "counter")?);
        let order = Order {
            node: id(&row, "node_id")?,
            bundle: id(&row, "bundle_id")?,
            digest: text(&row, "digest")?,
            counter: counter.map_err(|_| StoreError::Corrupt("counter"))?,
            kid: id(&row, "kid")?,
            signature: text(&row, "signature")?,
        };
        let key_state = named(&row, "state", SigningKeyState::from_name)?;
        let trial_secs = match read_confirmation(&row)? {
            Confirmation::Confirmed => None,
            Confirmation::Held | Confirmation::Pending => optional_number(&row, "trial_secs")?,
        };
        Ok(Some(StoredOrder {
            order,
            key_state,
            trial_secs: trial_secs.and_then(|secs| u64::try_from(secs).ok()),
        }))
    }

    /// Returns true if the node may need the bundle: its newest order or the one before names it,
    /// or a rollout that holds the node would revert to it.
    pub async fn may_need_bundle(
        &mut self,
        node: NodeId,
        bundle: BundleId,
    ) -> Result<bool, StoreError> {
        let found = "SELECT node_id FROM node_orders
                     WHERE node_id = $1 AND (bundle_id = $2 OR previous_bundle_id = $2)
                     UNION ALL
                     SELECT node_id FROM rollout_nodes
                     WHERE node_id = $1 AND held = 1 AND previous_bundle_id = $2";
        let row = sql(found).bind(node).bind(bundle).row(self).await?;
        Ok(row.is_some())
    }

    /// The next order's counter must exceed this value: the counter of the node's newest order, or
    /// a higher one in the node's report, after the database was restored from a backup; 0 without
    /// either. A reported counter may exceed the stored one by at most a million, so that a node
    /// cannot exhaust the counters.
    pub async fn order_counter(&mut self, node: NodeId) -> Result<u64, StoreError> {
        let counter = "SELECT CASE
                         WHEN h.verdict_order BETWEEN COALESCE(o.counter, 0)
                           AND COALESCE(o.counter, 0) + $2 THEN h.verdict_order
                         ELSE COALESCE(o.counter, 0)
                       END AS counter
                       FROM node_heartbeats h LEFT JOIN node_orders o ON o.node_id = h.node_id
                       WHERE h.node_id = $1";
        let counter = sql(counter).bind(node).bind(MAX_LOST_ORDERS);
        let row = counter.row(self).await?;
        let counter = row.map_or(Ok(0), |row| number(&row, "counter"))?;
        u64::try_from(counter).map_err(|_| StoreError::Corrupt("counter"))
    }

    /// Writes an order; its counter must exceed the previous one's. `seq` is the audit entry of the
    /// change.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if there is a newer order; [`StoreError::Reference`] if the node or
    /// the bundle does not exist.
    pub async fn write_order(
        &mut self,
        order: &Order,
        seq: i64,
        rollout: Option<RolloutId>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Order {
            node,
            bundle,
            digest,
            counter,
            kid,
            signature,
        } = order;
        let upsert = "INSERT INTO node_orders (node_id, counter, bundle_id, digest, kid, signature,
                        made_at, seq, rollout_id)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                      ON CONFLICT (node_id) DO UPDATE SET
                        counter = excluded.counter, bundle_id = excluded.bundle_id,
                        digest = excluded.digest, kid = excluded.kid,
                        signature = excluded.signature, made_at = excluded.made_at,
                        seq = excluded.seq, rollout_id = excluded.rollout_id,
                        previous_bundle_id = CASE
                          WHEN node_orders.bundle_id = excluded.bundle_id
                          THEN node_orders.previous_bundle_id
                          ELSE node_orders.bundle_id
                        END
                      WHERE node_orders.counter < excluded.counter";
        let counter = i64::try_from(*counter).map_err(|_| StoreError::Corrupt("counter"))?;
        let done = sql(upsert)
            .bind(*node)
            .bind(counter)
            .bind(*bundle)
            .bind(digest.as_str())
            .bind(*kid)
            .bind(signature.as_str())
            .bind(now)
            .bind(seq)
            .bind(rollout)
            .run(self)
            .await?;
        written_rows(done)?;
        let diverges = "UPDATE node_heartbeats SET diverged_at = CASE
                          WHEN active_bundle_id = $2 THEN NULL
                          ELSE CAST($3 AS BIGINT)
                        END
                        WHERE node_id = $1";
        let diverges = sql(diverges).bind(*node).bind(*bundle).bind(now);
        diverges.run(self).await?;
        Ok(())
    }

    /// Replaces the signature of an order, unless there is a newer order.
    pub async fn resign_order(&mut self, order: &Order) -> Result<(), StoreError> {
        let update = "UPDATE node_orders SET kid = $1, signature = $2
                      WHERE node_id = $3 AND counter = $4";
        let counter = i64::try_from(order.counter);
        sql(update)
            .bind(order.kid)
            .bind(order.signature.as_str())
            .bind(order.node)
            .bind(counter.map_err(|_| StoreError::Corrupt("counter"))?)
            .run(self)
            .await?;
        Ok(())
    }

    /// Up to `limit` nodes with orders or challenges of audit entries after `seq`.
    pub async fn nodes_ordered_after(
        &mut self,
        seq: i64,
        limit: i64,
    ) -> Result<Vec<NodeId>, StoreError> {
        let newer = "SELECT node_id, seq FROM node_orders WHERE seq > $1
                     UNION ALL
                     SELECT node_id, seq FROM acme_challenges WHERE seq > $2
                     ORDER BY seq LIMIT $3";
        let newer = sql(newer).bind(seq).bind(seq).bind(limit);
        let rows = newer.rows(self).await?;
        rows.iter().map(|row| id(row, "node_id")).collect()
    }

    /// Locks the log until this transaction ends; returns the number of the next audit entry. Rows
    /// with that number become visible in the order of the numbers.
    pub async fn lock_audit(&mut self) -> Result<i64, StoreError> {
        let lock = sql("UPDATE audit_head SET seq = seq WHERE id = 1 RETURNING seq");
        let row = lock.row(self).await?.ok_or(StoreError::Corrupt("seq"))?;
        Ok(number(&row, "seq")? + 1)
    }
}
