//! Sizes of answers: a wrong upstream that answers 200 answers with something else.
//!
//! Sizes scatter too much for a test of their mean, so that this one asks for a factor and for agreement: every
//! node of the batch is beyond every other node, and beyond itself before.

use crate::rollout::gate::pool::float;
use crate::rollout::gate::sides::{Scope, Sides};
use crate::rollout::gate::verdict::GateFailure;
use control_wire::Traffic;

/// Factor between the mean sizes of two nodes that are not alike.
const SIZE_FACTOR: f64 = 4.0;
/// Bytes that count for each answer: its head.
const HEAD_BYTES: f64 = 64.0;
/// Requests of one node, below which a single large answer decides on its mean.
const MIN_NODE_REQUESTS: f64 = 200.0;
/// Other nodes of which none agrees with the batch, without the extreme two.
const MIN_NODES: usize = 2;

/// The first route with answers of another size than on the rest.
pub(super) fn sizes(sides: &Sides<'_>) -> Option<GateFailure> {
    let scopes = sides.scopes().into_iter();
    let mut routes = scopes.filter(|scope| scope.route.is_some() && scope.route == scope.standard);
    routes.find_map(|scope| differs(sides, scope))
}

fn differs(sides: &Sides<'_>, scope: Scope<'_>) -> Option<GateFailure> {
    let route = scope.route?;
    let own = sizes_of(sides.batch, route);
    // One node at each end may be wrong about itself.
    let others = sizes_of(sides.rest, route);
    let others = others.get(1..others.len().checked_sub(1)?)?;
    let before = sizes_of(sides.before, route);
    if others.len() < MIN_NODES || own.is_empty() {
        return None;
    }
    let (least, most) = (own.first()?, own.last()?);
    let all = || others.iter().chain(&before);
    let is_small = all().all(|other| most * SIZE_FACTOR < *other);
    let is_large = all().all(|other| other * SIZE_FACTOR < *least);
    (is_small || is_large).then(|| {
        GateFailure::Size(format!(
            "{}an answer has {:.0} bytes in the mean, {:.0} on the others; a quarter to four times as many pass \
             ({} nodes of the batch)",
            scope.prefix(),
            least - HEAD_BYTES,
            others.get(others.len() / 2).map_or(0.0, |middle| middle - HEAD_BYTES),
            own.len()
        ))
    })
}

/// Bytes of an answer, of each node with enough requests, in ascending order.
fn sizes_of(nodes: &[Traffic], route: &str) -> Vec<f64> {
    let sizes = nodes.iter().filter_map(|node| {
        let route = node.routes.get(route)?;
        let (bytes, requests) = (float(route.bytes_out?), float(route.requests));
        (MIN_NODE_REQUESTS <= requests).then(|| bytes / requests + HEAD_BYTES)
    });
    let mut sizes: Vec<f64> = sizes.collect();
    sizes.sort_by(f64::total_cmp);
    sizes
}
