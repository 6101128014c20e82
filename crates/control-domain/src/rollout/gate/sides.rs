//! The two sides of a gate, compared by route.

use crate::rollout::figures::{Comparison, Figures};
use crate::rollout::gate::pool::{ExcludedNode, Hits, float, pool};
use crate::rollout::gate::significance::{Counted, growth, needed};
use control_wire::{RouteTraffic, Traffic};
use std::collections::BTreeSet;

/// Minimum number of nodes that serve a route for a separate baseline, or all if fewer serve
/// anything.
const MIN_BASELINE_NODES: usize = 3;
/// Minimum fraction of a verdict's evidence for a suspicion.
const SUSPICION_EVIDENCE: f64 = 0.5;
/// Fraction of the minimum number of requests that suffices for a suspicion.
const SUSPICION_REQUESTS: f64 = 0.25;

/// Reports of the batch, of the nodes that it is compared with, and of the batch's nodes before.
pub(super) struct ComparedReports<'a> {
    pub(super) batch: &'a [Traffic],
    pub(super) rest: &'a [Traffic],
    pub(super) before: &'a [Traffic],
    /// True if the rest consists only of the batch's own nodes before the rollout, at another time
    /// of day.
    pub(super) is_earlier: bool,
    /// Minimum evidence of a significant difference.
    pub(super) needed: f64,
    names: BTreeSet<&'a str>,
    min_requests: f64,
}

/// A single route, or all requests together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scope<'a> {
    /// Route in the batch; `None` for all requests.
    pub(super) route: Option<&'a str>,
    /// Route on the other side; `None` for all requests, also if the route has too few requests
    /// there.
    pub(super) baseline: Option<&'a str>,
}

/// Shares of the batch and of the rest, compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) own: Counted,
    pub(super) others: Counted,
    /// The batch's own nodes before, if they served enough.
    pub(super) before: Option<Counted>,
    /// Set if the difference is significant.
    pub(super) is_significant: bool,
}

/// Direction of a difference to test for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Growth,
    Fall,
}

impl<'a> ComparedReports<'a> {
    pub(super) fn new(compared: &'a Comparison, min_requests: i64) -> Self {
        let Comparison { batch, rest } = compared;
        let reports = |figures: &'a Figures| figures.reports.as_slice();
        let all = reports(batch).iter().chain(reports(rest));
        let names: BTreeSet<_> = all.flat_map(|node| node.routes.keys()).collect();
        Self {
            batch: reports(batch),
            rest: reports(rest),
            before: &batch.reports_before,
            is_earlier: rest.is_earlier,
            needed: needed(names.len()),
            names: names.into_iter().map(String::as_str).collect(),
            min_requests: float(u64::try_from(min_requests).unwrap_or_default()),
        }
    }

    /// Lowers the required evidence and number of requests to those of a suspicion.
    pub(super) fn suspecting(self) -> Self {
        Self {
            needed: self.needed * SUSPICION_EVIDENCE,
            min_requests: self.min_requests * SUSPICION_REQUESTS,
            ..self
        }
    }

    /// Names of all routes, of either side.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().copied()
    }

    /// Routes with enough requests in the batch; all requests together as the last scope.
    pub(super) fn scopes(&self) -> Vec<Scope<'a>> {
        let routes = self.names().filter(|name| self.is_served(name));
        let routes = routes.map(|name| Scope {
            route: Some(name),
            baseline: self.has_baseline(name).then_some(name),
        });
        let all = Scope {
            route: None,
            baseline: None,
        };
        routes.chain([all]).collect()
    }

    /// Routes without a separate verdict, with their numbers of requests.
    pub(super) fn unjudged(&self) -> Vec<(&'a str, u64)> {
        let few = self.names().filter(|name| !self.is_served(name));
        few.map(|name| (name, self.requests(name))).collect()
    }

    /// Compares shares of a scope's requests.
    pub(super) fn share(
        &self,
        scope: Scope<'_>,
        direction: Direction,
        hits: impl Fn(&RouteTraffic) -> Option<u64>,
    ) -> Option<Difference> {
        let hits_in = |route: Option<&str>, node: &Traffic| sum(node, route, &hits);
        self.compare(
            direction,
            |node| hits_in(scope.route, node),
            |node| hits_in(scope.baseline, node),
        )
    }

    /// Compares values that two closures extract from the reports; `None` if a side has too few
    /// requests.
    pub(super) fn compare(
        &self,
        direction: Direction,
        own: impl Fn(&Traffic) -> Hits,
        others: impl Fn(&Traffic) -> Hits,
    ) -> Option<Difference> {
        let without = match direction {
            Direction::Growth => ExcludedNode::Lowest,
            Direction::Fall => ExcludedNode::Highest,
        };
        let before = pool(self.before.iter().map(&own), ExcludedNode::BothEnds);
        let own = pool(self.batch.iter().map(own), without);
        let others = pool(self.rest.iter().map(others), ExcludedNode::BothEnds);
        if own.total < self.min_requests || others.total < self.min_requests {
            return None;
        }
        let evidence = match direction {
            Direction::Growth => growth(own, others),
            Direction::Fall => growth(others, own),
        };
        Some(Difference {
            own,
            others,
            before: Some(before).filter(|before| self.min_requests <= before.total),
            is_significant: self.needed <= evidence,
        })
    }

    /// Returns true if `requests` reaches the minimum of a comparison.
    pub(super) fn is_enough(&self, requests: f64) -> bool {
        self.min_requests <= requests
    }

    fn is_served(&self, route: &str) -> bool {
        let nodes = self.batch.iter().map(|node| requests_of(node, route));
        self.is_enough(pool(nodes, ExcludedNode::Lowest).total)
    }

    fn has_baseline(&self, route: &str) -> bool {
        let serve = |name: &str| {
            let nodes = self.rest.iter();
            nodes
                .filter(|node| requests_of(node, name).total > 0)
                .count()
        };
        let serving = self.rest.iter().filter(|node| !node.routes.is_empty());
        let nodes = self.rest.iter().map(|node| requests_of(node, route));
        serving.count().min(MIN_BASELINE_NODES) <= serve(route)
            && self.is_enough(pool(nodes, ExcludedNode::BothEnds).total)
    }

    fn requests(&self, route: &str) -> u64 {
        let nodes = self.batch.iter().map(|node| requests_of(node, route).total);
        nodes.fold(0, u64::saturating_add)
    }
}

impl Difference {
    /// Returns true if the share is significantly above `limit` of the rest's, and above the
    /// batch's own share before.
    pub(super) fn exceeds(&self, limit: impl Fn(f64) -> f64) -> bool {
        let own = self.own.share();
        let sides = [Some(self.others), self.before].into_iter().flatten();
        self.is_significant && sides.map(Counted::share).all(|share| limit(share) < own)
    }

    /// Returns true if the share is significantly below `limit` of the rest's, and below the
    /// batch's own share before.
    pub(super) fn falls_below(&self, limit: impl Fn(f64) -> f64) -> bool {
        let own = self.own.share();
        let sides = [Some(self.others), self.before].into_iter().flatten();
        self.is_significant && sides.map(Counted::share).all(|share| own < limit(share))
    }

    /// Figures of both sides in one line.
    pub(super) fn text(&self) -> String {
        format!(
            "{} of 1000 among {:.0} requests of the batch, {} of 1000 among {:.0} on the others",
            permille(self.own.share()),
            self.own.total,
            permille(self.others.share()),
            self.others.total
        )
    }
}

impl Scope<'_> {
    /// Start of a sentence about the scope.
    pub(super) fn prefix(&self) -> String {
        let route = self.route.map(|name| format!("route {name}: "));
        route.unwrap_or_default()
    }
}

/// Formats a share in thousandths, with a decimal place if it is small.
pub(super) fn permille(share: f64) -> String {
    let permille = share * 1_000.0;
    if permille == 0.0 || 10.0 <= permille {
        format!("{permille:.0}")
    } else {
        format!("{permille:.1}")
    }
}

/// Number of a route's requests, without hits.
pub(super) fn requests_of(node: &Traffic, route: &str) -> Hits {
    let requests = node.routes.get(route).map_or(0, |route| route.requests);
    Hits {
        hits: 0,
        total: requests,
    }
}

/// Counters of a node for one route, or for all.
pub(super) fn counts_of<'t>(
    node: &'t Traffic,
    route: Option<&str>,
) -> impl Iterator<Item = &'t RouteTraffic> {
    let own = route.and_then(|name| node.routes.get(name));
    let all = route.is_none().then(|| node.routes.values());
    own.into_iter().chain(all.into_iter().flatten())
}

/// Sums hits and requests; leaves out routes that do not count the hits.
fn sum(node: &Traffic, route: Option<&str>, hits: &impl Fn(&RouteTraffic) -> Option<u64>) -> Hits {
    let own = counts_of(node, route);
    let counted = own.filter_map(|route| Some((hits(route)?, route.requests)));
    counted.fold(Hits::default(), |sum, (hits, total)| Hits {
        hits: sum.hits.saturating_add(hits),
        total: sum.total.saturating_add(total),
    })
}
