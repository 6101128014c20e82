//! Metrics of one kind, by name and worker.

use crate::metrics::MetricGroup;
use crate::scrape::snapshot::TargetName;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name for all names without a slot.
pub(crate) const OVERFLOW: &str = "overflow";

/// The key of metrics.
pub(crate) trait Name: Clone + Ord {
    /// The key for all names without a slot.
    fn overflow() -> Self;
}

/// The metrics of one name, by worker. Replaced as a whole when a worker joins, so that a scrape
/// takes them with one clone.
type Slots<C> = Arc<[Option<Arc<C>>]>;

/// Metrics of one kind, by name and worker.
#[derive(Debug)]
pub(crate) struct Family<K, C: MetricGroup> {
    entries: BTreeMap<K, Slots<C>>,
    overflow: Slots<C>,
    /// Counts of evicted names.
    evicted: Option<C::Total>,
}

/// A copy of the references, which a scrape sums without the lock.
pub(crate) struct View<K, C: MetricGroup> {
    entries: Vec<(K, Slots<C>)>,
    overflow: Slots<C>,
    evicted: Option<C::Total>,
}

impl<K, C: MetricGroup> Default for Family<K, C> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            overflow: Arc::default(),
            evicted: None,
        }
    }
}

impl<K: Name, C: MetricGroup> Family<K, C> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn find(&self, name: &K, worker: usize) -> Option<Arc<C>> {
        self.entries.get(name)?.get(worker)?.clone()
    }

    /// Returns true if `name` has a slot already.
    pub(crate) fn knows(&self, name: &K) -> bool {
        self.entries.contains_key(name) || *name == K::overflow()
    }

    pub(crate) fn add(&mut self, name: K, worker: usize) -> Arc<C> {
        if name == K::overflow() {
            return self.add_overflow(worker);
        }
        place(self.entries.entry(name).or_default(), worker)
    }

    pub(crate) fn add_overflow(&mut self, worker: usize) -> Arc<C> {
        place(&mut self.overflow, worker)
    }

    /// Frees the slots of unreferenced names; their counts move to the overflow.
    pub(crate) fn evict(&mut self) {
        let evicted = &mut self.evicted;
        self.entries.retain(|_, slots| {
            let unused = is_unused(slots);
            if unused {
                add_up(slots, evicted.get_or_insert_default());
            }
            !unused
        });
    }

    pub(crate) fn view(&self) -> View<K, C> {
        let entries = self.entries.iter();
        View {
            entries: entries
                .map(|(name, slots)| (name.clone(), Arc::clone(slots)))
                .collect(),
            overflow: Arc::clone(&self.overflow),
            evicted: self.evicted.clone(),
        }
    }
}

impl<K: Name, C: MetricGroup> View<K, C> {
    /// The sums by name, with `overflow` last if it exists.
    pub(crate) fn totals(self) -> Vec<(K, C::Total)> {
        let sum = |slots: &Slots<C>, mut total| {
            add_up(slots, &mut total);
            total
        };
        let entries = self.entries.into_iter();
        let mut totals: Vec<_> = entries
            .map(|(name, slots)| (name, sum(&slots, C::Total::default())))
            .collect();
        if self.evicted.is_some() || !self.overflow.is_empty() {
            let evicted = self.evicted.unwrap_or_default();
            totals.push((K::overflow(), sum(&self.overflow, evicted)));
        }
        totals
    }
}

impl Name for Arc<str> {
    fn overflow() -> Self {
        OVERFLOW.into()
    }
}

impl Name for TargetName {
    fn overflow() -> Self {
        Self {
            upstream: OVERFLOW.into(),
            address: OVERFLOW.into(),
        }
    }
}

fn place<C: MetricGroup>(slots: &mut Slots<C>, worker: usize) -> Arc<C> {
    if let Some(Some(metrics)) = slots.get(worker) {
        return Arc::clone(metrics);
    }
    let metrics = Arc::new(C::default());
    let mut wider = slots.to_vec();
    if wider.len() <= worker {
        wider.resize(worker + 1, None);
    }
    if let Some(slot) = wider.get_mut(worker) {
        *slot = Some(Arc::clone(&metrics));
    }
    *slots = wider.into();
    metrics
}

/// Returns true if only the registry holds references to these metrics. `get_mut` rather than the
/// reference count, because it also makes the writes of the last holder visible.
fn is_unused<C>(slots: &mut Slots<C>) -> bool {
    Arc::get_mut(slots).is_some_and(|slots| {
        let mut metrics = slots.iter_mut().flatten();
        metrics.all(|metrics| Arc::get_mut(metrics).is_some())
    })
}

fn add_up<C: MetricGroup>(slots: &Slots<C>, total: &mut C::Total) {
    for metrics in slots.iter().flatten() {
        metrics.add_to(total);
    }
}
