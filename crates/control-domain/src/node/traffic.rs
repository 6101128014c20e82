//! Traffic in steps of time, computed from the counters of heartbeats.

pub(crate) mod source;
pub(crate) mod step;

use crate::rollout::served::{Served, error_ppm, p99_ms};
use control_wire::{LATENCY_BOUNDS_MS, NodeId, RouteTraffic, Traffic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of routes per step with separate counts; the rest is counted under the empty
/// name.
const MAX_ROUTES: usize = 50;
/// Maximum number of routes of a step in memory before the rarest are merged; a node may report
/// 500.
const MAX_ROUTES_IN_MEMORY: usize = 1_000;
/// Length of a [`CountedRequests`] as an array of numbers.
pub const REQUEST_COUNTS: usize = LATENCY_BOUNDS_MS.len() + 3;

/// Request counts by outcome and duration, which can be added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; REQUEST_COUNTS]", into = "[u64; REQUEST_COUNTS]")]
pub struct CountedRequests {
    /// Number of answered requests.
    pub requests: u64,
    /// Responses with a status of 500 or more.
    pub errors: u64,
    /// Requests by duration, in the buckets of [`LATENCY_BOUNDS_MS`].
    pub latency: [u64; LATENCY_BOUNDS_MS.len() + 1],
}

/// Requests by route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouteCounts {
    /// By name of the route; the empty name stands for all routes without separate counts.
    pub routes: BTreeMap<String, CountedRequests>,
}

/// Requests of a project in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepTraffic {
    /// By route, summed over nodes.
    pub routes: RouteCounts,
    /// By node, summed over routes.
    pub nodes: BTreeMap<NodeId, CountedRequests>,
}

impl From<[u64; REQUEST_COUNTS]> for CountedRequests {
    fn from([requests, errors, latency @ ..]: [u64; REQUEST_COUNTS]) -> Self {
        Self {
            requests,
            errors,
            latency,
        }
    }
}

impl From<CountedRequests> for [u64; REQUEST_COUNTS] {
    fn from(counted: CountedRequests) -> Self {
        let CountedRequests {
            requests,
            errors,
            latency,
        } = counted;
        let mut counts = [0; REQUEST_COUNTS];
        let own = [requests, errors].into_iter().chain(latency);
        for (count, own) in counts.iter_mut().zip(own) {
            *count = own;
        }
        counts
    }
}

impl From<&RouteTraffic> for CountedRequests {
    fn from(route: &RouteTraffic) -> Self {
        Self {
            requests: route.requests,
            errors: route.errors,
            latency: route.latency,
        }
    }
}

impl From<&Traffic> for RouteCounts {
    fn from(traffic: &Traffic) -> Self {
        let routes = traffic.routes.iter();
        Self {
            routes: routes
                .map(|(name, route)| (name.clone(), CountedRequests::from(route)))
                .collect(),
        }
    }
}

impl CountedRequests {
    /// Adds the counts of other requests.
    pub fn add(&mut self, other: &Self) {
        let Self {
            requests,
            errors,
            latency,
        } = other;
        self.requests = self.requests.saturating_add(*requests);
        self.errors = self.errors.saturating_add(*errors);
        for (sum, count) in self.latency.iter_mut().zip(latency) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// Difference to earlier counts `before`. If a count has decreased, the counters were reset,
    /// and all of it is new.
    fn since(self, before: Self) -> Self {
        let (own, earlier) = (
            <[u64; REQUEST_COUNTS]>::from(self),
            <[u64; REQUEST_COUNTS]>::from(before),
        );
        let mut counts = [0; REQUEST_COUNTS];
        for ((count, now), before) in counts.iter_mut().zip(own).zip(earlier) {
            let Some(since) = now.checked_sub(before) else {
                return self;
            };
            *count = since;
        }
        Self::from(counts)
    }

    /// The 99th percentile of latency in milliseconds; `None` without requests.
    pub fn p99_ms(&self) -> Option<i64> {
        p99_ms(&RouteTraffic {
            latency: self.latency,
            ..RouteTraffic::default()
        })
    }

    /// 5xx in millionths of all requests; `None` without requests.
    pub fn error_ppm(&self) -> Option<u64> {
        let served = Served {
            requests: self.requests,
            errors: self.errors,
        };
        (0 < self.requests).then(|| error_ppm(served))
    }
}

impl RouteCounts {
    /// Differences to earlier counters `before`, without idle routes. A new route counts
    /// completely.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let counted = self.routes.iter().filter_map(|(name, now)| {
            let earlier = before.routes.get(name).copied().unwrap_or_default();
            let counted = now.since(earlier);
            (0 < counted.requests).then(|| (name.clone(), counted))
        });
        Self {
            routes: counted.collect(),
        }
    }

    /// Adds other requests.
    pub fn add(&mut self, other: &Self) {
        for (name, counted) in &other.routes {
            if let Some(own) = self.routes.get_mut(name) {
                own.add(counted);
            } else {
                self.routes.insert(name.clone(), *counted);
            }
        }
        if MAX_ROUTES_IN_MEMORY < self.routes.len() {
            self.bound();
        }
    }

    /// Sum over all routes.
    pub fn total(&self) -> CountedRequests {
        let mut total = CountedRequests::default();
        for counted in self.routes.values() {
            total.add(counted);
        }
        total
    }

    /// Merges the routes with the fewest requests under the empty name, so that at most 50 have
    /// separate counts.
    pub fn bound(&mut self) {
        let mut rest = self.routes.remove("").unwrap_or_default();
        let mut by_requests: Vec<(u64, String)> = self
            .routes
            .iter()
            .map(|(name, counted)| (counted.requests, name.clone()))
            .collect();
        by_requests.sort_unstable_by(|one, other| other.cmp(one));
        for (_, name) in by_requests.into_iter().skip(MAX_ROUTES) {
            rest.add(&self.routes.remove(&name).unwrap_or_default());
        }
        if 0 < rest.requests {
            self.routes.insert(String::new(), rest);
        }
    }
}

impl StepTraffic {
    /// Adds requests of one node.
    pub fn count(&mut self, node: NodeId, counted: &RouteCounts) {
        let total = counted.total();
        if 0 < total.requests {
            self.routes.add(counted);
            self.nodes.entry(node).or_default().add(&total);
        }
    }

    /// Adds the requests of another step.
    pub fn add(&mut self, other: &Self) {
        let Self { routes, nodes } = other;
        self.routes.add(routes);
        for (node, counted) in nodes {
            self.nodes.entry(*node).or_default().add(counted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn report(routes: &[(&str, u64)]) -> RouteCounts {
        let routes = routes.iter().map(|(name, requests)| {
            let mut counted = CountedRequests {
                requests: *requests,
                errors: requests / 10,
                ..CountedRequests::default()
            };
            counted.latency[2] = *requests;
            ((*name).to_owned(), counted)
        });
        RouteCounts {
            routes: routes.collect(),
        }
    }

    #[test]
    fn requests_between_two_reports_are_counted_and_a_counter_may_begin_again() {
        let (before, now) = (
            report(&[("a", 100), ("b", 50), ("idle", 7)]),
            report(&[("a", 130), ("b", 20), ("idle", 7), ("new", 5)]),
        );
        let counted = now.since(&before);
        let requests: Vec<(&str, u64)> = counted
            .routes
            .iter()
            .map(|(name, counted)| (name.as_str(), counted.requests))
            .collect();
        assert_eq!(requests, [("a", 30), ("b", 20), ("new", 5)]);
        let total = counted.total();
        assert_eq!((total.requests, total.latency[2]), (55, 55));
        assert_eq!(now.since(&RouteCounts::default()).total().requests, 162);
    }

    #[test]
    fn at_most_fifty_routes_are_counted_separately_and_no_request_is_lost() {
        let names: Vec<String> = (1..=60).map(|number| format!("r{number}")).collect();
        let routes: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(1..).collect();
        let mut counted = report(&routes);
        let total = counted.total();
        counted.bound();
        assert_eq!(counted.routes.len(), 51);
        assert_eq!(counted.routes[""].requests, (1..=10).sum::<u64>());
        counted.bound();
        assert_eq!(counted.total(), total);
    }

    #[test]
    fn routes_in_memory_are_bounded() {
        let mut step = StepTraffic::default();
        for node in 0..5 {
            let names: Vec<String> = (0..500).map(|route| format!("{node}-{route}")).collect();
            let routes: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
            step.count(NodeId(Uuid::from_u128(node)), &report(&routes));
        }
        assert!(step.routes.routes.len() <= MAX_ROUTES_IN_MEMORY);
        assert_eq!(step.routes.total().requests, 2_500);
        assert_eq!(step.nodes.len(), 5);
    }

    #[test]
    fn an_idle_node_is_not_in_a_step() {
        let mut step = StepTraffic::default();
        step.count(NodeId(Uuid::nil()), &RouteCounts::default());
        assert_eq!(step, StepTraffic::default());
    }
}
