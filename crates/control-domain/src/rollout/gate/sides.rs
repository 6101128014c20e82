//! The two sides of a gate, route by route.

use crate::rollout::figures::{Comparison, Figures};
use crate::rollout::gate::pool::{ExcludedNode, Hits, float, pool};
use crate::rollout::gate::significance::{Counted, growth, needed};
use control_wire::{RouteTraffic, Traffic};
use std::collections::BTreeSet;

/// Nodes that must serve a route before their figures are a standard, or all where fewer serve.
const MIN_STANDARD_NODES: usize = 3;
/// Part of the evidence of a verdict from which on a difference is suspected.
const SUSPICION_EVIDENCE: f64 = 0.5;
/// Part of the least number of requests with which a difference is suspected.
const SUSPICION_REQUESTS: f64 = 0.25;

/// Reports of the batch, of the nodes that it is compared with, and of its own nodes before.
pub(super) struct ComparedReports<'a> {
    pub(super) batch: &'a [Traffic],
    pub(super) rest: &'a [Traffic],
    pub(super) before: &'a [Traffic],
    /// True if the rest is only the batch's own nodes before the rollout: another time of the day.
    pub(super) is_earlier: bool,
    /// Evidence of a difference that is not due to chance.
    pub(super) needed: f64,
    names: BTreeSet<&'a str>,
    min_requests: f64,
}

/// A route, or all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scope<'a> {
    /// The route in the batch; `None` for all requests.
    pub(super) route: Option<&'a str>,
    /// The route on the other side; `None` for all requests if the route has too few there.
    pub(super) standard: Option<&'a str>,
}

/// Shares of the batch and of the rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) own: Counted,
    pub(super) others: Counted,
    /// The batch's own nodes before, if they served enough.
    pub(super) before: Option<Counted>,
    /// True if it is larger than chance explains.
    pub(super) is_sure: bool,
}

/// The side on which a share has to be larger.
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

    /// Lowers the evidence and the number of requests that a difference needs, to those of a suspicion.
    pub(super) fn suspecting(self) -> Self {
        Self {
            needed: self.needed * SUSPICION_EVIDENCE,
            min_requests: self.min_requests * SUSPICION_REQUESTS,
            ..self
        }
    }

    /// The names of all routes of both sides.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().copied()
    }

    /// Routes with enough requests in the batch, and all requests as the last scope.
    pub(super) fn scopes(&self) -> Vec<Scope<'a>> {
        let routes = self.names().filter(|name| self.is_served(name));
        let routes = routes.map(|name| Scope {
            route: Some(name),
            standard: self.has_standard(name).then_some(name),
        });
        let all = Scope {
            route: None,
            standard: None,
        };
        routes.chain([all]).collect()
    }

    /// Routes without a verdict of their own, each with its requests.
    pub(super) fn unjudged(&self) -> Vec<(&'a str, u64)> {
        let few = self.names().filter(|name| !self.is_served(name));
        few.map(|name| (name, self.requests(name))).collect()
    }

    /// Compares shares of the requests of a scope.
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
            |node| hits_in(scope.standard, node),
        )
    }

    /// Compares the values that two closures extract from the reports; `None` with too few requests
    /// on either side.
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
        if own.of < self.min_requests || others.of < self.min_requests {
            return None;
        }
        let evidence = match direction {
            Direction::Growth => growth(own, others),
            Direction::Fall => growth(others, own),
        };
        Some(Difference {
            own,
            others,
            before: Some(before).filter(|before| self.min_requests <= before.of),
            is_sure: self.needed <= evidence,
        })
    }

    /// Returns true if `requests` reaches the minimum of a comparison.
    pub(super) fn is_enough(&self, requests: f64) -> bool {
        self.min_requests <= requests
    }

    fn is_served(&self, route: &str) -> bool {
        let nodes = self.batch.iter().map(|node| requests_of(node, route));
        self.is_enough(pool(nodes, ExcludedNode::Lowest).of)
    }

    fn has_standard(&self, route: &str) -> bool {
        let serve = |name: &str| {
            let nodes = self.rest.iter();
            nodes.filter(|node| requests_of(node, name).of > 0).count()
        };
        let serving = self.rest.iter().filter(|node| !node.routes.is_empty());
        let nodes = self.rest.iter().map(|node| requests_of(node, route));
        serving.count().min(MIN_STANDARD_NODES) <= serve(route)
            && self.is_enough(pool(nodes, ExcludedNode::BothEnds).of)
    }

    fn requests(&self, route: &str) -> u64 {
        let nodes = self.batch.iter().map(|node| requests_of(node, route).of);
        nodes.fold(0, u64::saturating_add)
    }
}

impl Difference {
    /// Returns true if the share is surely above `limit` of the rest's, and above the batch's own
    /// share before.
    pub(super) fn exceeds(&self, limit: impl Fn(f64) -> f64) -> bool {
        let own = self.own.share();
        let sides = [Some(self.others), self.before].into_iter().flatten();
        self.is_sure && sides.map(Counted::share).all(|share| limit(share) < own)
    }

    /// Returns true if the share is surely below `limit` of the rest's, and below the batch's own
    /// share before.
    pub(super) fn falls_below(&self, limit: impl Fn(f64) -> f64) -> bool {
        let own = self.own.share();
        let sides = [Some(self.others), self.before].into_iter().flatten();
        self.is_sure && sides.map(Counted::share).all(|share| own < limit(share))
    }

    /// Figures of the batch and of the rest, in one line.
    pub(super) fn text(&self) -> String {
        format!(
            "{} of 1000 among {:.0} requests of the batch, {} of 1000 among {:.0} on the others",
            permille(self.own.share()),
            self.own.of,
            permille(self.others.share()),
            self.others.of
        )
    }
}

impl Scope<'_> {
    /// The beginning of a sentence about it.
    pub(super) fn prefix(&self) -> String {
        let route = self.route.map(|name| format!("route {name}: "));
        route.unwrap_or_default()
    }
}

/// Thousandths, with a decimal place where they are few.
pub(super) fn permille(share: f64) -> String {
    let permille = share * 1_000.0;
    if permille == 0.0 || 10.0 <= permille {
        format!("{permille:.0}")
    } else {
        format!("{permille:.1}")
    }
}

/// The requests of a route, with no hits.
pub(super) fn requests_of(node: &Traffic, route: &str) -> Hits {
    let requests = node.routes.get(route).map_or(0, |route| route.requests);
    Hits {
        hits: 0,
        of: requests,
    }
}

pub(super) fn all_requests(node: &Traffic) -> u64 {
    let requests = node.routes.values().map(|route| route.requests);
    requests.fold(0, u64::saturating_add)
}

/// The counts of a route of a node, or of all its routes.
pub(super) fn counts_of<'t>(
    node: &'t Traffic,
    route: Option<&str>,
) -> impl Iterator<Item = &'t RouteTraffic> {
    let own = route.and_then(|name| node.routes.get(name));
    let all = route.is_none().then(|| node.routes.values());
    own.into_iter().chain(all.into_iter().flatten())
}

/// Routes that do not count the hits are omitted with their requests.
fn sum(node: &Traffic, route: Option<&str>, hits: &impl Fn(&RouteTraffic) -> Option<u64>) -> Hits {
    let own = counts_of(node, route);
    let counted = own.filter_map(|route| Some((hits(route)?, route.requests)));
    counted.fold(Hits::default(), |sum, (hits, of)| Hits {
        hits: sum.hits.saturating_add(hits),
        of: sum.of.saturating_add(of),
    })
}
