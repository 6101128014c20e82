//! Cache of a provider's keys, and the times to fetch them again.

use super::key_set::KeySet;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Minimum lifetime of cached keys.
const MIN_LIFETIME: SignedDuration = SignedDuration::from_mins(5);
/// Maximum lifetime of cached keys.
const MAX_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// Lifetime of cached keys if the response has no `max-age`.
const USUAL: SignedDuration = SignedDuration::from_hours(1);
/// Minimum time between two fetches caused by an unknown key, because a forged token may name any
/// key.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// Keys with the time when they were fetched.
#[derive(Clone, Debug)]
pub struct KeyCache {
    /// Keys of the last fetch.
    pub keys: Arc<KeySet>,
    fetched_at: Timestamp,
    fresh_until: Timestamp,
}

impl KeyCache {
    /// Keys fetched at `now`; `max_age_secs` is from the response's `Cache-Control`.
    pub fn new(keys: KeySet, max_age_secs: Option<u32>, now: Timestamp) -> Self {
        let age = max_age_secs.map_or(USUAL, |secs| SignedDuration::from_secs(secs.into()));
        Self {
            keys: Arc::new(keys),
            fetched_at: now,
            fresh_until: now + age.clamp(MIN_LIFETIME, MAX_LIFETIME),
        }
    }

    /// Returns true if the keys can be used. After a clock was set back they are fetched again.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.fetched_at <= now && now < self.fresh_until
    }

    /// Returns true if an unknown key may cause a fetch now, before the keys are stale.
    pub fn may_fetch_again(&self, now: Timestamp) -> bool {
        RETRY_INTERVAL <= now.duration_since(self.fetched_at).abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_between_floor_and_ceiling() {
        let start = Timestamp::UNIX_EPOCH;
        let cases = [
            (Some(0), 300),
            (Some(60), 300),
            (Some(600), 600),
            (None, 3_600),
            (Some(u32::MAX), 86_400),
        ];
        for (max_age_secs, expected) in cases {
            let keys = KeySet::parse(br#"{"keys":[]}"#).unwrap();
            let cache = KeyCache::new(keys, max_age_secs, start);
            let fresh_at = |secs| cache.is_fresh(start + SignedDuration::from_secs(secs));
            assert!(fresh_at(expected - 1) && !fresh_at(expected), "{expected}");
            assert!(!fresh_at(-1));
        }
    }

    #[test]
    fn an_unknown_key_is_asked_for_every_half_minute_at_most() {
        let start = Timestamp::UNIX_EPOCH;
        let keys = KeySet::parse(br#"{"keys":[]}"#).unwrap();
        let cache = KeyCache::new(keys, None, start);
        let may = |secs| cache.may_fetch_again(start + SignedDuration::from_secs(secs));
        assert!(!may(29) && may(30));
    }
}
