//! A route with a cache, and the counters of its outcomes.

use crate::exchange::Exchange;
use crate::worker::cache_counters::CacheOutcome;
use proxy_cache::CacheStore;
use proxy_plan::{CachePlan, RoutePlan};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedRoute<'p> {
    pub(crate) route: &'p RoutePlan,
    pub(crate) settings: &'p CachePlan,
    pub(crate) store: &'p Arc<CacheStore>,
}

impl CachedRoute<'_> {
    /// Writes the outcome into the request's record, and counts it.
    pub(super) fn record(self, exchange: &mut Exchange, outcome: CacheOutcome) {
        exchange.record().cache = Some(outcome);
        let counters = exchange.active().caches.get(self.route.index);
        if let Some(Some(counters)) = counters {
            counters.add(outcome);
        }
    }
}
