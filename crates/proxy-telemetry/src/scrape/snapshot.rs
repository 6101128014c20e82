//! The metrics of all workers, summed at one moment.

use crate::limit_use::LimitUse;
use crate::metrics::reason_counters::ReasonTotals;
use crate::metrics::{AgentTotal, Exemplars, RouteTotal, TargetTotal, UpstreamTotal, WorkerTotal};
use crate::scrape::text::labels_text;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A target's name: its upstream and its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetName {
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// The target's address, `host:port`.
    pub address: Arc<str>,
}

/// Rendered labels and the value.
pub(crate) type SeriesValue = (Arc<str>, u64);

/// All metrics, summed over workers; names in ascending order, `overflow` last.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Metrics of workers.
    pub workers: WorkerTotal,
    /// Totals by route id.
    pub routes: Vec<(Arc<str>, RouteTotal)>,
    /// Totals by upstream name.
    pub upstreams: Vec<(Arc<str>, UpstreamTotal)>,
    /// Totals by target.
    pub targets: Vec<(TargetName, TargetTotal)>,
    /// Totals by agent name.
    pub agents: Vec<(Arc<str>, AgentTotal)>,
    /// The use of every limit; empty without a source.
    pub limits: Vec<LimitUse>,
    /// Names of the reasons, by index.
    pub reasons: &'static [&'static str],
    /// Number of names without separate series.
    pub series_dropped: u64,
    pub(crate) series: BTreeMap<&'static str, Vec<SeriesValue>>,
    /// Exemplars of the durations of requests.
    pub(crate) exemplars: Exemplars,
}

impl Snapshot {
    /// Number of finished requests of all routes.
    pub fn requests(&self) -> u64 {
        self.routes.iter().map(|(_, total)| total.requests()).sum()
    }

    /// Failed requests of a route by the name of their reason; `other` beyond the eight that a
    /// worker counts separately.
    pub fn failures_of(&self, total: &RouteTotal) -> BTreeMap<&'static str, u64> {
        self.by_reason(&total.failures)
    }

    /// Failed calls of an agent by the name of their reason.
    pub fn agent_failures(&self, total: &AgentTotal) -> BTreeMap<&'static str, u64> {
        self.by_reason(&total.failures)
    }

    /// The value of the gauge `metric` with one label, by the label's name and value; `None` if
    /// there is none.
    pub fn gauge(&self, metric: &str, label: &str, value: &str) -> Option<u64> {
        let wanted = labels_text(&[label], &[value]);
        let mut series = self.series(metric).iter();
        series
            .find(|(labels, _)| **labels == *wanted)
            .map(|(_, value)| *value)
    }

    /// Single series of a metric.
    pub(crate) fn series(&self, name: &str) -> &[SeriesValue] {
        self.series.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Counts by the reasons' names.
    pub(crate) fn by_reason(&self, tally: &ReasonTotals) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for (key, count) in &tally.by_key {
            let word = self.reasons.get(usize::from(*key)).copied();
            *counts.entry(word.unwrap_or("other")).or_default() += count;
        }
        if tally.other > 0 {
            *counts.entry("other").or_default() += tally.other;
        }
        counts
    }
}
