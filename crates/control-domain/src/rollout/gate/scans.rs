//! Detection of scanners: additional requests for missing paths, which are not the bundle's fault.
//!
//! A harmful bundle answers 404 to requests that got other answers before, so that as many of those
//! are missing on the batch. A scanner adds 404s without taking other answers away. See decision
//! record 0079.

use crate::rollout::figures::Comparison;
use crate::rollout::gate::pool::{ExcludedNode, Hits, float, pool};
use control_wire::{RouteTraffic, Traffic};
use proxy_errors::Reason;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

const NOT_FOUND: u16 = 404;
/// Minimum share of one route in the additional 404s; a bundle that breaks many routes spreads
/// them.
const ONE_ROUTE: f64 = 0.9;
/// Minimum share of additional 404s in their route's requests; fewer stop no batch anyway.
const MIN_PART: f64 = 0.02;
/// Minimum ratio of missing answers to additional 404s, or to the expected answers of their route,
/// that makes the bundle the cause.
const MISSING_PART: f64 = 0.5;
/// Number of standard deviations of the expected answers that the additional 404s must exceed;
/// fewer cannot be told from chance.
const MIN_DEVIATIONS: f64 = 4.0;
/// Deviation, in standard deviations, by which other routes may have fewer answers.
const TOLERATED_DEVIATION: f64 = 0.5;
/// Maximum share of one route in all answers: above it, too few answers of other routes remain for
/// the comparison.
const MAX_PART: f64 = 0.95;

/// Additional 404s that are removed from the batch before it is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scan {
    pub(super) route: String,
    pub(super) requests: u64,
}

/// Removes a scanner's requests from the batch; returns the comparison and the removed requests.
pub(super) fn without_scan(
    compared: &Comparison,
    min_requests: i64,
) -> (Cow<'_, Comparison>, Option<Scan>) {
    let Some(scan) = scan(compared, min_requests) else {
        return (Cow::Borrowed(compared), None);
    };
    let mut others = compared.clone();
    let Comparison { batch, rest } = &mut others;
    for node in &mut batch.reports {
        if let Some(route) = node.routes.get_mut(&scan.route) {
            let own = counts(route);
            remove(route, own.not_found.min(scan.among(own)));
        }
    }
    let reports = batch.reports.iter_mut().chain(&mut batch.reports_before);
    for node in reports.chain(&mut rest.reports) {
        if let Some(route) = node.routes.get_mut(&scan.route) {
            clear_unsplit(route);
        }
    }
    for node in &mut batch.each {
        node.median_ms = None;
    }
    let requests = scan.requests.round();
    let found = Scan {
        route: scan.route,
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of requests, rounded and not negative"
        )]
        requests: requests as u64,
    };
    (Cow::Owned(others), Some(found))
}

/// Additional 404s of one route.
struct Additional {
    route: String,
    requests: f64,
    /// Ratio of 404s to other answers without a scanner.
    usual: f64,
}

impl Additional {
    /// Number of additional 404s among one node's requests.
    fn among(&self, own: Counts) -> u64 {
        let usual = self.usual * float(own.answered);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of requests, rounded and not negative"
        )]
        let usual = usual.round() as u64;
        own.not_found.saturating_sub(usual)
    }
}

/// Request counts of a route.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    not_found: u64,
    /// Number of requests with another status than 404.
    answered: u64,
}

fn counts(route: &RouteTraffic) -> Counts {
    let not_found = route.statuses.get(&NOT_FOUND).copied().unwrap_or_default();
    Counts {
        not_found,
        answered: route.requests.saturating_sub(not_found),
    }
}

fn scan(compared: &Comparison, min_requests: i64) -> Option<Additional> {
    let batch = sums(&compared.batch.reports);
    let total: Counts = batch.values().fold(Counts::default(), |sum, own| Counts {
        not_found: sum.not_found.saturating_add(own.not_found),
        answered: sum.answered.saturating_add(own.answered),
    });
    if total.not_found == 0 {
        return None;
    }
    let least = float(u64::try_from(min_requests).unwrap_or_default());
    let sides = [&compared.rest.reports, &compared.batch.reports_before];
    let mut sides = sides
        .into_iter()
        .map(|nodes| Baseline::new(nodes))
        .filter(|side| least <= side.answered);
    let first = sides.next()?;
    let found = additional(&batch, total, &first)?;
    let is_alike = |side: Baseline<'_>| {
        let other = additional(&batch, total, &side);
        other.is_some_and(|other| other.route == found.route)
    };
    sides.all(is_alike).then_some(found)
}

/// Additional 404s relative to one side, if they concentrate on one route and no other answers are
/// missing.
fn additional(
    batch: &BTreeMap<&str, Counts>,
    total: Counts,
    side: &Baseline<'_>,
) -> Option<Additional> {
    let excess = |name: &str, own: &Counts| {
        float(own.not_found) - side.not_found_for_each(name) * float(own.answered)
    };
    let routes = batch
        .iter()
        .map(|(name, own)| (*name, own, excess(name, own)));
    let more: Vec<_> = routes.filter(|(_, _, excess)| 0.0 < *excess).collect();
    let sum: f64 = more.iter().map(|(_, _, excess)| excess).sum();
    let (name, own, excess) = more.into_iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let is_large = MIN_PART * float(own.not_found.saturating_add(own.answered)) <= excess;
    if !is_large || excess < sum * ONE_ROUTE {
        return None;
    }
    // Includes routes that no longer serve requests, which occur only in the baseline.
    let names: BTreeSet<&str> = batch.keys().copied().chain(side.names()).collect();
    let mut missing = 0.0;
    let mut variance = 0.0;
    for route in names {
        let found = batch.get(route).copied().unwrap_or_default().answered;
        let part = side.part(route);
        if MAX_PART < part {
            return None;
        }
        let others = float(total.answered.saturating_sub(found));
        let expected = part / (1.0 - part) * others;
        let lost = expected - float(found);
        // Clients repeat requests that a broken route answers 404: more than its lost answers.
        if route == name && (expected * MISSING_PART).max(expected.sqrt()) < lost {
            return None;
        }
        let tolerated = if route == name {
            0.0
        } else {
            TOLERATED_DEVIATION * expected.sqrt()
        };
        missing += (lost - tolerated).max(0.0);
        if route == name || own.answered == 0 {
            variance += expected;
        }
    }
    let is_distinct = MIN_DEVIATIONS * variance.sqrt() <= excess;
    (is_distinct && missing < excess * MISSING_PART).then(|| Additional {
        route: name.to_owned(),
        requests: excess,
        usual: side.not_found_for_each(name),
    })
}

fn sums(nodes: &[Traffic]) -> BTreeMap<&str, Counts> {
    let mut sums: BTreeMap<&str, Counts> = BTreeMap::new();
    for (name, route) in nodes.iter().flat_map(|node| &node.routes) {
        let (own, sum) = (counts(route), sums.entry(name).or_default());
        sum.not_found = sum.not_found.saturating_add(own.not_found);
        sum.answered = sum.answered.saturating_add(own.answered);
    }
    sums
}

/// Nodes that the batch is compared with.
struct Baseline<'a> {
    /// Counters of each node, with its number of answers other than 404.
    nodes: Vec<(&'a Traffic, u64)>,
    answered: f64,
}

impl<'a> Baseline<'a> {
    fn new(nodes: &'a [Traffic]) -> Self {
        let answered = |node: &Traffic| {
            let routes = node.routes.values().map(|route| counts(route).answered);
            routes.fold(0, u64::saturating_add)
        };
        let nodes: Vec<_> = nodes.iter().map(|node| (node, answered(node))).collect();
        let hits = nodes.iter().map(|(_, total)| Hits {
            hits: 0,
            total: *total,
        });
        Self {
            answered: pool(hits, ExcludedNode::BothEnds).total,
            nodes,
        }
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        let routes = self.nodes.iter().flat_map(|(node, _)| node.routes.keys());
        routes.map(String::as_str)
    }

    /// Share of a route in all answers other than 404.
    fn part(&self, name: &str) -> f64 {
        let nodes = self.nodes.iter().map(|(node, all)| Hits {
            hits: node
                .routes
                .get(name)
                .map_or(0, |route| counts(route).answered),
            total: *all,
        });
        pool(nodes, ExcludedNode::BothEnds).share()
    }

    /// Ratio of a route's 404s to its other answers.
    fn not_found_for_each(&self, name: &str) -> f64 {
        let nodes = self.nodes.iter().filter_map(|(node, _)| {
            let Counts {
                not_found,
                answered,
            } = counts(node.routes.get(name)?);
            Some(Hits {
                hits: not_found,
                total: not_found.saturating_add(answered),
            })
        });
        let share = pool(nodes, ExcludedNode::BothEnds).share();
        share / (1.0 - share.min(MAX_PART))
    }
}

/// Removes 404s from a route's counts.
fn remove(route: &mut RouteTraffic, requests: u64) {
    route.requests = route.requests.saturating_sub(requests);
    if let Some(count) = route.statuses.get_mut(&NOT_FOUND) {
        *count = count.saturating_sub(requests);
    }
    for (name, count) in &mut route.reasons {
        let mut reasons = Reason::ALL.iter();
        let reason = reasons.find(|reason| reason.as_str() == name);
        if reason.is_some_and(|reason| reason.status().as_u16() == NOT_FOUND) {
            *count = count.saturating_sub(requests);
        }
    }
}

/// Removes figures that are not split by status, and so include a scanner's requests. Cleared on all
/// sides, they are not compared, neither of the route nor in the sum of all routes.
fn clear_unsplit(route: &mut RouteTraffic) {
    route.sizes.clear();
    route.latency.fill(0);
    route.latency_us = route.latency_us.map(|_| 0);
    route.first_byte = None;
}
