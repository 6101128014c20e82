//! Leases: work that must run once among any number of replicas.

use crate::error::StoreError;
use crate::row::{id, text, time};
use crate::statement::{Write, sql};
use crate::store::Transaction;
use jiff::{SignedDuration, Timestamp};
use sqlx::query;
use uuid::Uuid;

/// A lease that ends later than this beyond its lifetime is of a clock that was wrong, or is here.
const MAX_CLOCK_ERROR: SignedDuration = SignedDuration::from_mins(1);

/// Work that one replica does, and the replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Name of the work, unique: one replica at a time holds its lease.
    pub name: String,
    /// The replica, under the name that it chose at its start.
    pub holder: Uuid,
    /// Another replica takes over from then on.
    pub ends_at: Timestamp,
}

impl Transaction {
    /// All leases, those that ended too, by name.
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

    /// Takes or extends the lease `name` for `holder`. Returns true if `holder` has it now. A lease that ends
    /// implausibly late, by over a minute, is taken over.
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

    /// Ends the lease `name` of `holder`, if it has it.
    pub async fn release_lease(&mut self, name: &str, holder: Uuid) -> Result<(), StoreError> {
        query("DELETE FROM leases WHERE name = $1 AND holder = $2")
            .bind(name)
            .bind(holder.to_string())
            .write_in(self)
            .await?;
        Ok(())
    }
}
