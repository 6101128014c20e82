//! The cells of all workers, merged at one moment.

use crate::metrics::reason_counters::ReasonTotals;
use crate::metrics::{AgentTotal, RouteTotal, TargetTotal, UpstreamTotal, WorkerTotal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which target of which upstream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetName {
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// The target's address, `host:port`.
    pub address: Arc<str>,
}

/// Labels as text, and the number.
pub(crate) type SeriesValue = (Arc<str>, u64);

/// Everything counted, summed over workers; names in ascending order, `overflow` last.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// What workers count for themselves.
    pub workers: WorkerTotal,
    /// By route id.
    pub routes: Vec<(Arc<str>, RouteTotal)>,
    /// By upstream name.
    pub upstreams: Vec<(Arc<str>, UpstreamTotal)>,
    /// By target.
    pub targets: Vec<(TargetName, TargetTotal)>,
    /// By agent name.
    pub agents: Vec<(Arc<str>, AgentTotal)>,
    /// The words reasons count under, by position.
    pub reasons: &'static [&'static str],
    /// Times a name got no series of its own.
    pub series_dropped: u64,
    pub(crate) series: BTreeMap<&'static str, Vec<SeriesValue>>,
}

impl Snapshot {
    /// Requests that are over, all routes.
    pub fn requests(&self) -> u64 {
        self.routes.iter().map(|(_, total)| total.requests()).sum()
    }

    /// The series of a metric that were asked of the registry one by one.
    pub(crate) fn series(&self, name: &str) -> &[SeriesValue] {
        self.series.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Counts by the reasons' words.
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
