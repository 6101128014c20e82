//! Revoked bundles, and what the nodes that were ordered to run them ran before.

use crate::error::StoreError;
use crate::row::{id, text};
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::{BundleId, NodeId};

/// Whether the order `o` is the way back from the bundle of this table, by the newest rollout that brought it
/// to the node.
macro_rules! taken_back {
    ($bundle:literal) => {
        concat!(
            "COALESCE((SELECT r.back_counter IS NOT NULL
                 AND (r.rollout_id = o.rollout_id OR r.previous_bundle_id = o.bundle_id)
               FROM rollout_nodes r
               JOIN rollouts a ON a.id = r.rollout_id
               WHERE r.node_id = o.node_id AND r.order_counter IS NOT NULL AND a.bundle_id = ",
            $bundle,
            ".id ORDER BY r.order_counter DESC LIMIT 1), false)"
        )
    };
}

/// A node and the bundle that it is to be ordered to run, such as the one before a revoked one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTarget {
    /// The node.
    pub node: NodeId,
    /// The bundle, which is signed.
    pub bundle: BundleId,
    /// The digest of that bundle.
    pub digest: String,
}

impl Transaction {
    /// Says whether nodes are still to be given what they ran before a bundle.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn set_recalling(
        &mut self,
        bundle: BundleId,
        recalling: bool,
    ) -> Result<(), StoreError> {
        let update = sql("UPDATE bundles SET recalling = $1 WHERE id = $2");
        update.bind(recalling).bind(bundle).run(self).await?;
        Ok(())
    }

    /// Begins anew to give nodes what they ran before a bundle, if it was revoked.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn recall_if_revoked(&mut self, bundle: BundleId) -> Result<(), StoreError> {
        let update = "UPDATE bundles SET recalling = 1
                      WHERE id = $1 AND state = 'revoked' AND recalling = 0";
        sql(update).bind(bundle).run(self).await?;
        Ok(())
    }

    /// A bundle for which [`Transaction::set_recalling`] holds.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn recalling_bundle(&mut self) -> Result<Option<BundleId>, StoreError> {
        let first = sql("SELECT id FROM bundles WHERE recalling = 1 ORDER BY id LIMIT 1");
        let row = first.row(self).await?;
        row.map(|row| id(&row, "id")).transpose()
    }

    /// Up to `limit` nodes that are ordered to run `bundle`, with what they go back to: the last bundle
    /// that they confirmed, or the one that they were ordered before, if it is signed still and they are not
    /// on the way back from it. Nodes that a rollout of the bundle holds go back with it.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn recalls(
        &mut self,
        bundle: BundleId,
        limit: i64,
    ) -> Result<Vec<NodeTarget>, StoreError> {
        let recalls = concat!(
            "SELECT o.node_id AS node_id, COALESCE(g.id, p.id) AS bundle_id,
               COALESCE(g.digest, p.digest) AS digest
             FROM node_orders o JOIN node_heartbeats h ON h.node_id = o.node_id
             LEFT JOIN bundles g ON g.id = h.confirmed_bundle_id
               AND g.project_id = h.project_id AND g.state = 'signed' AND NOT ",
            taken_back!("g"),
            " LEFT JOIN bundles p ON p.id = o.previous_bundle_id AND p.state = 'signed' AND NOT ",
            taken_back!("p"),
            " WHERE o.bundle_id = $1 AND COALESCE(g.id, p.id) IS NOT NULL
               AND NOT EXISTS (
                 SELECT 1 FROM rollout_nodes r JOIN rollouts a ON a.id = r.rollout_id
                 WHERE r.node_id = o.node_id AND r.held = 1 AND a.bundle_id = $1)
             ORDER BY o.node_id LIMIT $2"
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
}
