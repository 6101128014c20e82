//! Traffic of each route since the active bundle was applied.

use control_wire::{LATENCY_BOUNDS_MS, RouteTraffic, Traffic};
use proxy_telemetry::{BOUNDS_NS, RouteTotal, Snapshot};
use std::collections::BTreeMap;

/// A heartbeat may hold no more.
const MAX_ROUTES: usize = 500;
const MAX_REASONS: usize = 100;
const NS_PER_MS: u64 = 1_000_000;

/// Counts from a moment on.
#[derive(Debug, Default)]
pub(crate) struct TrafficMeter {
    before: BTreeMap<String, RouteTraffic>,
}

impl TrafficMeter {
    /// Counts from now on.
    pub(crate) fn begin(&mut self, snapshot: &Snapshot) {
        self.before = totals(snapshot).collect();
    }

    /// Counts since then; if there are too many routes, those with the most requests.
    pub(crate) fn read(&self, snapshot: &Snapshot) -> Traffic {
        let counted = totals(snapshot).map(|(name, total)| {
            let since = match self.before.get(&name) {
                Some(before) => difference(total, before),
                None => total,
            };
            (name, since)
        });
        let mut routes: Vec<_> = counted.filter(|(_, since)| since.requests > 0).collect();
        routes.sort_by_key(|(_, since)| std::cmp::Reverse(since.requests));
        routes.truncate(MAX_ROUTES);
        let routes = routes.into_iter().collect();
        Traffic { routes }
    }
}

fn totals(snapshot: &Snapshot) -> impl Iterator<Item = (String, RouteTraffic)> {
    let routes = snapshot.routes.iter();
    routes.map(|(name, total)| (name.to_string(), traffic(total, snapshot)))
}

fn traffic(total: &RouteTotal, snapshot: &Snapshot) -> RouteTraffic {
    let mut latency = [0; LATENCY_BOUNDS_MS.len() + 1];
    let last = [u64::MAX];
    for (count, bound_ns) in total
        .duration
        .buckets
        .iter()
        .zip(BOUNDS_NS.iter().chain(&last))
    {
        // A bucket that lies across two of the report is counted as the slower one.
        let bounds = LATENCY_BOUNDS_MS.iter();
        let below = bounds.take_while(|ms| u64::from(**ms) * NS_PER_MS < *bound_ns);
        if let Some(bucket) = latency.get_mut(below.count()) {
            *bucket += count;
        }
    }
    let reasons = snapshot.failures_of(total).into_iter();
    let reasons = reasons.map(|(reason, count)| (reason.to_owned(), count));
    RouteTraffic {
        requests: total.requests(),
        errors: total.server_errors(),
        reasons: reasons.take(MAX_REASONS).collect(),
        latency,
    }
}

/// Counters only grow, so that a difference is what was counted between.
fn difference(total: RouteTraffic, before: &RouteTraffic) -> RouteTraffic {
    let RouteTraffic {
        requests,
        errors,
        reasons,
        mut latency,
    } = total;
    for (count, before) in latency.iter_mut().zip(before.latency) {
        *count = count.saturating_sub(before);
    }
    let since = reasons.into_iter().map(|(reason, count)| {
        let old = before.reasons.get(&reason).copied().unwrap_or_default();
        (reason, count.saturating_sub(old))
    });
    RouteTraffic {
        requests: requests.saturating_sub(before.requests),
        errors: errors.saturating_sub(before.errors),
        reasons: since.filter(|(_, count)| *count > 0).collect(),
        latency,
    }
}
