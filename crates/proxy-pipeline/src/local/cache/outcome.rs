//! The effect of the cache on a request.

use crate::exchange::Exchange;
use crate::response::body::Body;
use crate::worker::cache_counters::CacheOutcome;
use http::Response;
use proxy_cache::{CacheStatus, CacheStore};
use proxy_plan::{CachePlan, RoutePlan};
use std::sync::Arc;

/// A route that caches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedRoute<'p> {
    pub(crate) route: &'p RoutePlan,
    pub(crate) settings: &'p CachePlan,
    pub(crate) store: &'p Arc<CacheStore>,
}

/// The effect of the cache on a request.
pub(crate) enum Cached {
    /// It has a response.
    Response(Response<Body>),
    /// It is forwarded without the store, for this reason.
    Bypassed(CacheStatus),
}

/// Records and counts the outcome.
pub(super) fn record(exchange: &mut Exchange, cached: CachedRoute<'_>, outcome: CacheOutcome) {
    exchange.record().cache = Some(outcome);
    let counters = exchange.active().caches.get(cached.route.index);
    if let Some(Some(counters)) = counters {
        counters.add(outcome);
    }
}
