//! Caching of responses.

use crate::place::{Place, Setting};
use http::HeaderName;
use std::time::Duration;

/// Bounds of the store that all routes share: the `cache` block of the top level.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Bytes of all stored responses, with those that are being read.
    pub max_bytes: Setting<u64>,
    /// Bytes of one stored body.
    pub max_object_bytes: Setting<u64>,
}

/// Caching of a route's responses.
#[derive(Clone, Debug)]
pub struct RouteCache {
    /// Place of the block.
    pub place: Place,
    /// Lifetime of responses that state none; `None` stores no such response.
    pub ttl: Option<Setting<Duration>>,
    /// Heuristic lifetime in percent of the time since `Last-Modified`; `None` for no such
    /// lifetime.
    pub heuristic_percent: Option<Setting<u32>>,
    /// Statuses of responses that may be stored.
    pub statuses: Setting<Vec<u16>>,
    /// Request fields that are part of the key.
    pub key_headers: Vec<Setting<HeaderName>>,
    /// Query parameters that are not part of the key.
    pub ignore_query: Vec<Setting<String>>,
    /// Time for which a stale response is served while a new one is fetched.
    pub stale_while_revalidate: Setting<Duration>,
    /// Time for which a stale response is served in place of an error.
    pub stale_if_error: Setting<Duration>,
    /// Maximum wait for the response to another request of the same key.
    pub collapse: Setting<Duration>,
    /// True if `Cache-Control` of clients counts.
    pub client_directives: Setting<bool>,
    /// True if responses carry `Cache-Status`.
    pub cache_status: Setting<bool>,
}

impl RouteCache {
    /// Stored statuses of a route that names none: those that are cacheable by default, except
    /// partial and rare ones. [RFC 9110 §15.1]
    pub const USUAL_STATUSES: [u16; 7] = [200, 203, 204, 301, 308, 404, 410];
}
