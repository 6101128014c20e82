//! Leases: work that must run once, whatever the number of replicas.

use crate::error::StoreError;
use crate::statement::Write;
use crate::store::Transaction;
use jiff::{SignedDuration, Timestamp};
use sqlx::query;
use uuid::Uuid;

/// A lease that ends later than this beyond its lifetime is of a clock that was wrong, or is here.
const MAX_CLOCK_ERROR: SignedDuration = SignedDuration::from_mins(1);

impl Transaction {
    /// Takes or extends the lease `name` for `holder`; whether `holder` has it now. One that ends over a
    /// minute too late is not waited for.
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
}
