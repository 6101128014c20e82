//! Housekeeping: deletes ended values in small transactions, on one replica at a time.

use crate::app::App;
use crate::error::Error;
use crate::metric;
use control_domain::{KnownBrowser, Retention};
use control_store::StoredBytes;
use jiff::{SignedDuration, Timestamp};
use metrics::{counter, gauge};
use uuid::Uuid;

const LEASE: SignedDuration = SignedDuration::from_secs(60);
const MAX_ROWS_PER_ROUND: i64 = 1_000;

/// Idle time after which a session has ended by every rule.
const SESSION_MEMORY: SignedDuration = SignedDuration::from_hours(8 * 24);
/// Age at which an archive without a bundle counts as abandoned.
const UPLOAD_GRACE: SignedDuration = SignedDuration::from_hours(1);
/// Maximum number of archives deleted in a round.
const MAX_UPLOADS_PER_ROUND: i64 = 20;

/// Maximum number of rollouts deleted in a round: each may have a row per node of the fleet.
const MAX_ROLLOUTS_PER_ROUND: usize = 10;
/// Maximum number of bundles deleted in a round.
const MAX_BUNDLES_PER_ROUND: i64 = 100;

impl App {
    /// Runs one round; `replica` identifies this process. Returns the number of deleted rows.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn clean_up(&self, replica: Uuid, now: Timestamp) -> Result<u64, Error> {
        if self.is_clock_wrong() {
            return Ok(0);
        }
        let mut tx = self.store.begin().await?;
        if !tx
            .acquire_lease("housekeeping", replica, now, LEASE)
            .await?
        {
            return Ok(0);
        }
        let buckets = tx.purge_buckets(now, MAX_ROWS_PER_ROUND).await?;
        let replies = tx.purge_replies(now, MAX_ROWS_PER_ROUND).await?;
        let invitations = tx.purge_invitations(now, MAX_ROWS_PER_ROUND).await?;
        let sso = tx.purge_sso(now, MAX_ROWS_PER_ROUND).await?;
        let pending = tx.purge_pending_sign_ins(now, MAX_ROWS_PER_ROUND).await?;
        let browsers = tx
            .purge_browsers(KnownBrowser::horizon(now), MAX_ROWS_PER_ROUND)
            .await?;
        let sessions = tx
            .purge_sessions(now - SESSION_MEMORY, MAX_ROWS_PER_ROUND)
            .await?;
        let resets = tx.purge_password_resets(now, MAX_ROWS_PER_ROUND).await?;
        tx.commit().await?;
        let retained = self.clean_up_ended(now).await?;
        let traffic = self.purge_traffic(now).await?;
        let people = pending + browsers + sessions + sso + resets;
        let deleted = buckets + replies + invitations + people + retained + traffic;
        counter!(metric::HOUSEKEEPING_DELETED).increment(deleted);
        Ok(deleted)
    }

    /// Deletes values after their retention, a limited number of each kind.
    async fn clean_up_ended(&self, now: Timestamp) -> Result<u64, Error> {
        let Retention {
            rollouts,
            bundles,
            drift,
            tokens,
            audit: _,   // `App::archive_audit`
            traffic: _, // `App::purge_traffic`
        } = self.retention;
        let mut deleted = 0;
        if let Some(before) = Retention::cutoff(rollouts, now) {
            for _ in 0..MAX_ROLLOUTS_PER_ROUND {
                let mut tx = self.store.begin().await?;
                let gone = tx.purge_rollout(before).await?;
                tx.commit().await?;
                deleted += gone;
                if gone == 0 {
                    break;
                }
            }
        }
        if let Some(before) = Retention::cutoff(bundles, now) {
            let mut tx = self.store.begin().await?;
            // Excludes concurrent orders and rollouts.
            tx.lock_audit().await?;
            for (bundle, version) in tx.unused_bundles(before, MAX_BUNDLES_PER_ROUND).await? {
                tx.delete_bundle(bundle, version).await?;
                deleted += 1;
            }
            tx.commit().await?;
        }
        let mut tx = self.store.begin().await?;
        if let Some(before) = Retention::cutoff(drift, now) {
            deleted += tx.purge_drift(before, MAX_ROWS_PER_ROUND).await?;
        }
        if let Some(before) = Retention::cutoff(tokens, now) {
            deleted += tx.purge_tokens(before, MAX_ROWS_PER_ROUND).await?;
        }
        tx.commit().await?;
        Ok(deleted)
    }

    /// Updates the gauges of stored data. Call it every few minutes: it scans whole indexes.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts fit")]
    pub async fn measure_storage(&self) -> Result<(), Error> {
        let mut tx = self.store.read().await?;
        for (table, rows) in tx.count_rows().await? {
            gauge!(metric::STORED_ROWS, "table" => table).set(rows as f64);
        }
        let StoredBytes { database, archives } = tx.stored_bytes().await?;
        gauge!(metric::DATABASE_BYTES).set(database as f64);
        gauge!(metric::ARCHIVE_BYTES).set(archives as f64);
        gauge!(metric::TRAFFIC_BYTES).set(tx.traffic_bytes().await? as f64);
        Ok(())
    }

    /// Deletes archives without a bundle in the database, which a crash between the two writes
    /// leaves. Returns their number.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] or [`Error::Object`] if a store does not answer; the next round continues.
    pub async fn sweep_archives(&self, replica: Uuid, now: Timestamp) -> Result<usize, Error> {
        if self.is_clock_wrong() {
            return Ok(0);
        }
        let mut tx = self.store.begin().await?;
        if !tx.acquire_lease("archives", replica, now, LEASE).await? {
            return Ok(0);
        }
        // Excludes concurrent uploads.
        tx.lock_audit().await?;
        let abandoned = tx
            .abandon_uploads(now - UPLOAD_GRACE, MAX_UPLOADS_PER_ROUND)
            .await?;
        tx.commit().await?;
        for upload in &abandoned {
            // No transaction is open during calls to the object store.
            if upload.is_orphan {
                self.objects.delete(&upload.object).await?;
                counter!(metric::ARCHIVES_SWEPT).increment(1);
            }
            let mut tx = self.store.begin().await?;
            tx.forget_upload(upload.bundle).await?;
            tx.commit().await?;
        }
        Ok(abandoned.len())
    }
}
