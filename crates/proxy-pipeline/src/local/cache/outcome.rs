//! Routes that cache, and the outcomes that are counted for them.

use crate::exchange::Exchange;
use crate::worker::cache_counters::CacheOutcome;
use proxy_cache::CacheStore;
use proxy_plan::{CachePlan, RoutePlan};
use std::sync::Arc;

/// A route that caches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedRoute<'p> {
    pub(crate) route: &'p RoutePlan,
    pub(crate) settings: &'p CachePlan,
    pub(crate) store: &'p Arc<CacheStore>,
}

/// Records and counts the outcome.
pub(super) fn record(exchange: &mut Exchange, cached: CachedRoute<'_>, outcome: CacheOutcome) {
    exchange.record().cache = Some(outcome);
    let counters = exchange.active().caches.get(cached.route.index);
    if let Some(Some(counters)) = counters {
        counters.add(outcome);
    }
}
