//! Comparison of statuses: growth of 5xx, 4xx or reasons of failure, and lost refusals.

use crate::rollout::gate::settings::Gate;
use crate::rollout::gate::sides::{ComparedReports, Direction, Scope, counts_of, permille};
use crate::rollout::gate::verdict::GateFailure;
use control_wire::{RouteTraffic, Traffic};
use proxy_errors::Reason;
use std::collections::BTreeSet;

/// Tolerated growth of 4xx as a multiple of that of 5xx, because clients cause 4xx as well.
const CLIENT_FAULT_FACTOR: f64 = 3.0;
/// Minimum growth of a client-caused share, as a multiple of the rest's share.
const CLIENT_FAULT_GROWTH: f64 = 2.0;
/// Divisor of the tolerated growth of 5xx, for a single reason of failure.
const REASON_PART: f64 = 10.0;
/// Tolerated growth of redirects, as a share of the route's requests.
const MAX_REDIRECT_GROWTH: f64 = 0.2;
/// Minimum share of refusals on the rest for a comparison.
const MIN_REFUSALS: f64 = 0.01;
/// Fraction of the rest's share of refusals below which the batch has lost them.
const LOST_PART: f64 = 0.1;

/// The first route, or the total, with too much growth of 5xx.
pub(super) fn errors(gate: &Gate, sides: &ComparedReports<'_>) -> Option<GateFailure> {
    let more = share(gate.max_error_increase_permille);
    sides.scopes().find_map(|scope| {
        let found = sides.share(scope, Direction::Growth, |route| Some(route.errors))?;
        let limit = found.others.share() + more;
        (found.is_significant && limit < found.own.share()).then(|| {
            GateFailure::Errors(format!(
                "{}{} end with 5xx; up to {} of 1000 pass",
                scope.prefix(),
                found.text(),
                permille(limit)
            ))
        })
    })
}

/// The first reason of failure that is too frequent in the batch.
pub(super) fn reasons(gate: &Gate, sides: &ComparedReports<'_>) -> Option<GateFailure> {
    let all = Scope {
        route: None,
        baseline: None,
    };
    let routes = sides.batch.iter().flat_map(|node| node.routes.values());
    let names: BTreeSet<&str> = routes
        .flat_map(|route| route.reasons.keys().map(String::as_str))
        .collect();
    names.into_iter().find_map(|name| {
        let more = share(gate.max_error_increase_permille);
        let more = match reason(name) {
            Some(Reason::ClientAborted) => return None,
            Some(reason) if reason.is_client_fault() => more * CLIENT_FAULT_FACTOR,
            Some(_) | None => more / REASON_PART,
        };
        let failures = |route: &RouteTraffic| Some(route.reasons.get(name).copied().unwrap_or(0));
        let found = sides.share(all, Direction::Growth, failures)?;
        let allowed = u32::try_from(gate.max_new_failures).unwrap_or(u32::MAX);
        let is_worse = found.exceeds(grown_by(more)) && f64::from(allowed) < found.own.hits;
        is_worse.then(|| {
            let limit = grown_by(more)(found.others.share());
            GateFailure::NewReason(format!(
                "{} fail with the reason {name}; up to {} of 1000 pass",
                found.text(),
                permille(limit)
            ))
        })
    })
}

/// The first status that is too frequent on a route of the batch, or a lost refusal.
pub(super) fn statuses(gate: &Gate, sides: &ComparedReports<'_>) -> Option<GateFailure> {
    let more = share(gate.max_error_increase_permille) * CLIENT_FAULT_FACTOR;
    // A new route may answer unlike the average request, so it is compared within the total.
    let scopes = sides.scopes();
    let mut scopes = scopes.filter(|scope| scope.route == scope.baseline);
    scopes.find_map(|scope| {
        let redirects = ("a redirect".to_owned(), 300..400, MAX_REDIRECT_GROWTH);
        let statuses = client_faults(sides.batch, scope.route).into_iter();
        let statuses = statuses.map(|status| (status.to_string(), status..status + 1, more));
        let grown = statuses.chain([redirects]).find_map(|(name, range, more)| {
            let hits = |route: &RouteTraffic| answered(route, &range);
            let found = sides.share(scope, Direction::Growth, hits)?;
            found.exceeds(grown_by(more)).then(|| {
                let limit = grown_by(more)(found.others.share());
                GateFailure::Statuses(format!(
                    "{}{} are answered with {name}; up to {} of 1000 pass",
                    scope.prefix(),
                    found.text(),
                    permille(limit)
                ))
            })
        });
        grown.or_else(|| lost_refusals(sides, scope))
    })
}

/// Detects a route that serves requests which it refused before, because it lost its authorization.
fn lost_refusals(sides: &ComparedReports<'_>, scope: Scope<'_>) -> Option<GateFailure> {
    if scope.route != scope.baseline {
        return None;
    }
    let refused = |route: &RouteTraffic| {
        let both = [401..402, 403..404].map(|range| answered(route, &range));
        Some(both.into_iter().flatten().fold(0, u64::saturating_add))
            .filter(|_| !route.statuses.is_empty())
    };
    let found = sides.share(scope, Direction::Fall, refused)?;
    let is_lost = found.falls_below(|share| {
        if share < MIN_REFUSALS {
            0.0
        } else {
            share * LOST_PART
        }
    });
    is_lost.then(|| {
        GateFailure::Statuses(format!(
            "{}{} are refused with 401 or 403; at least a tenth of the others' share passes",
            scope.prefix(),
            found.text()
        ))
    })
}

fn client_faults(nodes: &[Traffic], route: Option<&str>) -> BTreeSet<u16> {
    let own = nodes.iter().flat_map(|node| counts_of(node, route));
    let statuses = own.flat_map(|route| route.statuses.keys().copied());
    // 499 as well: clients give up while an upstream hangs.
    statuses
        .filter(|status| (400..500).contains(status))
        .collect()
}

/// Responses with a status in `range`; `None` if the node does not count statuses.
fn answered(route: &RouteTraffic, range: &std::ops::Range<u16>) -> Option<u64> {
    if route.statuses.is_empty() {
        return None;
    }
    let own = route.statuses.range(range.clone());
    Some(own.map(|(_, count)| *count).fold(0, u64::saturating_add))
}

/// Maximum share that passes: [`CLIENT_FAULT_GROWTH`] times the baseline's share, while the other
/// requests shrink at most by that factor; otherwise half of a route's requests could grow to all
/// of them. A growth by `more` always passes.
fn grown_by(more: f64) -> impl Fn(f64) -> f64 {
    move |share| {
        let rest = (1.0 - share) / CLIENT_FAULT_GROWTH;
        let grown = (share * CLIENT_FAULT_GROWTH).min(1.0 - rest);
        grown.max(share + more)
    }
}

fn share(permille: i64) -> f64 {
    f64::from(i32::try_from(permille).unwrap_or(i32::MAX)) / 1_000.0
}

fn reason(name: &str) -> Option<Reason> {
    let mut all = Reason::ALL.iter();
    all.find(|known| known.as_str() == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_requests_does_not_grow_to_all_of_them() {
        let limit = grown_by(0.15);
        for (share, expected) in [(0.0, 0.15), (0.2, 0.4), (0.5, 0.75), (0.8, 0.95)] {
            let found = limit(share);
            assert!((found - expected).abs() < 1e-9, "{share}: {found}");
        }
    }
}
