//! Samples for a rollout's gate: counters of nodes at the time when their batch was opened.

use crate::error::StoreError;
use crate::rollout::node::ready;
use crate::row::traffic::optional_traffic;
use crate::row::{id, optional_id, real, time};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::{BatchNode, Comparison, Figures, Gate, Rollout};
use control_wire::{BundleId, NodeId, RolloutId, Traffic};
use jiff::{SignedDuration, Timestamp};
use sqlx::any::AnyRow;

/// Maximum number of later nodes, with the older bundle, that a batch is compared with.
const MAX_OTHERS: i64 = 50;
/// Minimum number of serving nodes for a comparison with them alone: a single one of fewer nodes
/// could decide the baseline.
const MIN_OTHERS: usize = 3;
/// Maximum age of an online node's newest report, and of the report after a sample.
const MAX_REPORT_AGE: SignedDuration = SignedDuration::from_mins(15);
/// Maximum number of nodes with counters in memory at once.
const CHUNK: i64 = 100;

impl Transaction {
    /// Stores the current counters of the current batch's nodes, and of at most 50 later ones.
    pub async fn take_samples(
        &mut self,
        rollout: &Rollout,
        online_since: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(batch) = &rollout.batch else {
            return self.drop_samples(rollout.id).await;
        };
        // Nodes that already run the bundle keep their earlier samples, because there is no other
        // source.
        let delete = "DELETE FROM rollout_samples WHERE rollout_id = $1 AND NOT (
                        active_bundle_id IS DISTINCT FROM $2 AND node_id IN (
                          SELECT r.node_id FROM rollout_nodes r
                          JOIN node_heartbeats h ON h.node_id = r.node_id
                          WHERE r.rollout_id = $1 AND r.batch = $3 AND h.active_bundle_id = $2))";
        let delete = sql(delete).bind(rollout.id).bind(rollout.bundle);
        delete.bind(batch.number).run(self).await?;
        let keep = "UPDATE rollout_samples SET of_batch = 0 WHERE rollout_id = $1 AND of_batch = 1";
        sql(keep).bind(rollout.id).run(self).await?;
        let own = "INSERT INTO rollout_samples (rollout_id, node_id, of_batch, active_bundle_id,
                     cpu_percent, traffic)
                   SELECT $1, r.node_id, 1, h.active_bundle_id, h.cpu_percent, h.traffic
                   FROM rollout_nodes r JOIN node_heartbeats h ON h.node_id = r.node_id
                   WHERE r.rollout_id = $1 AND r.batch = $2";
        sql(own)
            .bind(rollout.id)
            .bind(batch.number)
            .run(self)
            .await?;
        let others = "INSERT INTO rollout_samples (rollout_id, node_id, of_batch,
                        active_bundle_id, cpu_percent, traffic)
                      SELECT $1, r.node_id, 0, h.active_bundle_id, h.cpu_percent, h.traffic
                      FROM rollout_nodes r JOIN node_heartbeats h ON h.node_id = r.node_id
                      WHERE r.rollout_id = $1 AND r.batch > $2 AND h.seen_at > $3
                      ORDER BY r.batch, r.node_id LIMIT $4";
        let others = sql(others).bind(rollout.id).bind(batch.number);
        others.bind(online_since).bind(MAX_OTHERS).run(self).await?;
        Ok(())
    }

    /// Deletes the samples of a rollout.
    pub async fn drop_samples(&mut self, rollout: RolloutId) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM rollout_samples WHERE rollout_id = $1");
        delete.bind(rollout).run(self).await?;
        Ok(())
    }

    /// Compares the current batch with nodes that are not switched yet; if fewer than three of
    /// those serve requests, also with the batch's own nodes before the switch. Standbys beside a
    /// busy batch are left out. Renamed routes count under their former names on both sides.
    pub async fn compare_batch(
        &mut self,
        rollout: &Rollout,
        online_since: Timestamp,
    ) -> Result<Comparison, StoreError> {
        // Counters begin at a sample or at a switch, both after the rollout's start.
        let started_at = rollout.started_at.unwrap_or(online_since);
        let elapsed = online_since.duration_since(started_at) + MAX_REPORT_AGE * 2;
        let mut batch = Figures::covering(elapsed);
        self.add_batch(&mut batch, rollout, online_since).await?;
        let mut rest = Figures::covering(elapsed);
        self.add_others(&mut rest, rollout.id).await?;
        let gate = rollout.strategy.gate.unwrap_or(Gate::DEFAULT);
        if gate.has_idle_rest(&batch, &rest) {
            rest = Figures::covering(elapsed).without_idle_nodes(gate.min_requests);
            self.add_others(&mut rest, rollout.id).await?;
        }
        // Waits for nodes that serve no requests yet.
        if rest.nodes == 0 || (1..MIN_OTHERS).contains(&rest.serving()) {
            self.add_earlier(&mut rest, rollout, gate.min_requests)
                .await?;
        }
        Ok(Comparison { batch, rest }.joining(&rollout.route_names))
    }

    async fn add_batch(
        &mut self,
        figures: &mut Figures,
        rollout: &Rollout,
        online_since: Timestamp,
    ) -> Result<(), StoreError> {
        let list = concat!(
            "SELECT r.node_id AS node_id, h.active_bundle_id AS active, h.cpu_percent AS cpu,
               h.traffic AS traffic, h.seen_at AS seen_at, s.node_id AS sampled,
               s.active_bundle_id AS old_active, s.cpu_percent AS old_cpu, s.traffic AS old_traffic
             FROM rollout_nodes r JOIN node_heartbeats h ON h.node_id = r.node_id
             LEFT JOIN rollout_samples s ON s.rollout_id = r.rollout_id
               AND s.of_batch = 1 AND s.node_id = r.node_id
             WHERE r.rollout_id = $1 AND r.batch = $2 AND ",
            ready!(),
            " AND r.node_id > $5 ORDER BY r.node_id LIMIT $6"
        );
        let batch = rollout.batch.as_ref();
        let number = batch.map_or(0, |batch| batch.number);
        let switched_at = batch.and_then(|batch| batch.switched_at);
        let mut last = String::new();
        loop {
            let page = sql(list).bind(rollout.id).bind(number).bind(rollout.bundle);
            let page = page.bind(online_since).bind(last.as_str()).bind(CHUNK);
            let rows = page.rows(self).await?;
            for row in &rows {
                figures.add_switched(batch_node(row, switched_at)?);
            }
            match rows.last() {
                Some(row) => last = id::<NodeId>(row, "node_id")?.to_string(),
                None => return Ok(()),
            }
        }
    }

    async fn add_others(
        &mut self,
        figures: &mut Figures,
        rollout: RolloutId,
    ) -> Result<(), StoreError> {
        // Do not compare counters across bundles.
        let list = "SELECT h.active_bundle_id AS active, h.cpu_percent AS cpu,
                      h.traffic AS traffic, s.active_bundle_id AS old_active,
                      s.traffic AS old_traffic
                    FROM rollout_samples s JOIN node_heartbeats h ON h.node_id = s.node_id
                    WHERE s.rollout_id = $1 AND s.of_batch = 0
                      AND h.active_bundle_id IS NOT DISTINCT FROM s.active_bundle_id";
        for row in &sql(list).bind(rollout).rows(self).await? {
            add(figures, row)?;
        }
        Ok(())
    }

    async fn add_earlier(
        &mut self,
        figures: &mut Figures,
        rollout: &Rollout,
        min_requests: i64,
    ) -> Result<(), StoreError> {
        let list = "SELECT s.node_id AS node_id, s.cpu_percent AS cpu, s.traffic AS traffic
                    FROM rollout_samples s JOIN rollout_nodes r
                      ON r.rollout_id = s.rollout_id AND r.node_id = s.node_id
                    WHERE s.rollout_id = $1 AND s.active_bundle_id IS DISTINCT FROM $2
                      AND r.batch = $3 AND s.node_id > $4 ORDER BY s.node_id LIMIT $5";
        let number = rollout.batch.as_ref().map_or(0, |batch| batch.number);
        let mut last = String::new();
        loop {
            let page = sql(list).bind(rollout.id).bind(rollout.bundle).bind(number);
            let rows = page.bind(last.as_str()).bind(CHUNK).rows(self).await?;
            for row in &rows {
                let traffic: Option<Traffic> = optional_traffic(row, "traffic")?;
                figures.add_earlier(real(row, "cpu")?, traffic, min_requests);
            }
            match rows.last() {
                Some(row) => last = id::<NodeId>(row, "node_id")?.to_string(),
                None => return Ok(()),
            }
        }
    }
}

/// Newest report of a switched node. A report from before the batch's switch is weak evidence.
fn batch_node(row: &AnyRow, switched_at: Option<Timestamp>) -> Result<BatchNode, StoreError> {
    let sampled: Option<NodeId> = optional_id(row, "sampled")?;
    let sample = match sampled {
        Some(_) => Some((real(row, "old_cpu")?, optional_traffic(row, "old_traffic")?)),
        None => None,
    };
    let active: Option<BundleId> = optional_id(row, "active")?;
    let seen_at = time(row, "seen_at")?;
    Ok(BatchNode {
        node: id(row, "node_id")?,
        cpu_percent: real(row, "cpu")?,
        traffic: optional_traffic(row, "traffic")?,
        sample,
        same_bundle: active == optional_id(row, "old_active")?,
        has_reported: switched_at.is_none_or(|switched_at| switched_at <= seen_at),
    })
}

fn add(figures: &mut Figures, row: &AnyRow) -> Result<(), StoreError> {
    let active: Option<BundleId> = optional_id(row, "active")?;
    let same = active == optional_id(row, "old_active")?;
    let now: Option<Traffic> = optional_traffic(row, "traffic")?;
    let before: Option<Traffic> = optional_traffic(row, "old_traffic")?;
    let before = before.as_ref().filter(|_| same);
    figures.add(real(row, "cpu")?, now, before);
    Ok(())
}
