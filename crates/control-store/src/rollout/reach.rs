//! Nodes that a rollout has ordered to run its bundle.

use crate::error::StoreError;
use crate::row::number;
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::Rollout;
use jiff::Timestamp;

/// Reads no node of a batch that was not opened: the join starts from the index of ordered nodes.
const REACH: &str = "SELECT COUNT(*) AS ordered,
       COUNT(CASE WHEN h.active_bundle_id = $2 AND h.verdict = 'accepted'
         AND h.verdict_order >= r.order_counter AND h.seen_at > $3 THEN 1 END) AS ready,
       COUNT(CASE WHEN h.active_bundle_id = $2 AND h.verdict = 'accepted'
         AND h.verdict_order >= r.order_counter AND h.seen_at <= $3 THEN 1 END) AS silent
     FROM rollout_nodes r JOIN node_heartbeats h ON h.node_id = r.node_id
     WHERE r.rollout_id = $1 AND r.order_counter IS NOT NULL AND r.back_counter IS NULL";

/// Number of nodes that a rollout ordered to run its bundle and has not ordered back, by their last
/// reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolloutReach {
    /// All of them.
    pub ordered: i64,
    /// Online nodes that run the bundle.
    pub ready: i64,
    /// Offline nodes that ran the bundle when they reported last.
    pub silent: i64,
}

impl Transaction {
    /// Counts the nodes that follow the rollout. A node is online if its last heartbeat is later than
    /// `online_since`.
    pub async fn rollout_reach(
        &mut self,
        rollout: &Rollout,
        online_since: Timestamp,
    ) -> Result<RolloutReach, StoreError> {
        let counts = sql(REACH).bind(rollout.id).bind(rollout.bundle);
        let row = counts.bind(online_since).row(self).await?;
        let row = row.ok_or(StoreError::Corrupt("ordered"))?;
        Ok(RolloutReach {
            ordered: number(&row, "ordered")?,
            ready: number(&row, "ready")?,
            silent: number(&row, "silent")?,
        })
    }
}
