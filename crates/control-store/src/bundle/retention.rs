//! Deletion of ended rows after their retention, a limited number at a time.

use crate::error::StoreError;
use crate::row::number;
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::{BundleId, EnrolmentTokenId, ProjectId, RolloutId};
use jiff::Timestamp;

/// The tables that grow with use, each with the statement that counts its rows.
const COUNTED_TABLES: &[(&str, &str)] = &[
    ("audit", "SELECT COUNT(*) AS used FROM audit"),
    ("bundles", "SELECT COUNT(*) AS used FROM bundles"),
    ("drift", "SELECT COUNT(*) AS used FROM drift"),
    ("node_events", "SELECT COUNT(*) AS used FROM node_events"),
    ("nodes", "SELECT COUNT(*) AS used FROM nodes"),
    (
        "project_traffic",
        "SELECT COUNT(*) AS used FROM project_traffic",
    ),
    ("replies", "SELECT COUNT(*) AS used FROM replies"),
    (
        "rollout_nodes",
        "SELECT COUNT(*) AS used FROM rollout_nodes",
    ),
    ("rollouts", "SELECT COUNT(*) AS used FROM rollouts"),
];

/// Stored data, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBytes {
    /// Size of the database, including free pages.
    pub database: i64,
    /// Total size of the bundles' archives.
    pub archives: i64,
}

/// Records archives for the sweep of the object store; `$condition` selects their bundles.
macro_rules! leave_archives {
    ($condition:literal) => {
        concat!(
            "INSERT INTO uploads (bundle_id, org_id, digest, object, created_at)
             SELECT id, org_id, digest, 'bundles/' || org_id || '/' || digest || '.tar.zst', 0
             FROM bundles WHERE digest IS NOT NULL AND ",
            $condition
        )
    };
}

impl Transaction {
    /// Deletes the bundle if `version` is stored. The next sweep deletes its archive, unless
    /// another bundle has the same bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Reference`] while an order or a rollout names it.
    pub async fn delete_bundle(
        &mut self,
        bundle: BundleId,
        version: i64,
    ) -> Result<(), StoreError> {
        let leave = sql(leave_archives!("id = $1"));
        leave.bind(bundle).run(self).await?;
        let delete = sql("DELETE FROM bundles WHERE id = $1 AND version = $2");
        delete.bind(bundle).write(self, version).await?;
        Ok(())
    }

    /// Records the archives of a project that is being deleted, for the next sweeps.
    pub async fn leave_archives(&mut self, project: ProjectId) -> Result<(), StoreError> {
        let leave = sql(leave_archives!("project_id = $1"));
        leave.bind(project).run(self).await?;
        Ok(())
    }

    /// Returns true if a node reports the bundle as active, or an order or a rollout refers to it.
    pub async fn is_bundle_used(&mut self, bundle: BundleId) -> Result<bool, StoreError> {
        let used = "SELECT id FROM bundles b WHERE id = $1 AND (
              EXISTS (SELECT 1 FROM node_orders o WHERE o.bundle_id = b.id)
              OR EXISTS (SELECT 1 FROM node_orders o WHERE o.previous_bundle_id = b.id)
              OR EXISTS (SELECT 1 FROM rollouts r WHERE r.bundle_id = b.id)
              OR EXISTS (SELECT 1 FROM rollout_nodes r WHERE r.previous_bundle_id = b.id)
              OR EXISTS (SELECT 1 FROM node_heartbeats h
                         WHERE h.project_id = b.project_id AND h.active_bundle_id = b.id))";
        Ok(sql(used).bind(bundle).row(self).await?.is_some())
    }

    /// Up to `limit` unneeded bundles created before `before`. Bundles that nodes may be reverted
    /// to are needed.
    pub async fn unused_bundles(
        &mut self,
        before: Timestamp,
        limit: i64,
    ) -> Result<Vec<(BundleId, i64)>, StoreError> {
        let list = "SELECT id, version FROM bundles b WHERE created_at < $1 AND recalling = 0
              AND NOT EXISTS (SELECT 1 FROM node_orders o WHERE o.bundle_id = b.id)
              AND NOT EXISTS (SELECT 1 FROM node_orders o WHERE o.previous_bundle_id = b.id)
              AND NOT EXISTS (SELECT 1 FROM node_bundles n WHERE n.bundle_id = b.id
                              AND n.confirmed_counter IS NOT NULL)
              AND NOT EXISTS (SELECT 1 FROM rollouts r WHERE r.bundle_id = b.id)
              AND NOT EXISTS (SELECT 1 FROM rollout_nodes r WHERE r.previous_bundle_id = b.id)
              AND NOT EXISTS (SELECT 1 FROM node_heartbeats h
                              WHERE h.project_id = b.project_id AND h.active_bundle_id = b.id)
            ORDER BY created_at LIMIT $2";
        let rows = sql(list).bind(before).bind(limit).rows(self).await?;
        let ids = rows
            .iter()
            .map(|row| Ok((crate::row::id(row, "id")?, number(row, "version")?)));
        ids.collect()
    }

    /// Deletes the rollout with its batches if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_rollout(
        &mut self,
        rollout: RolloutId,
        version: i64,
    ) -> Result<(), StoreError> {
        self.keep_reverts(rollout).await?;
        let delete = sql("DELETE FROM rollouts WHERE id = $1 AND version = $2");
        delete.bind(rollout).write(self, version).await?;
        Ok(())
    }

    /// Keeps for each node from which bundle the rollout reverted it, as a rejection: a recall does not
    /// revert to that bundle, even after the rollout was deleted.
    async fn keep_reverts(&mut self, rollout: RolloutId) -> Result<(), StoreError> {
        let keep = "INSERT INTO node_bundles (node_id, bundle_id, rejected_counter)
                    SELECT n.node_id, r.bundle_id, n.back_counter
                    FROM rollout_nodes n JOIN rollouts r ON r.id = n.rollout_id
                    WHERE n.rollout_id = $1 AND n.back_counter > 0
                    ON CONFLICT (node_id, bundle_id)
                    DO UPDATE SET rejected_counter = excluded.rejected_counter
                    WHERE COALESCE(node_bundles.rejected_counter, 0) < excluded.rejected_counter";
        sql(keep).bind(rollout).run(self).await?;
        Ok(())
    }

    /// Deletes one rollout that ended before `before`, since each may have a row per node of the
    /// fleet; returns the number of deleted rollouts.
    pub async fn purge_rollout(&mut self, before: Timestamp) -> Result<u64, StoreError> {
        let first = "SELECT id FROM rollouts WHERE ended_at < $1 ORDER BY ended_at LIMIT 1";
        let Some(row) = sql(first).bind(before).row(self).await? else {
            return Ok(0);
        };
        let rollout: RolloutId = crate::row::id(&row, "id")?;
        self.keep_reverts(rollout).await?;
        let delete = sql("DELETE FROM rollouts WHERE id = $1");
        delete.bind(rollout).run(self).await
    }

    /// Deletes at most `limit` drifts that were resolved before `before`; returns their number.
    pub async fn purge_drift(&mut self, before: Timestamp, limit: i64) -> Result<u64, StoreError> {
        let delete = "DELETE FROM drift WHERE id IN (SELECT id FROM drift WHERE resolved_at < $1
                      ORDER BY resolved_at LIMIT $2)";
        sql(delete).bind(before).bind(limit).run(self).await
    }

    /// Deletes the enrolment token if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_enrolment_token(
        &mut self,
        token: EnrolmentTokenId,
        version: i64,
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM enrolment_tokens WHERE id = $1 AND version = $2");
        delete.bind(token).write(self, version).await?;
        Ok(())
    }

    /// Deletes at most `limit` enrolment tokens, and as many API keys, that ended before `before`;
    /// returns the number of both.
    pub async fn purge_tokens(&mut self, before: Timestamp, limit: i64) -> Result<u64, StoreError> {
        let mut deleted = 0;
        for delete in [
            "DELETE FROM enrolment_tokens WHERE id IN (SELECT id FROM enrolment_tokens
             WHERE expires_at < $1 OR revoked_at < $1 LIMIT $2)",
            "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys
             WHERE expires_at < $1 OR revoked_at < $1 LIMIT $2)",
        ] {
            deleted += sql(delete).bind(before).bind(limit).run(self).await?;
        }
        Ok(deleted)
    }

    /// Counts the rows of each table that grows with use, by scanning an index of each.
    pub async fn count_rows(&mut self) -> Result<Vec<(&'static str, i64)>, StoreError> {
        let mut counts = Vec::new();
        for (table, count) in COUNTED_TABLES {
            counts.push((*table, self.used(count).await?));
        }
        Ok(counts)
    }

    /// Sizes of the database and of the archives.
    pub async fn stored_bytes(&mut self) -> Result<StoredBytes, StoreError> {
        let database = if self.is_sqlite() {
            "SELECT page_count * page_size AS used FROM pragma_page_count(), pragma_page_size()"
        } else {
            "SELECT pg_database_size(current_database()) AS used"
        };
        let archives = "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS used FROM bundles";
        Ok(StoredBytes {
            database: self.used(database).await?,
            archives: self.used(archives).await?,
        })
    }

    /// The number in column `used` of the query's only row.
    async fn used(&mut self, query: &'static str) -> Result<i64, StoreError> {
        let row = sql(query).row(self).await?;
        number(&row.ok_or(StoreError::Corrupt("used"))?, "used")
    }
}
