//! Metrics of one plan's routes on one worker, created on first use.

use crate::metrics::RouteMetrics;
use crate::registry::Registry;
use std::cell::OnceCell;
use std::sync::Arc;

/// The route id for requests that match no route.
pub const UNMATCHED: &str = "unmatched";

/// Metrics of one plan's routes on one worker; an unused route costs one pointer.
///
/// Created when a worker applies a plan. Counts of a route that the previous plan had continue.
#[derive(Debug)]
pub struct RouteTable {
    registry: Arc<Registry>,
    worker: usize,
    ids: Arc<[Arc<str>]>,
    cells: Box<[OnceCell<Arc<RouteMetrics>>]>,
    unmatched: OnceCell<Arc<RouteMetrics>>,
}

impl RouteTable {
    /// A table for the routes `ids`, in the plan's order.
    pub fn new(registry: Arc<Registry>, worker: usize, ids: Arc<[Arc<str>]>) -> Self {
        let cells = ids.iter().map(|_| OnceCell::new()).collect();
        Self {
            registry,
            worker,
            ids,
            cells,
            unmatched: OnceCell::new(),
        }
    }

    /// Metrics of the route at `index` in the plan; [`UNMATCHED`]'s for `None`.
    #[inline]
    pub fn route(&self, index: Option<usize>) -> &RouteMetrics {
        let slot = index.and_then(|index| self.cells.get(index));
        match slot.and_then(OnceCell::get) {
            Some(cells) => cells,
            None => self.first_use(index),
        }
    }

    /// Like [`Self::route`], as a shared reference.
    #[must_use]
    pub fn shared(&self, index: Option<usize>) -> Arc<RouteMetrics> {
        Arc::clone(self.first_use(index))
    }

    #[cold]
    fn first_use(&self, index: Option<usize>) -> &Arc<RouteMetrics> {
        let named = index.and_then(|index| Some((self.cells.get(index)?, self.ids.get(index)?)));
        let (slot, id) = named.map_or((&self.unmatched, UNMATCHED), |(slot, id)| (slot, id));
        slot.get_or_init(|| self.registry.route(self.worker, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Outcome;
    use crate::registry::RegistrySettings;
    use std::time::Duration;

    const OUTCOME: Outcome = Outcome {
        status: 200,
        took: Duration::from_millis(3),
        bytes_in: 0,
        bytes_out: 10,
        failed: false,
        aborted: false,
    };

    fn registry() -> Arc<Registry> {
        Arc::new(Registry::new(RegistrySettings {
            reasons: &[],
            max_series: 10,
        }))
    }

    #[test]
    fn an_unused_route_costs_one_pointer() {
        assert_eq!(size_of::<OnceCell<Arc<RouteMetrics>>>(), size_of::<usize>());
    }

    #[test]
    fn only_routes_that_were_used_are_known_to_the_registry() {
        let registry = registry();
        let ids = ["a", "b", "c"].map(Arc::from);
        let table = RouteTable::new(Arc::clone(&registry), 0, ids.into());

        table.route(Some(1)).record(&OUTCOME);
        table.route(None).record(&OUTCOME);
        table.route(Some(7)).record(&OUTCOME);

        let snapshot = registry.snapshot();
        let counts: Vec<_> = snapshot
            .routes
            .iter()
            .map(|(id, total)| (id.as_ref(), total.requests()))
            .collect();
        assert_eq!(counts, [("b", 1), (UNMATCHED, 2)]);
    }

    #[test]
    fn a_route_counts_on_when_the_plan_changes() {
        let registry = registry();
        let old = RouteTable::new(Arc::clone(&registry), 0, ["a"].map(Arc::from).into());
        let new = RouteTable::new(Arc::clone(&registry), 0, ["b", "a"].map(Arc::from).into());

        old.route(Some(0)).record(&OUTCOME);
        new.route(Some(1)).record(&OUTCOME);
        drop(old);

        let snapshot = registry.snapshot();
        assert_eq!(snapshot.routes.len(), 1);
        assert_eq!(snapshot.requests(), 2);
    }
}
