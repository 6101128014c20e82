//! The metrics of the response cache.

use proxy_cache::{CacheStore, Figures};
use proxy_plan::Plan;
use proxy_telemetry::{GaugeSource, Registry, names};
use std::sync::Arc;

/// The gauges of the current plan's cache. They are exported until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct CacheGauges {
    /// Held for the registry, which refers to them weakly.
    _sources: Vec<Arc<dyn GaugeSource>>,
}

type ReadFigure = fn(&Figures) -> u64;

#[derive(Debug)]
struct CacheGauge {
    store: Arc<CacheStore>,
    read: ReadFigure,
}

impl GaugeSource for CacheGauge {
    fn value(&self) -> u64 {
        (self.read)(&self.store.figures())
    }
}

impl CacheGauges {
    /// The gauges of the cache of `plan`; none if no route caches.
    pub(crate) fn new(plan: &Plan, registry: &Registry) -> Self {
        let Some(store) = plan.cache() else {
            return Self::default();
        };
        let gauges: [(_, ReadFigure); 2] = [
            (&names::CACHE_BYTES, |figures| figures.bytes),
            (&names::CACHE_OBJECTS, |figures| figures.objects),
        ];
        let sources = gauges.into_iter().map(|(gauge, read)| {
            let store = Arc::clone(store);
            let source: Arc<dyn GaugeSource> = Arc::new(CacheGauge { store, read });
            registry.show_gauge(gauge, [], Arc::downgrade(&source));
            source
        });
        Self {
            _sources: sources.collect(),
        }
    }
}
