//! What nodes report, added up for the gate.

use control_wire::{LATENCY_BOUNDS_MS, NodeId, RouteTraffic, Traffic};
use std::collections::BTreeMap;

/// What nodes report together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Nodes that were looked at.
    pub nodes: i64,
    /// Those that say nothing of what they serve, or have not reported since the batch switched.
    pub silent: i64,
    /// The sum of their CPU; 100 is one core.
    pub cpu_percent: f64,
    /// What they served, by route.
    pub traffic: Traffic,
    /// The nodes of a batch one by one; empty for the nodes that it is compared with.
    pub each: Vec<NodeFigures>,
}

/// What one node of a batch reports, in few numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeFigures {
    /// The node.
    pub node: NodeId,
    /// What it served since it switched.
    pub served: Served,
    /// The median of latency in milliseconds; none without requests.
    pub median_ms: Option<i64>,
    /// Its CPU; 100 is one core.
    pub cpu_percent: f64,
    /// The same before the batch was opened.
    pub before: Option<NodeBefore>,
}

/// Requests of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests that were answered.
    pub requests: u64,
    /// Those with a status of 500 or more.
    pub errors: u64,
}

/// How a node was before its batch was opened.
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
    /// What it served since its active bundle came into force.
    pub traffic: Option<Traffic>,
    /// The same when the batch was opened.
    pub sample: Option<(f64, Option<Traffic>)>,
    /// Whether it ran the same bundle then.
    pub same_bundle: bool,
    /// Whether it has reported since the batch switched.
    pub has_reported: bool,
}

impl Figures {
    /// Adds a node with what it served since `before`, where that was counted in the same run.
    pub fn add(&mut self, cpu_percent: f64, now: Option<Traffic>, before: Option<&Traffic>) {
        self.nodes += 1;
        self.cpu_percent += cpu_percent;
        let Some(now) = now else {
            self.silent += 1;
            return;
        };
        let since = before.and_then(|before| difference(&now, before));
        for (name, route) in since.unwrap_or(now).routes {
            add_route(self.traffic.routes.entry(name).or_default(), &route);
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
        let (before, old) = match sample {
            Some((cpu_percent, old)) => {
                let requests = old.as_ref().map_or(0, |old| total(old).requests);
                let before = NodeBefore {
                    requests,
                    cpu_percent,
                };
                (Some(before), old.filter(|_| same_bundle))
            }
            None => (None, None),
        };
        let mut own = Self::default();
        own.add(cpu_percent, traffic, old.as_ref());
        let served = own.total();
        self.each.push(NodeFigures {
            node,
            served: Served::from(&served),
            median_ms: percentile_ms(&served, 50),
            cpu_percent,
            before,
        });
        self.nodes += 1;
        self.silent += i64::from(own.silent > 0 || !has_reported);
        self.cpu_percent += cpu_percent;
        for (name, route) in own.traffic.routes {
            add_route(self.traffic.routes.entry(name).or_default(), &route);
        }
    }

    /// All routes together.
    pub fn total(&self) -> RouteTraffic {
        total(&self.traffic)
    }

    /// CPU of a node; 100 is one core. None without nodes.
    pub fn mean_cpu_percent(&self) -> Option<f64> {
        let nodes = u32::try_from(self.nodes).ok().filter(|nodes| *nodes > 0)?;
        Some(self.cpu_percent / f64::from(nodes))
    }
}

impl From<&RouteTraffic> for Served {
    fn from(route: &RouteTraffic) -> Self {
        Self {
            requests: route.requests,
            errors: route.errors,
        }
    }
}

/// 5xx in thousandths of all requests. A node may say anything: it is at most 1 000.
pub fn error_permille(served: impl Into<Served>) -> i64 {
    let Served { requests, errors } = served.into();
    count(errors.min(requests).saturating_mul(1_000) / requests.max(1))
}

/// The 99th percentile of latency in milliseconds, by even distribution within its bucket; none without
/// requests.
pub fn p99_ms(route: &RouteTraffic) -> Option<i64> {
    percentile_ms(route, 99)
}

fn percentile_ms(route: &RouteTraffic, percent: u64) -> Option<i64> {
    let all: u64 = route
        .latency
        .iter()
        .fold(0, |sum, count| sum.saturating_add(*count));
    // Hundredths of a request.
    let wanted = all.saturating_mul(percent);
    let last = LATENCY_BOUNDS_MS.last().copied().unwrap_or_default();
    let uppers = LATENCY_BOUNDS_MS
        .into_iter()
        .chain([last.saturating_mul(2)]);
    let (mut seen, mut lower) = (0_u64, 0_u64);
    for (upper, in_bucket) in uppers.map(u64::from).zip(route.latency) {
        let here = in_bucket.saturating_mul(100);
        if in_bucket > 0 && wanted <= seen.saturating_add(here) {
            let part = (wanted - seen).saturating_mul(upper - lower) / here;
            return Some(count(lower + part));
        }
        seen = seen.saturating_add(here);
        lower = upper;
    }
    None
}

fn total(traffic: &Traffic) -> RouteTraffic {
    let mut total = RouteTraffic::default();
    for route in traffic.routes.values() {
        add_route(&mut total, route);
    }
    total
}

/// `None` if a counter is less than it was: the counts began anew meanwhile.
fn difference(now: &Traffic, before: &Traffic) -> Option<Traffic> {
    let mut routes = now.routes.clone();
    for (name, old) in &before.routes {
        let route = routes.get_mut(name)?;
        route.requests = route.requests.checked_sub(old.requests)?;
        route.errors = route.errors.checked_sub(old.errors)?;
        for (count, old) in route.latency.iter_mut().zip(old.latency) {
            *count = count.checked_sub(old)?;
        }
        route.reasons = reasons_since(&route.reasons, &old.reasons)?;
    }
    Some(Traffic { routes })
}

fn reasons_since(
    now: &BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> Option<BTreeMap<String, u64>> {
    let mut reasons = now.clone();
    for (name, old) in before {
        let count = reasons.get_mut(name)?;
        *count = count.checked_sub(*old)?;
    }
    Some(reasons)
}

/// Counters come from nodes, which may say anything: sums stay at their limit.
fn add_route(sum: &mut RouteTraffic, route: &RouteTraffic) {
    let RouteTraffic {
        requests,
        errors,
        reasons,
        latency,
    } = route;
    sum.requests = sum.requests.saturating_add(*requests);
    sum.errors = sum.errors.saturating_add(*errors);
    for (name, failures) in reasons {
        let total = sum.reasons.entry(name.clone()).or_default();
        *total = total.saturating_add(*failures);
    }
    for (total, count) in sum.latency.iter_mut().zip(latency) {
        *total = total.saturating_add(*count);
    }
}

pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
