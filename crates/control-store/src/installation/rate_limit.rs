//! Token buckets shared by all replicas, which take tokens in groups.

use crate::error::StoreError;
use crate::row::number;
use crate::statement::{Write, sql};
use crate::store::Transaction;
use jiff::Timestamp;
use sqlx::query;

const MICROS_PER_MINUTE: i64 = 60_000_000;
/// Tolerance for wrong clocks. A bucket with a fill time later than an empty bucket's, by more
/// than this, was written by a wrong clock.
const MAX_CLOCK_ERROR_MICROS: i64 = 10_000_000;

/// Parameters of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens refilled per minute; at least 1.
    pub per_minute: i64,
    /// Capacity of the bucket; at least 1.
    pub burst: i64,
}

/// Result of taking tokens from a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Number of taken tokens; 0 if the bucket is empty.
    pub taken: i64,
    /// Time when the bucket is full again, in microseconds since 1970.
    pub full_at_micros: i64,
}

impl Rate {
    /// Time to refill one token, in microseconds.
    pub fn token_micros(self) -> i64 {
        MICROS_PER_MINUTE / self.per_minute.max(1)
    }

    /// Maximum plausible wait for a token, in microseconds; a longer one comes from a wrong clock.
    pub fn max_wait_micros(self) -> i64 {
        self.token_micros() + MAX_CLOCK_ERROR_MICROS
    }

    /// Tokens left in a bucket that is full again at `full_at_micros`.
    pub fn tokens_left(self, full_at_micros: i64, now: Timestamp) -> i64 {
        let missing = (full_at_micros - now.as_microsecond()).max(0);
        let missing_tokens =
            missing.div_euclid(self.token_micros()) + i64::from(missing % self.token_micros() != 0);
        (self.burst - missing_tokens).clamp(0, self.burst)
    }
}

impl Transaction {
    /// Takes up to `wanted` tokens of bucket `name` in one statement. A bucket with an implausibly
    /// late fill time, from a fast clock, counts as having a single token, so that it does not lock
    /// clients out until then.
    pub async fn take_tokens(
        &mut self,
        name: &str,
        rate: Rate,
        wanted: i64,
        now: Timestamp,
    ) -> Result<Group, StoreError> {
        let token = rate.token_micros();
        let now = now.as_microsecond();
        let wanted = wanted.clamp(1, rate.burst);
        // `room`: tokens in the bucket, derived from the time until it is full.
        let sql = "INSERT INTO rate_limits (name, full_at, taken) VALUES ($1, $2 + $3 * $4, $4)
                   ON CONFLICT (name) DO UPDATE SET
                     taken = CASE
                       WHEN rate_limits.full_at > $2 + $3 * $5 + $6 THEN 1
                       WHEN ($2 + $3 * $5 - rate_limits.full_at) / $3 >= $4 THEN $4
                       WHEN rate_limits.full_at <= $2 THEN $4
                       ELSE ($2 + $3 * $5 - rate_limits.full_at) / $3 END,
                     full_at = CASE
                       WHEN rate_limits.full_at > $2 + $3 * $5 + $6 THEN $2 + $3 * $5
                       WHEN rate_limits.full_at <= $2 THEN $2 + $3 * $4
                       WHEN ($2 + $3 * $5 - rate_limits.full_at) / $3 >= $4
                         THEN rate_limits.full_at + $3 * $4
                       ELSE rate_limits.full_at
                         + $3 * (($2 + $3 * $5 - rate_limits.full_at) / $3) END
                   WHERE rate_limits.full_at <= $2 + $3 * ($5 - 1)
                     OR rate_limits.full_at > $2 + $3 * $5 + $6
                   RETURNING full_at, taken";
        let row = query(sql)
            .bind(name)
            .bind(now)
            .bind(token)
            .bind(wanted)
            .bind(rate.burst)
            .bind(MAX_CLOCK_ERROR_MICROS)
            .fetch_optional(self.connection())
            .await;
        let row = row.map_err(|error| self.note_error(error))?;
        if let Some(row) = row {
            self.count_written(1);
            return Ok(Group {
                taken: number(&row, "taken")?,
                full_at_micros: number(&row, "full_at")?,
            });
        }
        let sql = "SELECT full_at FROM rate_limits WHERE name = $1";
        let row = query(sql).bind(name).fetch_one(self.connection()).await?;
        Ok(Group {
            taken: 0,
            full_at_micros: number(&row, "full_at")?,
        })
    }

    /// Returns `count` tokens to a bucket.
    pub async fn return_tokens(
        &mut self,
        name: &str,
        rate: Rate,
        count: i64,
    ) -> Result<(), StoreError> {
        let earlier = sql("UPDATE rate_limits SET full_at = full_at - $1 WHERE name = $2");
        let earlier = earlier.bind(rate.token_micros() * count).bind(name);
        earlier.run(self).await?;
        Ok(())
    }

    /// Deletes at most `limit` buckets that were full before `now`; returns their number.
    pub async fn purge_buckets(&mut self, now: Timestamp, limit: i64) -> Result<u64, StoreError> {
        let sql = "DELETE FROM rate_limits WHERE name IN
                   (SELECT name FROM rate_limits WHERE full_at < $1 ORDER BY full_at LIMIT $2)
                   AND full_at < $1";
        let done = query(sql)
            .bind(now.as_microsecond())
            .bind(limit)
            .write_in(self)
            .await?;
        Ok(done.rows_affected())
    }
}
