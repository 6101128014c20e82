//! Reports of nodes, added up for the gate.

use crate::rollout::route_names::RouteNames;
use crate::rollout::served::{Served, percentile_ms};
use crate::rollout::weighing::{NodeCounts, Trim, WeighedFigures, mean, weight_cap};
use control_wire::{ConnectionTraffic, LATENCY_BOUNDS_MS, NodeId, RouteTraffic, Traffic};
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// Requests that no node serves in a second: a report above it is implausible.
const MAX_REQUESTS_PER_SEC: u64 = 10_000_000;
/// Reports that are kept whole for the comparison of routes; later nodes count for all requests together, and by
/// themselves.
const MAX_REPORTS: usize = 100;

/// The two sides of a gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The nodes of the batch since they switched.
    pub batch: Figures,
    /// Nodes that were not moved yet, since the batch was opened; or the batch itself before.
    pub rest: Figures,
}

/// Reports of several nodes: of a batch, or of the nodes that it is compared with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Number of compared nodes.
    pub nodes: i64,
    /// Nodes without plausible counters, or without a report since the batch switched.
    pub silent: i64,
    /// The nodes of a batch one by one; empty for the nodes that it is compared with.
    pub each: Vec<NodeFigures>,
    /// Maximum number of requests that a node can have served; `None`: no bound.
    max_requests: Option<u64>,
    /// In percent of one core.
    cpus: Vec<f64>,
    all: NodeCounts,
    /// Counters of up to 100 nodes.
    pub(crate) reports: Vec<Traffic>,
    /// Their counters under the previous bundle; of a batch only.
    pub(crate) reports_before: Vec<Traffic>,
    /// True if all of it was counted before the batch was opened.
    pub(crate) is_earlier: bool,
}

/// Report of one node of a batch, in few numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeFigures {
    /// Identifier of the node.
    pub node: NodeId,
    /// Requests that it served since it switched.
    pub served: Served,
    /// The median of latency in milliseconds; `None` without requests.
    pub median_ms: Option<i64>,
    /// Its CPU; 100 is one core.
    pub cpu_percent: f64,
    /// Figures before the batch was opened.
    pub before: Option<NodeBefore>,
}

/// Figures of a node before its batch was opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeBefore {
    /// Requests that it served under the bundle before.
    pub requests: u64,
    /// Its CPU; 100 is one core.
    pub cpu_percent: f64,
}

/// The newest word of a node of the batch, and the sample from before.
#[derive(Clone, Debug)]
pub struct BatchNode {
    /// The node.
    pub node: NodeId,
    /// Its CPU; 100 is one core.
    pub cpu_percent: f64,
    /// Its counters since its active bundle was activated.
    pub traffic: Option<Traffic>,
    /// CPU and counters when the batch was opened.
    pub sample: Option<(f64, Option<Traffic>)>,
    /// True if it ran the same bundle then.
    pub same_bundle: bool,
    /// True if it has reported since the batch switched.
    pub has_reported: bool,
}

impl Comparison {
    /// Merges the routes of each group into one.
    #[must_use]
    pub fn joining(mut self, names: &RouteNames) -> Self {
        if names.is_empty() {
            return self;
        }
        let Self { batch, rest } = &mut self;
        let reports = batch
            .reports
            .iter_mut()
            .chain(&mut batch.reports_before)
            .chain(&mut rest.reports);
        reports.for_each(|report| names.join(report));
        self
    }
}

impl Figures {
    /// Figures without nodes; the counters cover `elapsed` at most.
    pub fn covering(elapsed: SignedDuration) -> Self {
        let secs = u64::try_from(elapsed.as_secs()).unwrap_or_default();
        Self {
            max_requests: Some(secs.saturating_mul(MAX_REQUESTS_PER_SEC)),
            ..Self::default()
        }
    }

    /// Adds a node's traffic since `before`, if both were counted in one run.
    pub fn add(&mut self, cpu_percent: f64, now: Option<Traffic>, before: Option<&Traffic>) {
        let served = self.served(now, before);
        self.add_served(cpu_percent, served);
    }

    /// Adds a node's complete counters under an earlier bundle, of any duration. Compared with
    /// serving nodes, one with fewer than `min_requests` is excluded: no node weighs more than the
    /// median, and a bundle activated just before would leave too little data for the whole
    /// rollout.
    pub fn add_earlier(&mut self, cpu_percent: f64, counted: Option<Traffic>, min_requests: i64) {
        let requests = counted
            .as_ref()
            .map_or(0, |counted| total(counted).requests);
        let is_enough = u64::try_from(min_requests).is_ok_and(|min| min <= requests);
        if is_enough || self.serving() == 0 {
            self.is_earlier |= self.serving() == 0;
            self.add_served(cpu_percent, counted);
        }
    }

    /// Adds a node of the batch.
    pub fn add_switched(&mut self, word: BatchNode) {
        let BatchNode {
            node,
            cpu_percent,
            traffic,
            sample,
            same_bundle,
            has_reported,
        } = word;
        let (before, mut old) = match sample {
            Some((cpu_percent, old)) => {
                let requests = old.as_ref().map_or(0, |old| total(old).requests);
                let before = NodeBefore {
                    requests,
                    cpu_percent,
                };
                (Some(before), old)
            }
            None => (None, None),
        };
        if !same_bundle && let Some(old) = old.take() {
            keep_report(&mut self.reports_before, old);
        }
        let served = self.served(traffic, old.as_ref());
        let all = served.as_ref().map(total).unwrap_or_default();
        self.each.push(NodeFigures {
            node,
            served: Served::from(&all),
            median_ms: percentile_ms(&all, 50),
            cpu_percent,
            before,
        });
        self.silent += i64::from(served.is_some() && !has_reported);
        self.add_served(cpu_percent, served);
    }

    /// All requests together.
    pub fn weigh(&self, trim: Trim) -> WeighedFigures {
        self.all.weigh(trim)
    }

    /// Nodes that served requests.
    pub fn serving(&self) -> usize {
        self.all.len()
    }

    /// CPU of a node; 100 is one core. `None` without nodes.
    pub fn mean_cpu_percent(&self, trim: Trim) -> Option<f64> {
        mean(self.cpus.clone(), trim)
    }

    /// The mean requests of a node before its batch was opened, where no node has more weight than the median.
    pub(crate) fn mean_requests_before(&self) -> u64 {
        let before = |node: &NodeFigures| node.before.map_or(0, |before| before.requests);
        let cap = weight_cap(self.each.iter().map(before));
        let capped = self.each.iter().map(|node| before(node).min(cap));
        let nodes = u64::try_from(self.each.len()).unwrap_or(u64::MAX);
        capped.fold(0, u64::saturating_add) / nodes.max(1)
    }

    /// Counters since `before`; `None` without counters, or if they are implausibly high.
    fn served(&self, now: Option<Traffic>, before: Option<&Traffic>) -> Option<Traffic> {
        let mut served = now?;
        if let Some(before) = before {
            subtract(&mut served, before);
        }
        let max = self.max_requests.unwrap_or(u64::MAX);
        (total(&served).requests <= max).then_some(served)
    }

    fn add_served(&mut self, cpu_percent: f64, served: Option<Traffic>) {
        self.nodes += 1;
        self.cpus.push(cpu_percent);
        let Some(served) = served else {
            self.silent += 1;
            return;
        };
        let all = total(&served);
        self.all.push(&all);
        keep_report(&mut self.reports, served);
    }
}

fn keep_report(reports: &mut Vec<Traffic>, served: Traffic) {
    if reports.len() < MAX_REPORTS {
        reports.push(served);
    }
}

/// Requests, errors and latency of all routes of a node.
pub(crate) fn total(traffic: &Traffic) -> RouteTraffic {
    let mut total = RouteTraffic::default();
    for route in traffic.routes.values() {
        add_route(&mut total, route);
    }
    total
}

/// Subtracts the counters of `before`, unless one of them decreased or is gone: then counting restarted in between.
fn subtract(now: &mut Traffic, before: &Traffic) {
    if each_counter(now, before, &mut |now, before| before <= *now) {
        each_counter(now, before, &mut |now, before| {
            *now -= before;
            true
        });
    }
}

/// Calls `visit` with each counter of `before` and the same one of `now`, while it returns true. Returns false as
/// well if `now` has no such counter.
fn each_counter(
    now: &mut Traffic,
    before: &Traffic,
    visit: &mut impl FnMut(&mut u64, u64) -> bool,
) -> bool {
    let Traffic {
        routes,
        connections,
    } = before;
    let connections = match (&mut now.connections, connections) {
        (Some(now), Some(before)) => each_connection_counter(now, before, visit),
        (_, None) | (None, Some(_)) => true,
    };
    connections
        && routes
            .iter()
            .all(|(name, before)| match now.routes.get_mut(name) {
                Some(now) => each_route_counter(now, before, visit),
                None => false,
            })
}

fn each_connection_counter(
    now: &mut ConnectionTraffic,
    before: &ConnectionTraffic,
    visit: &mut impl FnMut(&mut u64, u64) -> bool,
) -> bool {
    let ConnectionTraffic {
        accepted,
        handshakes_completed,
        handshakes_failed,
        proxy_headers_failed,
    } = before;
    visit(&mut now.accepted, *accepted)
        && visit(&mut now.handshakes_completed, *handshakes_completed)
        && visit(&mut now.handshakes_failed, *handshakes_failed)
        && visit(&mut now.proxy_headers_failed, *proxy_headers_failed)
}

fn each_route_counter(
    now: &mut RouteTraffic,
    before: &RouteTraffic,
    visit: &mut impl FnMut(&mut u64, u64) -> bool,
) -> bool {
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
    } = before;
    let sums = [
        (&mut now.bytes_in, bytes_in),
        (&mut now.bytes_out, bytes_out),
        (&mut now.latency_us, latency_us),
    ];
    visit(&mut now.requests, *requests)
        && visit(&mut now.errors, *errors)
        && sums.into_iter().all(|sum| match sum {
            (Some(now), Some(before)) => visit(now, *before),
            _ => true,
        })
        && each_bucket(&mut now.latency, latency, visit)
        && match (&mut now.first_byte, first_byte) {
            (Some(now), Some(before)) => each_bucket(now, before, visit),
            _ => true,
        }
        && each_count(&mut now.reasons, reasons, visit)
        && each_count(&mut now.statuses, statuses, visit)
        && each_count(&mut now.sizes, sizes, visit)
}

type Buckets = [u64; LATENCY_BOUNDS_MS.len() + 1];

fn each_bucket(
    now: &mut Buckets,
    before: &Buckets,
    visit: &mut impl FnMut(&mut u64, u64) -> bool,
) -> bool {
    let mut pairs = now.iter_mut().zip(before);
    pairs.all(|(now, before)| visit(now, *before))
}

fn each_count<K: Ord>(
    now: &mut BTreeMap<K, u64>,
    before: &BTreeMap<K, u64>,
    visit: &mut impl FnMut(&mut u64, u64) -> bool,
) -> bool {
    before.iter().all(|(name, before)| match now.get_mut(name) {
        Some(now) => visit(now, *before),
        None => false,
    })
}

/// Nodes may report any value, so sums saturate.
fn add_route(sum: &mut RouteTraffic, route: &RouteTraffic) {
    sum.requests = sum.requests.saturating_add(route.requests);
    sum.errors = sum.errors.saturating_add(route.errors);
    for (total, count) in sum.latency.iter_mut().zip(route.latency) {
        *total = total.saturating_add(count);
    }
}
