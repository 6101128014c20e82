//! Revoked bundles, and the reverts of the nodes that were ordered to run them.

use crate::error::StoreError;
use crate::row::{id, number, text};
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::{BundleId, NodeId};

/// The newest bundle that the node `h` ran by an order and may revert to, other than `$bundle`: still signed, not
/// rejected since, and not reverted by a rollout since.
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

/// True if the node `h` has rejected the bundle `$bundle`, and not run it since.
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

/// The bundle to which the node `h` of the order `o` reverts: the newest that it ran, else the bundle of its previous
/// order if that was not answered.
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

/// Nodes that have to leave the bundle `$1`: their newest order names it, or they rejected that order and run the
/// bundle. Nodes that a rollout of it holds go back with the rollout.
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

/// A node and the bundle that it is to be ordered to run, such as the one before a revoked one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTarget {
    /// Node that is ordered.
    pub node: NodeId,
    /// The bundle, which is signed.
    pub bundle: BundleId,
    /// The digest of that bundle.
    pub digest: String,
}

impl Transaction {
    /// Sets whether nodes remain to be reverted from a bundle.
    pub async fn set_recalling(
        &mut self,
        bundle: BundleId,
        recalling: bool,
    ) -> Result<(), StoreError> {
        let update = sql("UPDATE bundles SET recalling = $1 WHERE id = $2");
        update.bind(recalling).bind(bundle).run(self).await?;
        Ok(())
    }

    /// Restarts reverting nodes from a bundle, if it was revoked.
    pub async fn recall_if_revoked(&mut self, bundle: BundleId) -> Result<(), StoreError> {
        let update = "UPDATE bundles SET recalling = 1
                      WHERE id = $1 AND state = 'revoked' AND recalling = 0";
        sql(update).bind(bundle).run(self).await?;
        Ok(())
    }

    /// A bundle for which [`Transaction::set_recalling`] holds.
    pub async fn recalling_bundle(&mut self) -> Result<Option<BundleId>, StoreError> {
        let first = sql("SELECT id FROM bundles WHERE recalling = 1 ORDER BY id LIMIT 1");
        let row = first.row(self).await?;
        row.map(|row| id(&row, "id")).transpose()
    }

    /// Up to `limit` nodes that have to leave `bundle`, with the newest bundle that each of them ran and may go
    /// back to, or else the one that it was ordered before.
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

    /// Number of nodes that have to leave `bundle` and have no other bundle to revert to.
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

    /// Returns true if a node that runs the revoked bundle `active` has rejected its newest order,
    /// and can revert to yet another bundle. Its round of recalls may be over.
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
