//! Recall of revoked bundles: the nodes to revert, and the bundles to revert to.

use crate::error::StoreError;
use crate::row::{id, number, text};
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::{BundleId, NodeId};

/// The newest bundle, other than `$bundle`, that node `h` ran by an order and may revert to: still
/// signed, and since then neither rejected nor reverted by a rollout.
macro_rules! confirmed_fallback {
    ($bundle:literal) => {
        concat!(
            "(SELECT c.bundle_id FROM node_bundles c JOIN bundles b ON b.id = c.bundle_id
              WHERE c.node_id = h.node_id AND c.confirmed_counter IS NOT NULL
                AND b.state = 'signed' AND b.project_id = h.project_id AND b.id <> ",
            $bundle,
            " AND c.confirmed_counter >= COALESCE(c.rejected_counter, 0)
                AND NOT EXISTS (
                  SELECT 1 FROM rollout_nodes led JOIN rollouts by_led ON by_led.id = led.rollout_id
                  WHERE led.node_id = c.node_id AND by_led.bundle_id = c.bundle_id
                    AND led.back_counter > c.confirmed_counter)
              ORDER BY c.confirmed_counter DESC, c.bundle_id DESC LIMIT 1)"
        )
    };
}
pub(crate) use confirmed_fallback;

/// SQL condition: node `h` rejected the bundle `$bundle` and has not run it since.
macro_rules! rejected {
    ($bundle:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM node_bundles refused
               WHERE refused.node_id = h.node_id AND refused.bundle_id = ",
            $bundle,
            " AND refused.rejected_counter > COALESCE(refused.confirmed_counter, 0))"
        )
    };
}
pub(crate) use rejected;

/// The bundle that node `h` of order `o` reverts to: the newest that it ran, or else the bundle of
/// its previous order if that was not answered.
macro_rules! fallback {
    () => {
        concat!(
            "COALESCE(",
            confirmed_fallback!("$1"),
            ", (SELECT p.id FROM bundles p WHERE p.id = o.previous_bundle_id AND p.id <> $1
                  AND p.state = 'signed' AND NOT ",
            rejected!("p.id"),
            " AND NOT EXISTS (
                  SELECT 1 FROM rollout_nodes led JOIN rollouts by_led ON by_led.id = led.rollout_id
                  WHERE led.node_id = o.node_id AND by_led.bundle_id = p.id
                    AND led.back_counter > 0)))"
        )
    };
}

/// Nodes that must leave bundle `$1`: their newest order names it, or they run it because they
/// rejected that order. A rollout of the bundle reverts the nodes that it holds.
macro_rules! leaving {
    () => {
        "FROM node_orders o JOIN node_heartbeats h ON h.node_id = o.node_id"
    };
}
macro_rules! is_leaving {
    () => {
        "o.node_id IN (
           SELECT node_id FROM node_orders WHERE bundle_id = $1
           UNION
           SELECT s.node_id FROM node_heartbeats s JOIN node_orders so ON so.node_id = s.node_id
           WHERE s.project_id = (SELECT project_id FROM bundles WHERE id = $1)
             AND s.active_bundle_id = $1 AND s.verdict = 'rejected' AND s.verdict_order = so.counter)
         AND NOT EXISTS (
           SELECT 1 FROM rollout_nodes r JOIN rollouts a ON a.id = r.rollout_id
           WHERE r.node_id = o.node_id AND r.held = 1 AND (a.bundle_id = $1 OR o.bundle_id <> $1))"
    };
}

/// A node, and the bundle to order for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTarget {
    /// Node that is ordered.
    pub node: NodeId,
    /// A signed bundle.
    pub bundle: BundleId,
    /// SHA-256 of the bundle's archive, Base64-URL.
    pub digest: String,
}

impl Transaction {
    /// Sets whether nodes of a bundle remain to be reverted.
    pub async fn set_recalling(
        &mut self,
        bundle: BundleId,
        recalling: bool,
    ) -> Result<(), StoreError> {
        let update = sql("UPDATE bundles SET recalling = $1 WHERE id = $2");
        update.bind(recalling).bind(bundle).run(self).await?;
        Ok(())
    }

    /// Starts reverting nodes again, if the bundle is revoked.
    pub async fn recall_if_revoked(&mut self, bundle: BundleId) -> Result<(), StoreError> {
        let update = "UPDATE bundles SET recalling = 1
                      WHERE id = $1 AND state = 'revoked' AND recalling = 0";
        sql(update).bind(bundle).run(self).await?;
        Ok(())
    }

    /// A bundle with nodes that remain to be reverted ([`Transaction::set_recalling`]).
    pub async fn recalling_bundle(&mut self) -> Result<Option<BundleId>, StoreError> {
        let first = sql("SELECT id FROM bundles WHERE recalling = 1 ORDER BY id LIMIT 1");
        let row = first.row(self).await?;
        row.map(|row| id(&row, "id")).transpose()
    }

    /// Up to `limit` nodes that must leave `bundle`, each with the bundle to revert to.
    pub async fn recalls(
        &mut self,
        bundle: BundleId,
        limit: i64,
    ) -> Result<Vec<NodeTarget>, StoreError> {
        let recalls = concat!(
            "SELECT o.node_id AS node_id, t.id AS bundle_id, t.digest AS digest ",
            leaving!(),
            " JOIN bundles t ON t.id = ",
            fallback!(),
            " WHERE ",
            is_leaving!(),
            " ORDER BY o.node_id LIMIT $2"
        );
        let rows = sql(recalls).bind(bundle).bind(limit).rows(self).await?;
        let recall = |row| {
            Ok(NodeTarget {
                node: id(row, "node_id")?,
                bundle: id(row, "bundle_id")?,
                digest: text(row, "digest")?,
            })
        };
        rows.iter().map(recall).collect()
    }

    /// Number of nodes that must leave `bundle` but have no bundle to revert to.
    pub async fn nodes_without_fallback(&mut self, bundle: BundleId) -> Result<i64, StoreError> {
        let count = concat!(
            "SELECT COUNT(*) AS nodes ",
            leaving!(),
            " WHERE ",
            is_leaving!(),
            " AND ",
            fallback!(),
            " IS NULL"
        );
        let row = sql(count).bind(bundle).row(self).await?;
        number(&row.ok_or(StoreError::Corrupt("nodes"))?, "nodes")
    }

    /// Returns true if a node that runs the revoked bundle `active` rejected its newest order, and
    /// can revert to another bundle. The recall may have ended before.
    pub async fn needs_recall(
        &mut self,
        node: NodeId,
        active: BundleId,
    ) -> Result<bool, StoreError> {
        let found = concat!(
            "SELECT o.node_id AS node_id ",
            leaving!(),
            " JOIN bundles v ON v.id = $1
             WHERE o.node_id = $2 AND v.state = 'revoked' AND v.recalling = 0
               AND h.active_bundle_id = $1 AND h.verdict = 'rejected' AND h.verdict_order = o.counter
               AND NOT EXISTS (
                 SELECT 1 FROM rollout_nodes r WHERE r.node_id = o.node_id AND r.held = 1)
               AND ",
            fallback!(),
            " IS NOT NULL"
        );
        let row = sql(found).bind(active).bind(node).row(self).await?;
        Ok(row.is_some())
    }
}
