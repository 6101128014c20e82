//! Rate limits shared by all replicas: each takes tokens from the database in groups.
//!
//! A request takes a token from its replica's stock in memory. One write to the database refills an
//! empty stock with a group of tokens, and concurrent requests wait for that write. A replica
//! remembers that a bucket is empty until its next token is due, so a flood of refused requests
//! costs no statements either. Each replica may exceed the burst by one group.

use crate::app::write_queue::WriteQueue;
use crate::error::Error;
use control_store::Rate;
use jiff::Timestamp;
use quick_cache::sync::Cache;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::Mutex;

/// Maximum number of tokens that a replica takes at once.
const MAX_TOKENS_TAKEN: i64 = 10;
/// A replica takes at most this fraction of a bucket's burst at once, because the client's next
/// request may reach another replica.
const BURST_FRACTION: i64 = 5;
/// Lifetime of a group in memory; a node's heartbeats then cost one write in five minutes.
const GROUP_LIFETIME_MICROS: i64 = 600 * 1_000_000;
/// Maximum number of buckets in memory; the least used ones are evicted with their tokens.
const MAX_BUCKETS: usize = 100_000;

/// Decision of a rate limit on one request, with the state of the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// True if the request may pass.
    pub admitted: bool,
    /// Capacity of the bucket, in tokens.
    pub limit: i64,
    /// Remaining tokens.
    pub remaining: i64,
    /// Time when the bucket is full again.
    pub full_at: Timestamp,
    /// Seconds until the next token, at least 1.
    pub retry_after_secs: u64,
}

/// Tokens that this replica took from the shared buckets and has not spent.
#[derive(Debug)]
pub(crate) struct RateLimiter(Cache<String, Arc<TokenCount>>);

/// State of one bucket in this replica. Times are in microseconds since 1970.
#[derive(Debug, Default)]
struct TokenCount {
    tokens: AtomicI64,
    good_until: AtomicI64,
    /// Time when the shared bucket is full again, as of the last group.
    full_at: AtomicI64,
    empty_until: AtomicI64,
    /// Held while a group is taken, so that concurrent requests do not take one each and empty the
    /// bucket.
    taking: Mutex<()>,
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self(Cache::new(MAX_BUCKETS))
    }
}

impl RateLimiter {
    /// Takes a token of the bucket `name`, from memory if one is left.
    pub(crate) async fn take(
        &self,
        writes: &WriteQueue,
        name: &str,
        rate: Rate,
        now: Timestamp,
    ) -> Result<Allowance, Error> {
        let held = self.held(name);
        if let Some(known) = held.known(rate, now) {
            return Ok(known);
        }
        let _taking = held.taking.lock().await;
        if let Some(known) = held.known(rate, now) {
            return Ok(known);
        }
        let wanted = (rate.burst / BURST_FRACTION).clamp(1, MAX_TOKENS_TAKEN);
        let group = writes.take_tokens(name, rate, wanted, now).await?;
        held.full_at.store(group.full_at_micros, Ordering::Relaxed);
        if group.taken == 0 {
            let next = group.full_at_micros - rate.token_micros() * (rate.burst - 1);
            held.empty_until.store(next, Ordering::Relaxed);
            return Ok(held.allowance(false, rate, now));
        }
        held.add(group.taken - 1, now.as_microsecond());
        Ok(held.allowance(true, rate, now))
    }

    /// Returns true if the bucket is known to be empty, without taking a token or querying the
    /// database.
    pub(crate) fn is_empty(&self, name: &str, rate: Rate, now: Timestamp) -> bool {
        let held = self.0.get(name);
        held.is_some_and(|held| held.is_empty(rate, now.as_microsecond()))
    }

    /// The allowance of a request that an empty bucket refuses.
    pub(crate) fn refusal(&self, name: &str, rate: Rate, now: Timestamp) -> Allowance {
        self.held(name).allowance(false, rate, now)
    }

    fn held(&self, name: &str) -> Arc<TokenCount> {
        let new = || Ok::<_, Infallible>(Arc::default());
        let Ok(held) = self.0.get_or_insert_with(name, new);
        held
    }
}

impl TokenCount {
    /// Decides without the database, if possible. Tokens in memory are valid although the shared
    /// bucket is empty.
    fn known(&self, rate: Rate, now: Timestamp) -> Option<Allowance> {
        let micros = now.as_microsecond();
        if self.take(micros) {
            return Some(self.allowance(true, rate, now));
        }
        let is_empty = self.is_empty(rate, micros);
        is_empty.then(|| self.allowance(false, rate, now))
    }

    /// Returns true if the next token is not due yet. A wait longer than one token's comes from a
    /// clock that was ahead, and is ignored.
    fn is_empty(&self, rate: Rate, micros: i64) -> bool {
        let wait = self.empty_until.load(Ordering::Relaxed) - micros;
        (1..=rate.max_wait_micros()).contains(&wait)
    }

    fn take(&self, micros: i64) -> bool {
        if self.good_until.load(Ordering::Relaxed) <= micros {
            return false;
        }
        let one_less = |tokens: i64| (tokens > 0).then(|| tokens - 1);
        self.tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    }

    fn add(&self, tokens: i64, micros: i64) {
        let good_until = micros + GROUP_LIFETIME_MICROS;
        if self.good_until.swap(good_until, Ordering::Relaxed) <= micros {
            self.tokens.store(tokens, Ordering::Relaxed);
        } else {
            self.tokens.fetch_add(tokens, Ordering::Relaxed);
        }
    }

    fn allowance(&self, admitted: bool, rate: Rate, now: Timestamp) -> Allowance {
        let full_at = self.full_at.load(Ordering::Relaxed);
        let own = self.tokens.load(Ordering::Relaxed).max(0);
        let wait = self.empty_until.load(Ordering::Relaxed) - now.as_microsecond();
        let remaining = if admitted {
            (own + rate.tokens_left(full_at, now)).min(rate.burst - 1)
        } else {
            0
        };
        let missing = (rate.burst - remaining) * rate.token_micros();
        let full_at = now.as_microsecond() + missing;
        Allowance {
            admitted,
            limit: rate.burst,
            remaining,
            full_at: Timestamp::from_microsecond(full_at).unwrap_or(Timestamp::MAX),
            retry_after_secs: u64::try_from(wait.div_euclid(1_000_000) + 1)
                .unwrap_or(1)
                .max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    /// A token per second.
    const RATE: Rate = Rate {
        per_minute: 60,
        burst: 5,
    };

    #[test]
    fn an_empty_bucket_is_forgotten_after_its_clock_was_an_hour_ahead() {
        let at = |secs| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs);
        let limiter = RateLimiter::default();
        let held = limiter.held("key");
        assert!(!limiter.is_empty("key", RATE, at(3_600)));
        // Emptied by a clock that was an hour ahead.
        let next_token = at(3_601).as_microsecond();
        held.empty_until.store(next_token, Ordering::Relaxed);

        // The clock may be set back by ten seconds without an effect.
        for (secs, is_empty) in [
            (3_600, true),
            (3_601, false),
            (3_590, true),
            (3_589, false),
            (1, false),
            (0, false),
        ] {
            assert_eq!(limiter.is_empty("key", RATE, at(secs)), is_empty, "{secs}");
            assert_eq!(held.known(RATE, at(secs)).is_some(), is_empty, "{secs}");
        }
    }
}
