//! Retention of the audit log: old entries are archived in the object store before they are deleted
//! from the database.

use crate::app::App;
use crate::error::Error;
use crate::metric;
use control_auth::sha256;
use control_domain::Retention;
use control_store::{AuditArchive, ObjectError, StoreError};
use jiff::{SignedDuration, Timestamp};
use metrics::counter;
use uuid::Uuid;

const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// Entries of these days stay in the database, whatever the retention: the check of the second person
/// reads those of eight days.
const MIN_AGE: SignedDuration = SignedDuration::from_hours(9 * 24);
/// Maximum number of entries per archive: some megabytes before compression.
const MAX_ENTRIES: i64 = 10_000;
/// Maximum size of an archive that is read back.
const MAX_BYTES: usize = 256 * 1024 * 1024;

impl App {
    /// Archives and deletes one part of the audit log beyond its retention; `replica` identifies
    /// this process. Returns the number of entries. A failure between archiving and deletion leaves
    /// an archive that the next round replaces.
    ///
    /// # Errors
    ///
    /// [`Error::Object`] if the archive cannot be stored, [`Error::Store`] if the log was changed or the database does
    /// not answer; nothing is deleted.
    pub async fn archive_audit(&self, replica: Uuid, now: Timestamp) -> Result<u64, Error> {
        let Some(before) = Retention::cutoff(self.retention.audit, now) else {
            return Ok(0);
        };
        let before = before.min(now - MIN_AGE);
        if self.is_clock_wrong() {
            return Ok(0);
        }
        let mut tx = self.store.begin().await?;
        if !tx.acquire_lease("audit", replica, now, LEASE).await? {
            return Ok(0);
        }
        let key = self.audit_key(&mut tx).await?;
        tx.commit().await?;
        let mut tx = self.store.read().await?;
        let expired = tx.expired_audit(before, now, MAX_ENTRIES, &key).await?;
        drop(tx);
        let Some((archive, bytes)) = expired else {
            return Ok(0);
        };
        self.objects.put(&archive.object, bytes).await?;
        let mut tx = self.store.begin().await?;
        let deleted = match tx.cut_audit(&archive, &key, now).await {
            Err(StoreError::Stale) => return Ok(0),
            deleted => deleted?,
        };
        tx.commit().await?;
        let AuditArchive { first, last, .. } = &archive;
        tracing::info!(
            first,
            last,
            object = archive.object,
            "audit entries were archived"
        );
        counter!(metric::HOUSEKEEPING_DELETED).increment(deleted);
        Ok(deleted)
    }

    /// Reads every archive of the audit log; returns the first one with changed bytes.
    ///
    /// # Errors
    ///
    /// [`Error`] if one of the stores does not answer.
    pub async fn verify_audit_archives(&self) -> Result<Option<AuditArchive>, Error> {
        let archives = self.store.read().await?.audit_archives().await?;
        for (archive, _) in archives {
            let is_intact = match self.objects.get(&archive.object, MAX_BYTES).await {
                Ok(bytes) => sha256(&bytes) == archive.digest,
                Err(ObjectError::Missing | ObjectError::TooLarge) => false,
                Err(error) => return Err(error.into()),
            };
            if !is_intact {
                return Ok(Some(archive));
            }
        }
        Ok(None)
    }
}
