//! Single counters and gauges, by metric and labels.

use super::family::OVERFLOW;
use crate::metrics::{Gauge, SharedCounter};
use crate::names::metric::Metric;
use crate::scrape::snapshot::SeriesValue;
use crate::scrape::text::labels_text;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

/// The metric's name, and its labels as text.
type Key = (&'static str, Arc<str>);

/// Single counters and gauges.
#[derive(Debug, Default)]
pub(crate) struct SeriesTable {
    counters: BTreeMap<Key, Series>,
    gauges: BTreeMap<Key, Arc<Gauge>>,
    sources: BTreeMap<Key, Weak<dyn GaugeSource>>,
    overflow: BTreeMap<&'static str, Series>,
}

/// A gauge read from its owner when the metrics are scraped.
pub trait GaugeSource: fmt::Debug + Send + Sync {
    /// Value at the scrape.
    fn value(&self) -> u64;
}

#[derive(Debug)]
struct Series {
    cell: Arc<SharedCounter>,
    label_names: &'static [&'static str],
}

impl SeriesTable {
    pub(crate) fn len(&self) -> usize {
        self.counters.len() + self.gauges.len() + self.sources.len()
    }

    pub(crate) fn find_counter(
        &mut self,
        metric: &Metric,
        values: &[&str],
    ) -> Option<Arc<SharedCounter>> {
        if !values.is_empty() && values.iter().all(|value| *value == OVERFLOW) {
            return Some(self.overflow_counter(metric));
        }
        let found = self.counters.get(&key(metric, values))?;
        Some(Arc::clone(&found.cell))
    }

    pub(crate) fn find_gauge(&self, metric: &Metric, values: &[&str]) -> Option<Arc<Gauge>> {
        self.gauges.get(&key(metric, values)).map(Arc::clone)
    }

    pub(crate) fn add_counter(&mut self, metric: &Metric, values: &[&str]) -> Arc<SharedCounter> {
        let series = Series::new(metric.labels);
        let cell = Arc::clone(&series.cell);
        self.counters.insert(key(metric, values), series);
        cell
    }

    pub(crate) fn show_counter(
        &mut self,
        metric: &Metric,
        values: &[&str],
        cell: Arc<SharedCounter>,
    ) {
        let label_names = metric.labels;
        let series = Series { cell, label_names };
        self.counters.insert(key(metric, values), series);
    }

    pub(crate) fn add_gauge(&mut self, metric: &Metric, values: &[&str]) -> Arc<Gauge> {
        let cell = Arc::default();
        self.gauges.insert(key(metric, values), Arc::clone(&cell));
        cell
    }

    pub(crate) fn show_source(
        &mut self,
        metric: &Metric,
        values: &[&str],
        source: Weak<dyn GaugeSource>,
    ) {
        self.sources.insert(key(metric, values), source);
    }

    pub(crate) fn overflow_counter(&mut self, metric: &Metric) -> Arc<SharedCounter> {
        let overflow = self.overflow.entry(metric.name);
        Arc::clone(&overflow.or_insert_with(|| Series::new(metric.labels)).cell)
    }

    /// Frees the slots of unreferenced counters; their counts move to the overflow.
    pub(crate) fn evict(&mut self) {
        let overflow = &mut self.overflow;
        self.counters.retain(|(name, labels), series| {
            if labels.is_empty() || Arc::get_mut(&mut series.cell).is_none() {
                return true;
            }
            let kept = overflow.entry(name);
            let kept = kept.or_insert_with(|| Series::new(series.label_names));
            kept.cell.add(series.cell.get());
            false
        });
        self.forget_gauges();
    }

    /// The values by metric.
    pub(crate) fn values(&mut self) -> BTreeMap<&'static str, Vec<SeriesValue>> {
        self.forget_gauges();
        let mut values: BTreeMap<_, Vec<SeriesValue>> = BTreeMap::new();
        for ((name, labels), series) in &self.counters {
            let value = (Arc::clone(labels), series.cell.get());
            values.entry(*name).or_default().push(value);
        }
        for ((name, labels), gauge) in &self.gauges {
            let value = (Arc::clone(labels), gauge.get());
            values.entry(*name).or_default().push(value);
        }
        for ((name, labels), source) in &self.sources {
            if let Some(source) = source.upgrade() {
                let value = (Arc::clone(labels), source.value());
                values.entry(*name).or_default().push(value);
            }
        }
        for (name, series) in &self.overflow {
            let words = vec![OVERFLOW; series.label_names.len()];
            let labels = labels_text(series.label_names, &words).into();
            let value = (labels, series.cell.get());
            values.entry(*name).or_default().push(value);
        }
        values
    }

    /// Removes gauges without an owner; their values are obsolete.
    fn forget_gauges(&mut self) {
        self.gauges.retain(|_, gauge| Arc::get_mut(gauge).is_none());
        self.sources.retain(|_, source| 0 < source.strong_count());
    }
}

impl Series {
    fn new(label_names: &'static [&'static str]) -> Self {
        Self {
            cell: Arc::default(),
            label_names,
        }
    }
}

fn key(metric: &Metric, values: &[&str]) -> Key {
    (metric.name, labels_text(metric.labels, values).into())
}
