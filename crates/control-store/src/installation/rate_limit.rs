//! Token buckets that all replicas share: a replica takes tokens in groups.

use crate::error::StoreError;
use crate::row::number;
use crate::statement::{Write, sql};
use crate::store::Transaction;
use jiff::Timestamp;
use sqlx::query;

const MICROS_PER_MINUTE: i64 = 60_000_000;
/// The clocks of replicas differ by less. A bucket that is full again later than an empty one of that time is of a
/// clock that was wrong.
const MAX_CLOCK_ERROR_MICROS: i64 = 10_000_000;

/// Rate and burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Refill of tokens per minute, 1 or more.
    pub per_minute: i64,
    /// Tokens of a full bucket, 1 or more.
    pub burst: i64,
}

/// Tokens taken from a bucket, and its remaining ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// 0 if the bucket is empty.
    pub taken: i64,
    /// Time when the bucket is full again, in microseconds since 1970.
    pub full_at_micros: i64,
}

impl Rate {
    /// Refill time of one token, in microseconds.
    pub fn token_micros(self) -> i64 {
        MICROS_PER_MINUTE / self.per_minute.max(1)
    }

    /// The longest wait for a token of a bucket that right clocks wrote, in microseconds.
    pub fn max_wait_micros(self) -> i64 {
        self.token_micros() + MAX_CLOCK_ERROR_MICROS
    }

    /// Tokens in a bucket that is full again at `full_at_micros`.
    pub fn tokens_left(self, full_at_micros: i64, now: Timestamp) -> i64 {
        let missing = (full_at_micros - now.as_microsecond()).max(0);
        let missing_tokens =
            missing.div_euclid(self.token_micros()) + i64::from(missing % self.token_micros() != 0);
        (self.burst - missing_tokens).clamp(0, self.burst)
    }
}

impl Transaction {
    /// Takes up to `wanted` tokens of bucket `name`, in one statement. A bucket with a time in the
    /// future, written with a fast clock, counts as one with a single token, so that it locks no
    /// client out until that time.
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
        // `room`: tokens in the bucket, from the time that is left until it is full.
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
            .await?;
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

    /// Puts `count` tokens of a bucket back, as if they had not been taken.
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

    /// Deletes at most `limit` buckets that were full before `now`. Returns the number of deleted rows.
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
