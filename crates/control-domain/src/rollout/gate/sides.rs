//! The two sides of a gate, compared by route.

use crate::rollout::figures::{Comparison, Figures, all_requests};
use crate::rollout::gate::pool::{ExcludedNode, Hits, float, least_pooled, pool, without_each};
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
/// Fraction of the evidence against the rest that is needed against the batch's own time before.
/// Without a minimum, chance would stop a node that always differs from the rest.
const CHANGE_EVIDENCE: f64 = 0.5;

/// Reports of the batch, of the nodes that it is compared with, and of the batch's nodes before.
pub(super) struct ComparedReports<'a> {
    pub(super) batch: &'a [Traffic],
    pub(super) rest: &'a [Traffic],
    /// In the order of `batch`, without requests where they are unknown; or empty.
    before: &'a [Traffic],
    /// True if the rest consists only of the batch's own nodes before the rollout, at another time
    /// of day.
    pub(super) is_earlier: bool,
    /// Minimum evidence of a significant difference.
    pub(super) needed: f64,
    names: BTreeSet<&'a str>,
    min_requests: f64,
    scopes: Vec<Scope<'a>>,
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
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) own: Counted,
    pub(super) others: Counted,
    /// Set if the difference is significant.
    pub(super) is_significant: bool,
    direction: Direction,
    /// Each node of the batch, with its own time before.
    nodes: Vec<Change>,
    needed: f64,
    min_requests: f64,
}

/// A node of the batch, and its own time before.
#[derive(Clone, Copy, Debug)]
struct Change {
    now: Hits,
    before: Hits,
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
            scopes: Vec::new(),
        }
        .with_scopes()
    }

    /// Lowers the required evidence and number of requests to those of a suspicion.
    pub(super) fn suspecting(self) -> Self {
        Self {
            needed: self.needed * SUSPICION_EVIDENCE,
            min_requests: self.min_requests * SUSPICION_REQUESTS,
            ..self
        }
        .with_scopes()
    }

    /// Names of all routes, of either side.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().copied()
    }

    /// Routes with enough requests in the batch; all requests together as the last scope.
    pub(super) fn scopes(&self) -> impl Iterator<Item = Scope<'a>> {
        self.scopes.iter().copied()
    }

    fn with_scopes(self) -> Self {
        let routes = self.names().filter(|name| self.is_served(name));
        let routes = routes.map(|name| Scope {
            route: Some(name),
            baseline: self.has_baseline(name).then_some(name),
        });
        let all = Scope {
            route: None,
            baseline: None,
        };
        let scopes = routes.chain([all]).collect();
        Self { scopes, ..self }
    }

    /// Routes without a separate verdict, with the numbers of the batch's requests that count.
    pub(super) fn unjudged(&self) -> Vec<(&'a str, f64)> {
        let few = self.names().filter(|name| !self.is_served(name));
        few.map(|name| (name, self.served_by_batch(name))).collect()
    }

    /// Numbers of requests of the batch and of the rest that every comparison of all requests
    /// counts.
    pub(super) fn counted(&self) -> (f64, f64) {
        let least =
            |nodes: &[Traffic], without| least_pooled(nodes.iter().map(all_requests), without);
        (
            least(self.batch, ExcludedNode::Lowest),
            least(self.rest, ExcludedNode::BothEnds),
        )
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
        let changes = self.with_before();
        let changes = changes.map(|(now, before)| Change {
            now: own(now),
            before: before.map(&own).unwrap_or_default(),
        });
        let nodes: Vec<Change> = changes.collect();
        let own = pool(nodes.iter().map(|node| node.now), without);
        let others = pool(self.rest.iter().map(others), ExcludedNode::BothEnds);
        if own.total < self.min_requests || others.total < self.min_requests {
            return None;
        }
        Some(Difference {
            own,
            others,
            is_significant: self.needed <= direction.evidence(own, others),
            direction,
            nodes,
            needed: self.needed,
            min_requests: self.min_requests,
        })
    }

    /// Each node of the batch, with its own time before if it is known.
    pub(super) fn with_before(&self) -> impl Iterator<Item = (&'a Traffic, Option<&'a Traffic>)> {
        let nodes = self.batch.iter().enumerate();
        nodes.map(|(index, node)| (node, self.before.get(index)))
    }

    /// Minimum evidence of a difference to the batch's own time before.
    pub(super) fn change_needed(&self) -> f64 {
        self.needed * CHANGE_EVIDENCE
    }

    /// Returns true if `requests` reaches the minimum of a comparison.
    pub(super) fn is_enough(&self, requests: f64) -> bool {
        self.min_requests <= requests
    }

    fn is_served(&self, route: &str) -> bool {
        self.is_enough(self.served_by_batch(route))
    }

    fn has_baseline(&self, route: &str) -> bool {
        let serve = |name: &str| {
            let nodes = self.rest.iter();
            nodes
                .filter(|node| requests_of(node, name).total > 0)
                .count()
        };
        let serving = self.rest.iter().filter(|node| !node.routes.is_empty());
        let requests = self.rest.iter().map(|node| requests_of(node, route).total);
        serving.count().min(MIN_BASELINE_NODES) <= serve(route)
            && self.is_enough(least_pooled(requests, ExcludedNode::BothEnds))
    }

    fn served_by_batch(&self, route: &str) -> f64 {
        let requests = self.batch.iter().map(|node| requests_of(node, route).total);
        least_pooled(requests, ExcludedNode::Lowest)
    }
}

impl Direction {
    fn evidence(self, own: Counted, others: Counted) -> f64 {
        match self {
            Self::Growth => growth(own, others),
            Self::Fall => growth(others, own),
        }
    }
}

impl Difference {
    /// Returns true if the share is significantly above `limit` of the rest's, and of the batch's
    /// own share before.
    pub(super) fn exceeds(&self, limit: impl Fn(f64) -> f64) -> bool {
        self.is_worse(|own, usual| limit(usual) < own)
    }

    /// Returns true if the share is significantly below `limit` of the rest's, and of the batch's
    /// own share before.
    pub(super) fn falls_below(&self, limit: impl Fn(f64) -> f64) -> bool {
        self.is_worse(|own, usual| own < limit(usual))
    }

    fn is_worse(&self, is_large: impl Fn(f64, f64) -> bool) -> bool {
        let is_beyond = |own: Counted, usual: Counted, needed: f64| {
            is_large(own.share(), usual.share()) && needed <= self.direction.evidence(own, usual)
        };
        let has_changed = |nodes: Vec<Change>| {
            let all = |hits: fn(&Change) -> Hits| pool(nodes.iter().map(hits), ExcludedNode::None);
            let (own, before) = (all(|node| node.now), all(|node| node.before));
            let is_known = self.min_requests <= before.total;
            self.min_requests <= own.total
                && is_beyond(own, self.others, self.needed)
                && (!is_known || is_beyond(own, before, self.needed * CHANGE_EVIDENCE))
        };
        is_beyond(self.own, self.others, self.needed) && without_each(&self.nodes).any(has_changed)
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
    counted.fold(Hits::default(), |sum, (hits, of)| Hits {
        hits: sum.hits.saturating_add(hits),
        total: sum.total.saturating_add(of),
    })
}
