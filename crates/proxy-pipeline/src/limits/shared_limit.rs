//! A rate limit with buckets in a store that several proxies share.

use aws_lc_rs::digest::{SHA256, digest};
use proxy_redis::{Answer, SharedBuckets, SharedRate};
use std::sync::Arc;

/// One rate limit's buckets in a store.
#[derive(Clone, Debug)]
pub struct SharedLimit {
    /// Buckets of all proxies that share the store.
    pub buckets: Arc<SharedBuckets>,
    /// Rate and burst.
    pub rate: SharedRate,
    /// Prefix of all keys of the limit, the same for proxies with the same limit.
    pub prefix: Arc<str>,
}

/// Maximum length of a value in a key, in bytes; a longer one is replaced by its digest.
const MAX_VALUE_BYTES: usize = 128;

impl SharedLimit {
    /// Takes one token from the bucket of `value`; requests with `None` share a bucket, too.
    pub(crate) fn take(&self, value: Option<&[u8]>) -> Answer {
        let mut key = self.prefix.as_bytes().to_vec();
        // The first byte distinguishes an absent, a literal and a digested value.
        match value {
            None => key.push(b'-'),
            Some(value) if value.len() <= MAX_VALUE_BYTES => {
                key.push(b'=');
                key.extend_from_slice(value);
            }
            Some(value) => {
                key.push(b'#');
                key.extend_from_slice(digest(&SHA256, value).as_ref());
            }
        }
        self.buckets.take(key, self.rate)
    }
}
