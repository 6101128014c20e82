//! Reverts of a rollout's nodes.

use crate::error::StoreError;
use crate::rollout::recall::{confirmed_fallback, rejected};
use crate::row::{id, number, optional_id, text};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::{RevertCounts, RevertProgress, Rollout};
use control_wire::{BundleId, NodeId, RolloutId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

/// Switched nodes without an order to revert, with their previous bundles.
const UNORDERED: &str = concat!(
    "SELECT r.node_id AS node_id, t.id AS bundle_id, t.digest AS digest
     FROM rollout_nodes r JOIN rollouts a ON a.id = r.rollout_id
     JOIN node_heartbeats h ON h.node_id = r.node_id
     LEFT JOIN bundles t ON t.id = COALESCE(
       (SELECT p.id FROM bundles p
        WHERE p.id = r.previous_bundle_id AND p.state = 'signed' AND NOT ",
    rejected!("p.id"),
    "), ",
    confirmed_fallback!("a.bundle_id"),
    ")
     WHERE r.rollout_id = $1 AND r.order_counter IS NOT NULL AND r.back_counter IS NULL
     ORDER BY r.node_id LIMIT $2"
);
/// One such node, if there is any.
const ANY_UNORDERED: &str = "SELECT node_id FROM rollout_nodes
                             WHERE rollout_id = $1 AND order_counter IS NOT NULL
                               AND back_counter IS NULL LIMIT 1";

/// SQL condition: node `h` has accepted the order to revert in its row `r`.
macro_rules! is_back {
    () => {
        "COALESCE(r.back_counter > 0 AND h.verdict = 'accepted'
           AND h.verdict_order >= r.back_counter, false)"
    };
}

/// One online node, if there is any, that has not accepted its order to revert. Skips batches after
/// `$2`, which were not opened.
const ANY_WAITING: &str = concat!(
    "SELECT r.node_id AS node_id
     FROM rollout_nodes r JOIN node_heartbeats h ON h.node_id = r.node_id
     WHERE r.rollout_id = $1 AND r.batch BETWEEN 1 AND $2 AND r.back_counter > 0
       AND h.seen_at > $3 AND NOT ",
    is_back!(),
    " LIMIT 1"
);
/// Number of nodes that have not accepted their order to revert.
const COUNT: &str = concat!(
    "SELECT COUNT(CASE WHEN r.back_counter = 0 THEN 1 END) AS without_way,
       COUNT(CASE WHEN r.back_counter > 0 AND h.seen_at > $3 THEN 1 END) AS waiting,
       COUNT(CASE WHEN r.back_counter > 0 AND h.seen_at <= $3 THEN 1 END) AS offline
     FROM rollout_nodes r JOIN node_heartbeats h ON h.node_id = r.node_id
     WHERE r.rollout_id = $1 AND r.batch BETWEEN 1 AND $2 AND NOT ",
    is_back!()
);

/// A node to revert, and its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revert {
    /// Node that reverts.
    pub node: NodeId,
    /// Bundle to revert to, with its digest; `None` if there is none.
    pub to: Option<(BundleId, String)>,
}

impl Transaction {
    /// Up to `limit` switched nodes without an order to revert, with their targets: the previous
    /// bundle, or else the newest one that the node confirmed and that is still signed.
    pub async fn reverts(
        &mut self,
        rollout: RolloutId,
        limit: i64,
    ) -> Result<Vec<Revert>, StoreError> {
        let list = sql(UNORDERED).bind(rollout).bind(limit);
        let rows = list.rows(self).await?;
        let revert = |row: &AnyRow| {
            let to = match optional_id(row, "bundle_id")? {
                Some(bundle) => Some((bundle, text(row, "digest")?)),
                None => None,
            };
            let node = id(row, "node_id")?;
            Ok(Revert { node, to })
        };
        rows.iter().map(revert).collect()
    }

    /// Stores the counter of the order to revert; 0 if there is no bundle to revert to.
    pub async fn note_revert(
        &mut self,
        rollout: RolloutId,
        node: NodeId,
        counter: i64,
    ) -> Result<(), StoreError> {
        let update = "UPDATE rollout_nodes SET back_counter = $3
                      WHERE rollout_id = $1 AND node_id = $2";
        let update = sql(update).bind(rollout).bind(node);
        update.bind(counter).run(self).await?;
        Ok(())
    }

    /// Progress of a rollback. A node is online if its last heartbeat is later than `online_since`.
    /// The nodes are counted only at the end, when none is awaited or `is_late` is set.
    pub async fn revert_progress(
        &mut self,
        rollout: &Rollout,
        online_since: Timestamp,
        is_late: bool,
    ) -> Result<RevertProgress, StoreError> {
        let any = sql(ANY_UNORDERED).bind(rollout.id);
        if any.row(self).await?.is_some() {
            return Ok(RevertProgress::Unordered);
        }
        let last = rollout.batch.as_ref().map_or(0, |batch| batch.number);
        let any = sql(ANY_WAITING).bind(rollout.id).bind(last);
        if !is_late && any.bind(online_since).row(self).await?.is_some() {
            return Ok(RevertProgress::Waiting);
        }
        let counts = sql(COUNT).bind(rollout.id).bind(last);
        let row = counts.bind(online_since).row(self).await?;
        let row = row.ok_or(StoreError::Corrupt("waiting"))?;
        Ok(RevertProgress::Rest(RevertCounts {
            waiting: number(&row, "waiting")?,
            offline: number(&row, "offline")?,
            without_way: number(&row, "without_way")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{ANY_UNORDERED, ANY_WAITING, COUNT, UNORDERED};
    use crate::rollout::node::BATCH_QUERIES;
    use crate::store::Store;
    use sqlx::{Row, query};

    /// Index that SQLite uses for this query.
    async fn plan(store: &Store, text: &'static str) -> Vec<String> {
        let mut tx = store.read().await.unwrap();
        let explained = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"));
        let rows = query(explained).fetch_all(tx.connection()).await.unwrap();
        rows.iter().map(|row| row.get("detail")).collect()
    }

    /// The cost of a step must not grow with the nodes that wait for a later batch.
    #[tokio::test]
    async fn a_step_reads_no_node_of_a_later_batch() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.db");
        let url = format!("sqlite://{}?mode=rwc", file.display());
        let store = Store::open(&url).await.unwrap();
        let back =
            [UNORDERED, ANY_UNORDERED].map(|text| (text, "rollout_nodes_to_revert (rollout_id=?)"));
        let opened = [ANY_WAITING, COUNT].map(|text| {
            (
                text,
                "rollout_nodes_by_batch (rollout_id=? AND batch>? AND batch<?)",
            )
        });
        let batch =
            BATCH_QUERIES.map(|text| (text, "rollout_nodes_by_batch (rollout_id=? AND batch=?)"));
        for (text, index) in back.into_iter().chain(opened).chain(batch) {
            let plan = plan(&store, text).await;
            let reads = |step: &&String| step.ends_with(index);
            assert_eq!(plan.iter().filter(reads).count(), 1, "{text}: {plan:#?}");
            let scans = plan.iter().filter(|step| step.starts_with("SCAN"));
            assert_eq!(scans.count(), 0, "{text}: {plan:#?}");
        }
    }
}
