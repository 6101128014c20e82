//! Sums of nodes' reports, for the gate.

use crate::rollout::route_names::RouteNames;
use crate::rollout::served::{Served, percentile_ms};
use crate::rollout::weighing::{NodeCounts, Trim, WeighedFigures, mean, weight_cap};
use control_wire::{ConnectionTraffic, LATENCY_BOUNDS_MS, NodeId, RouteTraffic, Traffic};
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// Maximum plausible request rate of a node; a report above it is ignored.
const MAX_REQUESTS_PER_SEC: u64 = 10_000_000;
/// Maximum number of reports kept whole for comparing routes. Later nodes count only in the totals
/// and in the comparison of single nodes.
const MAX_REPORTS: usize = 100;

/// The two sides that a gate compares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Nodes of the batch, since they switched.
    pub batch: Figures,
    /// Nodes that have not switched, since the batch was opened; or the batch's own nodes before.
    pub rest: Figures,
}

/// Reports of several nodes: of the batch, or of the nodes that it is compared with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Number of compared nodes.
    pub nodes: i64,
    /// Number of these that are counters of the batch's own nodes from before the batch.
    pub earlier: i64,
    /// Number of nodes without plausible counters, or without a report since the batch switched.
    pub silent: i64,
    /// Figures of each node of the batch; empty for the other side.
    pub each: Vec<NodeFigures>,
    /// Maximum plausible number of requests of a node; `None` without a bound.
    max_requests: Option<u64>,
    /// Minimum number of requests of a node that has not switched; fewer leave it out.
    min_requests: u64,
    /// CPU use of each node, in percent of one core.
    cpus: Vec<f64>,
    all: NodeCounts,
    /// Counters of at most 100 nodes.
    pub(crate) reports: Vec<Traffic>,
    /// Counters of the same nodes under the previous bundle, without routes if those are unknown;
    /// empty for the other side.
    pub(crate) reports_before: Vec<Traffic>,
    /// Set if all counters are from before the batch was opened.
    pub(crate) is_earlier: bool,
}

/// Summary of a report of one node in the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeFigures {
    /// Identifier of the node.
    pub node: NodeId,
    /// Requests since the node switched.
    pub served: Served,
    /// Median latency in milliseconds; `None` without requests.
    pub median_ms: Option<i64>,
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
    /// Figures from before the batch was opened.
    pub before: Option<NodeBefore>,
}

/// Figures of a node before its batch was opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeBefore {
    /// Requests under the previous bundle.
    pub requests: u64,
    /// Median latency in milliseconds; `None` without requests.
    pub median_ms: Option<i64>,
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
}

/// Newest report of a node in the batch, and its sample from before the switch.
#[derive(Clone, Debug)]
pub struct BatchNode {
    /// Identifier of the node.
    pub node: NodeId,
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
    /// Counters since the active bundle was activated.
    pub traffic: Option<Traffic>,
    /// CPU use and counters when the batch was opened.
    pub sample: Option<(f64, Option<Traffic>)>,
    /// True if the sample was taken under the same bundle.
    pub same_bundle: bool,
    /// True if the node has reported since the batch switched.
    pub has_reported: bool,
}

/// Counters of a node with their sum over all routes.
struct NodeReport {
    traffic: Traffic,
    total: RouteTraffic,
}

impl NodeReport {
    fn new(traffic: Traffic) -> Self {
        let total = total(&traffic);
        Self { traffic, total }
    }
}

impl Comparison {
    /// Merges the routes of each group of renamed routes.
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
    /// Empty figures for counters that cover at most `elapsed`.
    pub fn covering(elapsed: SignedDuration) -> Self {
        let secs = u64::try_from(elapsed.as_secs()).unwrap_or_default();
        Self {
            max_requests: Some(secs.saturating_mul(MAX_REQUESTS_PER_SEC)),
            ..Self::default()
        }
    }

    /// Leaves out unswitched nodes with fewer than `min_requests`, such as standbys.
    #[must_use]
    pub fn without_idle_nodes(self, min_requests: i64) -> Self {
        Self {
            min_requests: u64::try_from(min_requests).unwrap_or_default(),
            ..self
        }
    }

    /// Adds a node that has not switched, with its traffic since `before`, unless the counters were
    /// reset in between.
    pub fn add(&mut self, cpu_percent: f64, now: Option<Traffic>, before: Option<&Traffic>) {
        let served = self.served(now, before);
        let requests = served.as_ref().map_or(0, |served| served.total.requests);
        if self.min_requests <= requests {
            self.add_served(cpu_percent, served);
        }
    }

    /// Adds a node's counters under an earlier bundle, whatever time they cover. Excludes a node
    /// with fewer than `min_requests` from the comparison with serving nodes: no node may outweigh
    /// the median, and a recently activated bundle would leave too little data for the whole
    /// rollout.
    pub fn add_earlier(&mut self, cpu_percent: f64, counted: Option<Traffic>, min_requests: i64) {
        let requests = counted.as_ref().map_or(0, all_requests);
        let is_enough = u64::try_from(min_requests).is_ok_and(|min| min <= requests);
        if is_enough || self.serving() == 0 {
            self.is_earlier |= self.serving() == 0;
            self.earlier += 1;
            self.add_served(cpu_percent, counted.map(NodeReport::new));
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
                let all = old.as_ref().map(total).unwrap_or_default();
                let before = NodeBefore {
                    requests: all.requests,
                    median_ms: percentile_ms(&all, 50),
                    cpu_percent,
                };
                (Some(before), old)
            }
            None => (None, None),
        };
        let earlier = old.take_if(|_| !same_bundle);
        let served = self.served(traffic, old.as_ref());
        if served.is_some() {
            keep_report(&mut self.reports_before, earlier.unwrap_or_default());
        }
        let none = RouteTraffic::default();
        let all = served.as_ref().map_or(&none, |served| &served.total);
        self.each.push(NodeFigures {
            node,
            served: Served::from(all),
            median_ms: percentile_ms(all, 50),
            cpu_percent,
            before,
        });
        self.silent += i64::from(served.is_some() && !has_reported);
        self.add_served(cpu_percent, served);
    }

    /// Weighed figures of all requests together.
    pub fn weigh(&self, trim: Trim) -> WeighedFigures {
        self.all.weigh(trim)
    }

    /// Number of nodes that served requests.
    pub fn serving(&self) -> usize {
        self.all.len()
    }

    /// Trimmed mean of CPU use, in percent of one core; `None` without nodes.
    pub fn mean_cpu_percent(&self, trim: Trim) -> Option<f64> {
        mean(self.cpus.clone(), trim)
    }

    /// CPU use of each node, and its use before the batch was opened if that is known.
    pub(crate) fn cpu_percents(&self) -> impl Iterator<Item = (f64, Option<f64>)> {
        let nodes = self.cpus.iter().enumerate();
        nodes.map(|(index, now)| {
            let before = self.each.get(index).and_then(|node| node.before);
            (*now, before.map(|before| before.cpu_percent))
        })
    }

    /// Mean number of requests of a node; none weighs more than the median.
    pub(crate) fn mean_requests(&self) -> u64 {
        let nodes = u64::try_from(self.nodes).unwrap_or_default();
        self.weigh(Trim::Lowest).requests / nodes.max(1)
    }

    /// Mean number of requests per node before the batch was opened; no node weighs more than the
    /// median.
    pub(crate) fn mean_requests_before(&self) -> u64 {
        let before = |node: &NodeFigures| node.before.map_or(0, |before| before.requests);
        let cap = weight_cap(self.each.iter().map(before));
        let capped = self.each.iter().map(|node| before(node).min(cap));
        let nodes = u64::try_from(self.each.len()).unwrap_or(u64::MAX);
        capped.fold(0, u64::saturating_add) / nodes.max(1)
    }

    /// Counters since `before`; `None` if there are none, or they are implausibly high.
    fn served(&self, now: Option<Traffic>, before: Option<&Traffic>) -> Option<NodeReport> {
        let mut served = now?;
        if let Some(before) = before {
            subtract(&mut served, before);
        }
        let report = NodeReport::new(served);
        let max = self.max_requests.unwrap_or(u64::MAX);
        (report.total.requests <= max).then_some(report)
    }

    fn add_served(&mut self, cpu_percent: f64, served: Option<NodeReport>) {
        self.nodes += 1;
        self.cpus.push(cpu_percent);
        let Some(NodeReport { traffic, total }) = served else {
            self.silent += 1;
            return;
        };
        self.all.push(&total);
        keep_report(&mut self.reports, traffic);
    }
}

fn keep_report(reports: &mut Vec<Traffic>, served: Traffic) {
    if reports.len() < MAX_REPORTS {
        reports.push(served);
    }
}

/// Sum over all routes of a node.
pub(crate) fn total(traffic: &Traffic) -> RouteTraffic {
    let mut total = RouteTraffic::default();
    for route in traffic.routes.values() {
        add_route(&mut total, route);
    }
    total
}

/// Number of requests of a node on all routes.
pub(crate) fn all_requests(traffic: &Traffic) -> u64 {
    let requests = traffic.routes.values().map(|route| route.requests);
    requests.fold(0, u64::saturating_add)
}

/// Subtracts earlier counters, unless one of them has decreased or disappeared, which means that
/// counting restarted.
fn subtract(now: &mut Traffic, before: &Traffic) {
    if each_counter(now, before, &mut |now, before| before <= *now) {
        each_counter(now, before, &mut |now, before| {
            *now -= before;
            true
        });
    }
}

/// Calls `visit` with each earlier counter and its current value, while it returns true. Returns
/// false also if a counter has disappeared.
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
        && each_entry(&mut now.routes, routes, |now, before| {
            each_route_counter(now, before, visit)
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
    each_entry(now, before, |now, before| visit(now, *before))
}

/// Calls `visit` with each earlier entry and its current value, in one pass over both maps, while it
/// returns true. Returns false also if an entry has disappeared.
fn each_entry<K: Ord, V>(
    now: &mut BTreeMap<K, V>,
    before: &BTreeMap<K, V>,
    mut visit: impl FnMut(&mut V, &V) -> bool,
) -> bool {
    let mut current = now.iter_mut();
    before.iter().all(
        |(key, before)| match current.find(|(current_key, _)| key <= *current_key) {
            Some((current_key, now)) if current_key == key => visit(now, before),
            _ => false,
        },
    )
}

/// Nodes may report any value, so the sums saturate.
fn add_route(sum: &mut RouteTraffic, route: &RouteTraffic) {
    sum.requests = sum.requests.saturating_add(route.requests);
    sum.errors = sum.errors.saturating_add(route.errors);
    for (total, count) in sum.latency.iter_mut().zip(route.latency) {
        *total = total.saturating_add(count);
    }
}
