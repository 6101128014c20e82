//! Housekeeping: what has ended is deleted, in small pieces, by one replica at a time.

use crate::app::App;
use crate::error::Error;
use crate::metric;
use control_domain::KnownBrowser;
use jiff::{SignedDuration, Timestamp};
use metrics::counter;
use uuid::Uuid;

const LEASE: SignedDuration = SignedDuration::from_secs(60);
const CHUNK: i64 = 1_000;

/// A session without a request for so long has ended by any rule.
const SESSION_MEMORY: SignedDuration = SignedDuration::from_hours(8 * 24);
/// An archive without a stored bundle after this time was left behind.
const UPLOAD_GRACE: SignedDuration = SignedDuration::from_hours(1);
/// Archives that one round deletes.
const UPLOADS: i64 = 20;

impl App {
    /// One round; `replica` names this process. Gives the number of rows deleted.
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
        let buckets = tx.purge_buckets(now, CHUNK).await?;
        let replies = tx.purge_replies(now, CHUNK).await?;
        let invitations = tx.purge_invitations(now, CHUNK).await?;
        let pending = tx.purge_pending_sign_ins(now, CHUNK).await?;
        let browsers = tx.purge_browsers(KnownBrowser::horizon(now), CHUNK).await?;
        let sessions = tx.purge_sessions(now - SESSION_MEMORY, CHUNK).await?;
        let resets = tx.purge_password_resets(now, CHUNK).await?;
        tx.commit().await?;
        let people = pending + browsers + sessions + resets;
        let deleted = buckets + replies + invitations + people;
        counter!(metric::HOUSEKEEPING_DELETED).increment(deleted);
        Ok(deleted)
    }

    /// Deletes archives in the object store without a bundle in the database: those of a
    /// program that died between the two. Gives the number of archives that were given up.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] or [`Error::Object`] if one of the stores does not answer; the next round goes
    /// on.
    pub async fn sweep_archives(&self, replica: Uuid, now: Timestamp) -> Result<usize, Error> {
        if self.is_clock_wrong() {
            return Ok(0);
        }
        let mut tx = self.store.begin().await?;
        if !tx.acquire_lease("archives", replica, now, LEASE).await? {
            return Ok(0);
        }
        // No archive is noted meanwhile.
        tx.lock_audit().await?;
        let abandoned = tx.abandon_uploads(now - UPLOAD_GRACE, UPLOADS).await?;
        tx.commit().await?;
        for upload in &abandoned {
            // No transaction is open while the object store is asked.
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
