//! Leases, for work that only one of the replicas may do at a time.

use crate::error::StoreError;
use crate::row::{id, text, time};
use crate::statement::{Write, sql};
use crate::store::Transaction;
use jiff::{SignedDuration, Timestamp};
use sqlx::query;
use uuid::Uuid;

/// Tolerance for wrong clocks: a lease that ends later than its lifetime and this time allow is
/// ignored.
const MAX_CLOCK_ERROR: SignedDuration = SignedDuration::from_mins(1);

/// The lease of a background job, and its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Name of the job; one replica at a time holds its lease.
    pub name: String,
    /// Identifier that the replica chose at its start.
    pub holder: Uuid,
    /// Time from which another replica may take over.
    pub ends_at: Timestamp,
}

impl Transaction {
    /// All leases by name, including ended ones.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database fails.
    pub async fn leases(&mut self) -> Result<Vec<Lease>, StoreError> {
        let all = sql("SELECT name, holder, expires_at FROM leases ORDER BY name");
        let rows = all.rows(self).await?;
        let leases = rows.iter().map(|row| {
            Ok(Lease {
                name: text(row, "name")?,
                holder: id(row, "holder")?,
                ends_at: time(row, "expires_at")?,
            })
        });
        leases.collect()
    }

    /// Acquires or extends the lease `name`; returns true if `holder` has it now. A lease that ends
    /// more than a minute too late, written by a wrong clock, is taken over.
    pub async fn acquire_lease(
        &mut self,
        name: &str,
        holder: Uuid,
        now: Timestamp,
        lifetime: SignedDuration,
    ) -> Result<bool, StoreError> {
        let sql = "INSERT INTO leases (name, holder, expires_at) VALUES ($1, $2, $3)
                   ON CONFLICT (name) DO UPDATE
                   SET holder = excluded.holder, expires_at = excluded.expires_at
                   WHERE leases.holder = excluded.holder OR leases.expires_at <= $4
                     OR leases.expires_at > $5";
        let done = query(sql)
            .bind(name)
            .bind(holder.to_string())
            .bind((now + lifetime).as_millisecond())
            .bind(now.as_millisecond())
            .bind((now + lifetime + MAX_CLOCK_ERROR).as_millisecond())
            .write_in(self)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Ends the lease `name` if `holder` has it.
    pub async fn release_lease(&mut self, name: &str, holder: Uuid) -> Result<(), StoreError> {
        query("DELETE FROM leases WHERE name = $1 AND holder = $2")
            .bind(name)
            .bind(holder.to_string())
            .write_in(self)
            .await?;
        Ok(())
    }
}
