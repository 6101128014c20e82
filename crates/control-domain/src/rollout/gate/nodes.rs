//! Comparison of single nodes with the rest, because one node's faults disappear in a large batch's
//! figures.

use crate::rollout::figures::{Comparison, Figures, NodeFigures};
use crate::rollout::gate::latency::p99_limit;
use crate::rollout::gate::pool::float;
use crate::rollout::gate::settings::Gate;
use crate::rollout::gate::significance::{Counted, growth};
use crate::rollout::gate::verdict::GateFailure;
use crate::rollout::served::{count, error_permille};
use crate::rollout::weighing::{Trim, WeighedFigures};

/// Tolerance for one node, as a multiple of the batch's: fewer requests and clients mean more
/// noise.
const NODE_ERROR_FACTOR: i64 = 10;
/// Growth of a node's 5xx above which the node is worse in any case.
const MAX_NODE_ERROR_INCREASE_PERMILLE: i64 = 500;
/// Tolerated growth of one node's CPU use, as a multiple of the tolerated growth of the mean.
const NODE_CPU_FACTOR: i64 = 2;
/// Divisor of the batch's mean traffic: a node with less is idle.
const IDLE_SHARE: u64 = 20;
/// Divisor of the mean traffic before the switch: a node with less is not judged as idle.
const BUSY_SHARE: u64 = 4;

/// The first node of the batch that is worse than the rest.
pub(super) fn worse(gate: &Gate, compared: &Comparison, needed: f64) -> Option<GateFailure> {
    let others = compared.rest.weigh(Trim::BothEnds);
    let others_cpu = compared.rest.mean_cpu_percent(Trim::BothEnds);
    let mut nodes = compared.batch.each.iter();
    nodes.find_map(|node| {
        errors(gate, node, others, needed)
            .or_else(|| latency(gate, node, others))
            .or_else(|| cpu(gate, node, others_cpu?))
    })
}

fn errors(
    gate: &Gate,
    node: &NodeFigures,
    others: WeighedFigures,
    needed: f64,
) -> Option<GateFailure> {
    let allowed = gate.max_error_increase_permille;
    let limit = allowed
        .saturating_mul(NODE_ERROR_FACTOR)
        .min(MAX_NODE_ERROR_INCREASE_PERMILLE)
        .max(allowed);
    let (errors, usual) = (error_permille(node.served), others.error_permille);
    if !is_enough(gate, node) || errors <= usual + limit {
        return None;
    }
    let requests = float(node.served.requests);
    let own = Counted {
        hits: float(node.served.errors).min(requests),
        total: requests,
    };
    let all = float(others.requests);
    let usual_hits = all * float(usual.unsigned_abs()) / 1_000.0;
    let rest = Counted {
        hits: usual_hits.min(all),
        total: all,
    };
    (needed <= growth(own, rest)).then(|| {
        GateFailure::Errors(format!(
            "node {}: {errors} of 1000 among {requests:.0} requests end with 5xx, {usual} of 1000 on the others; \
             up to {} of 1000 pass",
            node.node,
            usual + limit
        ))
    })
}

fn latency(gate: &Gate, node: &NodeFigures, others: WeighedFigures) -> Option<GateFailure> {
    let before = node.before;
    let before = before.filter(|before| gate.min_requests <= count(before.requests));
    let before_ms = before.and_then(|before| before.median_ms);
    let limit = p99_limit(gate, others.p99_ms?.max(before_ms.unwrap_or_default()));
    let median = node.median_ms?;
    (is_enough(gate, node) && limit < median).then(|| {
        GateFailure::Latency(format!(
            "node {}: half of its {} requests take {median} ms or more, 99 % may take {limit} ms",
            node.node, node.served.requests
        ))
    })
}

fn cpu(gate: &Gate, node: &NodeFigures, others: f64) -> Option<GateFailure> {
    let before = node.before.map_or(0.0, |before| before.cpu_percent);
    let usual = others.max(before);
    let more = gate
        .max_cpu_increase_percent
        .saturating_mul(NODE_CPU_FACTOR);
    let limit = usual + f64::from(i32::try_from(more).unwrap_or(i32::MAX));
    (limit < node.cpu_percent).then(|| {
        GateFailure::Cpu(format!(
            "node {}: it uses {:.0} % CPU, {usual:.0} % before and on the others; up to {limit:.0} % pass",
            node.node, node.cpu_percent
        ))
    })
}

/// Names a node that served its share before its switch and almost nothing since: it provides no
/// evidence for the bundle.
pub(super) fn idle(gate: &Gate, batch: &Figures) -> Option<String> {
    let mean = batch.mean_requests();
    if count(mean) < gate.min_requests {
        return None;
    }
    let before = |node: &NodeFigures| node.before.map_or(0, |before| before.requests);
    let usual = batch.mean_requests_before();
    let was_busy = |node: &NodeFigures| {
        let own = before(node);
        own > 0 && usual <= own.saturating_mul(BUSY_SHARE)
    };
    let idle = |node: &&NodeFigures| {
        was_busy(node) && node.served.requests.saturating_mul(IDLE_SHARE) < mean
    };
    let node = batch.each.iter().find(idle)?;
    Some(format!(
        "node {} serves {} requests, a node of the batch {mean}",
        node.node, node.served.requests
    ))
}

fn is_enough(gate: &Gate, node: &NodeFigures) -> bool {
    gate.min_requests <= count(node.served.requests)
}
