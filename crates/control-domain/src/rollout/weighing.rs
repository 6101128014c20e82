//! Figures of one side of a gate, weighed per node so that no single node decides.

use crate::rollout::served::{count, error_ppm, p99_ms};
use control_wire::RouteTraffic;

/// Divisor of the number of nodes: the part that a trimmed mean leaves out at an end, at least one
/// node.
const TRIMMED_PART: usize = 10;

/// Nodes that a mean leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// The lowest: a batch must pass without its best node.
    Lowest,
    /// The lowest and the highest, so that no single node decides the baseline; of two nodes, the
    /// highest.
    BothEnds,
}

/// Figures of several nodes for one route, or for all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeighedFigures {
    /// Number of nodes that served requests.
    pub nodes: usize,
    /// Number of requests; a node above the median counts as much as the median.
    pub requests: u64,
    /// Trimmed mean of the nodes' shares of 5xx, in thousandths.
    pub error_permille: i64,
    /// Trimmed mean of the nodes' 99th percentiles, in milliseconds; `None` without requests.
    pub p99_ms: Option<i64>,
}

/// Counts for one route or for all requests, with an entry per serving node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeCounts {
    nodes: Vec<NodeCount>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct NodeCount {
    requests: u64,
    error_ppm: u64,
    p99_ms: Option<i64>,
}

impl NodeCounts {
    /// Adds a node, unless it served no request.
    pub(crate) fn push(&mut self, served: &RouteTraffic) {
        if served.requests > 0 {
            self.nodes.push(NodeCount {
                requests: served.requests,
                error_ppm: error_ppm(served),
                p99_ms: p99_ms(served),
            });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn weigh(&self, trim: Trim) -> WeighedFigures {
        let cap = weight_cap(self.nodes.iter().map(|node| node.requests));
        let weight = |node: &NodeCount| node.requests.min(cap);
        let weights = self.nodes.iter().map(weight);
        let errors = self.nodes.iter();
        let errors = errors.map(|node| (node.error_ppm, weight(node))).collect();
        let p99s = self.nodes.iter().filter_map(|node| {
            let p99_ms = u64::try_from(node.p99_ms?).ok()?;
            Some((p99_ms, weight(node)))
        });
        WeighedFigures {
            nodes: self.nodes.len(),
            requests: weights.fold(0, u64::saturating_add),
            error_permille: weighted_mean(errors, trim).map_or(0, |ppm| count(ppm / 1_000)),
            p99_ms: weighted_mean(p99s.collect(), trim).map(count),
        }
    }
}

/// Maximum weight of a node, in requests: the median, but never the busiest node's own count.
pub(crate) fn weight_cap(requests: impl Iterator<Item = u64>) -> u64 {
    let mut sorted: Vec<u64> = requests.collect();
    sorted.sort_unstable();
    let middle = (sorted.len() / 2).min(sorted.len().saturating_sub(2));
    sorted.get(middle).copied().unwrap_or_default()
}

/// Trimmed mean of the values; `None` without values.
pub(crate) fn mean(mut values: Vec<f64>, trim: Trim) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let kept = trimmed(&values, trim);
    let nodes = u32::try_from(kept.len()).ok().filter(|nodes| *nodes > 0)?;
    Some(kept.iter().sum::<f64>() / f64::from(nodes))
}

/// Trimmed, weighted mean of pairs of value and weight.
fn weighted_mean(mut values: Vec<(u64, u64)>, trim: Trim) -> Option<u64> {
    values.sort_unstable();
    let kept = trimmed(&values, trim);
    let all: u128 = kept.iter().map(|(_, weight)| u128::from(*weight)).sum();
    let product = |(value, weight): &(u64, u64)| u128::from(*value) * u128::from(*weight);
    let sum = kept.iter().map(product).fold(0, u128::saturating_add);
    sum.checked_div(all)
        .map(|mean| u64::try_from(mean).unwrap_or(u64::MAX))
}

fn trimmed<T>(sorted: &[T], trim: Trim) -> &[T] {
    let nodes = sorted.len();
    let part = if nodes < 2 {
        0
    } else {
        (nodes / TRIMMED_PART).max(1)
    };
    let (low, high) = match trim {
        Trim::Lowest => (part, 0),
        Trim::BothEnds if part * 2 < nodes => (part, part),
        Trim::BothEnds => (0, part),
    };
    sorted.get(low..nodes - high).unwrap_or_default()
}
