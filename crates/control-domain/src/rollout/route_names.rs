//! Routes of two bundles that are counted as one, because a bundle renames, splits or joins them.

use control_wire::{RouteTraffic, Traffic};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of names in a label; further ones are counted.
const MAX_NAMED: usize = 3;

/// Groups of routes that a bundle renames, splits or joins, while service and settings of their
/// requests stay the same. The gate compares each group as one route on all nodes, under a label
/// such as `bureau + office`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouteNames {
    /// Label of the group, by route.
    labels: BTreeMap<String, String>,
}

impl RouteNames {
    /// Derives groups from pairs of an earlier and a later route that answer the same requests.
    pub fn new(pairs: &BTreeSet<(String, String)>) -> Self {
        let mut groups: Vec<BTreeSet<&str>> = Vec::new();
        for (before, after) in pairs {
            let mut joined = BTreeSet::from([before.as_str(), after.as_str()]);
            groups.retain(|group| {
                let is_apart = group.is_disjoint(&joined);
                if !is_apart {
                    joined.extend(group);
                }
                is_apart
            });
            groups.push(joined);
        }
        let labels = groups.iter().flat_map(|group| {
            let label = label(group);
            let names = group.iter();
            names.map(move |name| ((*name).to_owned(), label.clone()))
        });
        Self {
            labels: labels.collect(),
        }
    }

    /// Merges the counters of each group's routes under the group's label.
    pub(crate) fn join(&self, traffic: &mut Traffic) {
        for (name, label) in &self.labels {
            if let Some(route) = traffic.routes.remove(name) {
                add(traffic.routes.entry(label.clone()).or_default(), route);
            }
        }
    }

    /// Returns true if no routes are joined.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

fn label(group: &BTreeSet<&str>) -> String {
    let named: Vec<&str> = group.iter().take(MAX_NAMED).copied().collect();
    let more = group.len().saturating_sub(MAX_NAMED);
    let named = named.join(" + ");
    if more == 0 {
        return named;
    }
    format!("{named} and {more} more")
}

/// Nodes may report any value, so the sums saturate. A figure that only one of the routes counts is
/// kept.
fn add(sum: &mut RouteTraffic, route: RouteTraffic) {
    let RouteTraffic {
        requests,
        errors,
        reasons,
        latency,
        statuses,
        bytes_in,
        bytes_out,
        latency_us,
        first_byte,
        sizes,
    } = route;
    sum.requests = sum.requests.saturating_add(requests);
    sum.errors = sum.errors.saturating_add(errors);
    add_buckets(&mut sum.latency, &latency);
    add_counts(&mut sum.reasons, reasons);
    add_counts(&mut sum.statuses, statuses);
    add_counts(&mut sum.sizes, sizes);
    for (sum, count) in [
        (&mut sum.bytes_in, bytes_in),
        (&mut sum.bytes_out, bytes_out),
        (&mut sum.latency_us, latency_us),
    ] {
        if let Some(count) = count {
            *sum = Some(sum.unwrap_or_default().saturating_add(count));
        }
    }
    if let Some(buckets) = first_byte {
        add_buckets(sum.first_byte.get_or_insert_default(), &buckets);
    }
}

fn add_buckets<const N: usize>(sum: &mut [u64; N], buckets: &[u64; N]) {
    for (sum, count) in sum.iter_mut().zip(buckets) {
        *sum = sum.saturating_add(*count);
    }
}

fn add_counts<K: Ord>(sum: &mut BTreeMap<K, u64>, counts: BTreeMap<K, u64>) {
    for (key, count) in counts {
        let sum = sum.entry(key).or_default();
        *sum = sum.saturating_add(count);
    }
}
