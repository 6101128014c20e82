//! Housekeeping: what has ended is deleted, in small pieces, by one replica at a time.

use crate::app::App;
use crate::error::Error;
use crate::metric;
use jiff::{SignedDuration, Timestamp};
use metrics::counter;
use uuid::Uuid;

const LEASE: SignedDuration = SignedDuration::from_secs(60);
const CHUNK: i64 = 1_000;

impl App {
    /// One round; `replica` names this process. Gives the number of rows deleted.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn clean_up(&self, replica: Uuid, now: Timestamp) -> Result<u64, Error> {
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
        tx.commit().await?;
        let deleted = buckets + replies + invitations;
        counter!(metric::HOUSEKEEPING_DELETED).increment(deleted);
        Ok(deleted)
    }
}
