//! Effects of the cache on requests, and their metrics.

use proxy_plan::RoutePlan;
use proxy_telemetry::{Registry, SharedCounter, names};
use std::sync::Arc;

/// Effect of the cache on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheOutcome {
    /// A stored response was fresh.
    Hit,
    /// A stored response was served although it is stale.
    Stale,
    /// The upstream confirmed that the stored response is still valid.
    Revalidated,
    /// The upstream's response was sent.
    Miss,
    /// The store was not used.
    Bypass,
}

/// Requests of one route that caches, by outcome.
#[derive(Clone, Debug)]
pub(crate) struct CacheCounters([Arc<SharedCounter>; 5]);

impl CacheOutcome {
    /// All outcomes, in the order of the counters.
    const ALL: [Self; 5] = [
        Self::Hit,
        Self::Stale,
        Self::Revalidated,
        Self::Miss,
        Self::Bypass,
    ];

    /// The word in access records and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "stale",
            Self::Revalidated => "revalidated",
            Self::Miss => "miss",
            Self::Bypass => "bypass",
        }
    }
}

impl CacheCounters {
    /// The counters of `route`; `None` if it does not cache.
    pub(crate) fn new(route: &RoutePlan, registry: &Registry) -> Option<Self> {
        route.cache.as_ref()?;
        let counter = |outcome: CacheOutcome| {
            registry.counter(&names::CACHE_REQUESTS_TOTAL, [&*route.id, outcome.name()])
        };
        Some(Self(CacheOutcome::ALL.map(counter)))
    }

    pub(crate) fn add(&self, outcome: CacheOutcome) {
        if let Some(counter) = self.0.get(outcome as usize) {
            counter.add(1);
        }
    }
}
