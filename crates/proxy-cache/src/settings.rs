//! Settings of caching.

use http::HeaderName;
use std::time::Duration;

/// Settings of one route's caching. Destructured by naming every field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Seconds for which a response without a stated lifetime is fresh: `ttl-secs`; `None` does not
    /// store such a response.
    pub default_ttl: Option<u32>,
    /// Heuristic lifetime in percent of the time since `Last-Modified`, for responses without a
    /// stated lifetime: `heuristic-percent`. It has precedence over `default_ttl`.
    pub heuristic_percent: Option<u32>,
    /// Statuses of responses that may be stored: `statuses`.
    pub statuses: Vec<u16>,
    /// Request fields that are part of the key: `key-headers`.
    pub key_headers: Vec<HeaderName>,
    /// Query parameters that are not part of the key: `ignore-query`.
    pub ignore_query: Vec<String>,
    /// Default of the seconds for which a stale response is served while a new one is fetched:
    /// `stale-while-revalidate-secs`.
    pub stale_while_revalidate: u32,
    /// Default of the seconds for which a stale response is served in place of an error:
    /// `stale-if-error-secs`.
    pub stale_if_error: u32,
    /// Maximum time that a request waits for the response to another one: `collapse-secs`; 0 does
    /// not wait.
    pub collapse: Duration,
    /// True if `no-cache`, `max-age`, `min-fresh` and `max-stale` of clients count:
    /// `client-directives`.
    pub client_directives: bool,
    /// True if responses carry `Cache-Status`: `cache-status`.
    pub cache_status: bool,
}

/// Bounds of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreLimits {
    /// Bytes of all responses with heads and keys, including responses being read: `max-bytes`.
    pub max_bytes: u64,
    /// Bytes of one body: `max-object-bytes`, at most an eighth of `max_bytes`.
    pub max_object_bytes: u64,
}
