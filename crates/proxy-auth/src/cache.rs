//! A cache of verified credentials, for a minute.

use crate::basic::BasicCredentials;
use aws_lc_rs::hmac;
use std::collections::HashMap;
use std::time::Duration;

/// Lifetime of cached credentials.
const LIFETIME: Duration = Duration::from_mins(1);
/// Maximum number of cached credentials.
const CAPACITY: usize = 1_024;

/// Length of a client's key.
const CLIENT_BYTES: usize = 9;

/// A keyed digest of a client and its credentials: without the key, of no use for guessing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CredentialDigest([u8; 32]);

/// Digests of credentials that were right, so that a slow hash is not computed for each request.
pub struct CredentialCache {
    key: hmac::Key,
    /// Ends of their lifetimes.
    entries: HashMap<CredentialDigest, Duration>,
}

impl CredentialCache {
    /// An empty cache; `secret` is random, and of this process alone.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            entries: HashMap::new(),
        }
    }

    /// The digest of `credentials` as sent by `client`: proof by one client does not validate
    /// another client's guesses.
    #[must_use]
    pub fn digest(
        &self,
        client: [u8; CLIENT_BYTES],
        credentials: &BasicCredentials,
    ) -> CredentialDigest {
        // A client has a fixed length and a user no colon, so the text is unambiguous.
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&client);
        context.update(credentials.user().as_bytes());
        context.update(b":");
        context.update(credentials.password().as_bytes());
        let tag = context.sign();
        let mut digest = [0; 32];
        let known = digest.iter_mut().zip(tag.as_ref());
        known.for_each(|(to, from)| *to = *from);
        CredentialDigest(digest)
    }

    /// Returns true if the credentials with this digest were right within the last minute before
    /// `now`.
    #[must_use]
    pub fn contains(&self, digest: &CredentialDigest, now: Duration) -> bool {
        self.entries.get(digest).is_some_and(|end| now < *end)
    }

    /// Caches verified credentials at `now`. The oldest entries are evicted.
    pub fn insert(&mut self, digest: CredentialDigest, now: Duration) {
        if CAPACITY <= self.entries.len() {
            self.entries.retain(|_, end| now < *end);
        }
        if CAPACITY <= self.entries.len() {
            let oldest = self.entries.iter().min_by_key(|(_, end)| **end);
            if let Some(oldest) = oldest.map(|(digest, _)| *digest) {
                self.entries.remove(&oldest);
            }
        }
        self.entries.insert(digest, now.saturating_add(LIFETIME));
    }
}

impl std::fmt::Debug for CredentialCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CredentialCache({} entries)", self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(encoded: &str) -> BasicCredentials {
        BasicCredentials::parse(format!("Basic {encoded}").as_bytes()).unwrap()
    }

    #[test]
    fn right_credentials_are_remembered_for_a_minute() {
        let mut cache = CredentialCache::new(b"secret");
        let now = Duration::from_secs(5);
        // ann:one and ann:two.
        let [one, two] =
            ["YW5uOm9uZQ==", "YW5uOnR3bw=="].map(|text| cache.digest([1; 9], &credentials(text)));

        cache.insert(one, now);

        assert!(cache.contains(&one, now + Duration::from_secs(59)));
        assert!(!cache.contains(&one, now + LIFETIME));
        assert!(!cache.contains(&two, now));
        let by_another = cache.digest([2; 9], &credentials("YW5uOm9uZQ=="));
        assert!(!cache.contains(&by_another, now));
        let elsewhere = CredentialCache::new(b"other");
        assert_ne!(one, elsewhere.digest([1; 9], &credentials("YW5uOm9uZQ==")));
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut cache = CredentialCache::new(b"secret");
        for number in 0..CAPACITY + 10 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            let now = Duration::from_millis(u64::try_from(number).unwrap());
            cache.insert(CredentialDigest(digest), now);
        }
        assert_eq!(cache.entries.len(), CAPACITY);
        assert!(!cache.contains(&CredentialDigest([0; 32]), Duration::ZERO));
    }
}
