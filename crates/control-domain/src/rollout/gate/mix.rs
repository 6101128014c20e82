//! The mix of requests: their distribution over routes and connections.

use crate::rollout::figures::all_requests;
use crate::rollout::gate::pool::Hits;
use crate::rollout::gate::settings::Gate;
use crate::rollout::gate::sides::{ComparedReports, Direction, permille, requests_of};
use crate::rollout::gate::verdict::GateFailure;
use control_wire::{ConnectionTraffic, Traffic};

/// Factor by which a route's share must grow or shrink to count as a shift.
const SHIFT_FACTOR: f64 = 2.0;
/// Factor of the tolerated shift if the batch is compared with itself at another time of day.
const EARLIER_FACTOR: f64 = 4.0;
/// Value of `max_mix_shift_permille` that permits every shift.
const ANY_SHIFT_PERMILLE: i64 = 1_000;
/// Tolerated growth of the share of failed TLS handshakes.
const MAX_HANDSHAKE_GROWTH: f64 = 0.1;
/// Minimum share of TLS connections for a comparison.
const MIN_TLS_SHARE: f64 = 0.05;
/// Fraction of the rest's share of TLS connections below which a listener counts as lost.
const LOST_SHARE: f64 = 0.1;

/// The first route with a shifted share of the requests.
pub(super) fn routes(gate: &Gate, sides: &ComparedReports<'_>) -> Option<GateFailure> {
    if ANY_SHIFT_PERMILLE <= gate.max_mix_shift_permille {
        return None;
    }
    let shift = f64::from(i32::try_from(gate.max_mix_shift_permille).unwrap_or(i32::MAX)) / 1_000.0;
    let factor = if sides.is_earlier {
        EARLIER_FACTOR
    } else {
        1.0
    };
    let shift = shift * factor;
    let low = |share: f64| (share / SHIFT_FACTOR).min(share - shift);
    let high = |share: f64| (share * SHIFT_FACTOR).max(share + shift);
    sides.names().find_map(|name| {
        let part = |node: &Traffic| Hits {
            hits: requests_of(node, name).total,
            total: all_requests(node),
        };
        let grown = sides.compare(Direction::Growth, part, part)?;
        let fallen = sides.compare(Direction::Fall, part, part)?;
        let found = if grown.exceeds(high) {
            grown
        } else if fallen.falls_below(low) {
            fallen
        } else {
            return None;
        };
        let others = found.others.share();
        Some(GateFailure::Mix(format!(
            "route {name} serves {}; {} to {} of 1000 pass, and more with gate.max_mix_shift_permille",
            found.text(),
            permille(low(others).max(0.0)),
            permille(high(others).min(1.0))
        )))
    })
}

/// Failed handshakes, missing TLS connections, and connections closed because of their PROXY
/// header.
pub(super) fn handshakes(sides: &ComparedReports<'_>) -> Option<GateFailure> {
    let limit = |share: f64| (share * SHIFT_FACTOR).max(share + MAX_HANDSHAKE_GROWTH);
    let closed = |node: &Traffic| {
        connections(node, |counts| Hits {
            hits: counts.proxy_headers_failed,
            total: counts.accepted,
        })
    };
    if let Some(found) = sides.compare(Direction::Growth, closed, closed)
        && found.exceeds(limit)
    {
        return Some(GateFailure::Handshakes(format!(
            "connections are closed for their PROXY header for {}; up to {} of 1000 pass",
            found.text(),
            permille(limit(found.others.share()))
        )));
    }
    let failed = |node: &Traffic| {
        connections(node, |counts| Hits {
            hits: counts.handshakes_failed,
            total: handshake_count(counts),
        })
    };
    let found = sides.compare(Direction::Growth, failed, failed);
    if let Some(found) = found
        && found.exceeds(limit)
    {
        return Some(GateFailure::Handshakes(format!(
            "TLS handshakes fail for {}; up to {} of 1000 pass",
            found.text(),
            permille(limit(found.others.share()))
        )));
    }
    let with_tls = |node: &Traffic| {
        connections(node, |counts| Hits {
            hits: handshake_count(counts),
            total: counts.accepted,
        })
    };
    let found = sides.compare(Direction::Fall, with_tls, with_tls)?;
    let is_lost = found.falls_below(|share| {
        if share < MIN_TLS_SHARE {
            0.0
        } else {
            share * LOST_SHARE
        }
    });
    is_lost.then(|| {
        GateFailure::Handshakes(format!(
            "clients connect with TLS for {}; at least a tenth of the others' share passes",
            found.text()
        ))
    })
}

/// Counts of a node's connections; no hits if the node does not count connections.
fn connections(node: &Traffic, hits: impl Fn(ConnectionTraffic) -> Hits) -> Hits {
    node.connections.map(hits).unwrap_or_default()
}

fn handshake_count(counts: ConnectionTraffic) -> u64 {
    counts
        .handshakes_completed
        .saturating_add(counts.handshakes_failed)
}
