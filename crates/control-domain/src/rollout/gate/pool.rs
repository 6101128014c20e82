//! Aggregation of one side's nodes: none weighs more than the median, and outliers are excluded.

use crate::rollout::gate::significance::{Counted, Estimate};
use crate::rollout::weighing::weight_cap;

/// Nodes excluded from an aggregate of at least two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExcludedNode {
    /// The node with the lowest share: a batch must pass without its best node.
    Lowest,
    /// The node with the highest share.
    Highest,
    /// The lowest and the highest, so that no single node decides the baseline; of two nodes, the
    /// highest.
    BothEnds,
}

/// Hits among the requests of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hits {
    /// Number of hits; at most `total`.
    pub(super) hits: u64,
    /// Number of requests.
    pub(super) total: u64,
}

/// Mean and variance of a node's single request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) requests: u64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// Pools the shares of several nodes.
pub(super) fn pool(nodes: impl Iterator<Item = Hits>, without: ExcludedNode) -> Counted {
    let mut nodes: Vec<Hits> = nodes.filter(|node| node.total > 0).collect();
    let cap = weight_cap(nodes.iter().map(|node| node.total));
    let product = |hits: u64, total: u64| u128::from(hits) * u128::from(total);
    nodes.sort_by(|a, b| product(a.hits, b.total).cmp(&product(b.hits, a.total)));
    let mut sum = Counted::default();
    for Hits { hits, total } in without_excluded(&nodes, without) {
        let weight = float((*total).min(cap));
        sum.total += weight;
        sum.hits += float((*hits).min(*total)) * weight / float(*total);
    }
    sum
}

/// Pools the means of several nodes; `None` without requests.
pub(super) fn pool_means(
    nodes: impl Iterator<Item = Spread>,
    without: ExcludedNode,
) -> Option<(Estimate, f64)> {
    let mut nodes: Vec<Spread> = nodes.filter(|node| node.requests > 0).collect();
    let cap = weight_cap(nodes.iter().map(|node| node.requests));
    nodes.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    let (mut requests, mut mean, mut variance) = (0.0, 0.0, 0.0);
    for node in without_excluded(&nodes, without) {
        let weight = float(node.requests.min(cap));
        requests += weight;
        mean += weight * node.mean;
        variance += weight * node.variance;
    }
    (requests > 0.0).then(|| {
        let estimate = Estimate {
            mean: mean / requests,
            variance: variance / (requests * requests),
        };
        (estimate, requests)
    })
}

fn without_excluded<T>(sorted: &[T], without: ExcludedNode) -> &[T] {
    let all = sorted.len();
    let (low, high) = match (all, without) {
        (0 | 1, _) => (0, 0),
        (_, ExcludedNode::Lowest) => (1, 0),
        (_, ExcludedNode::Highest) | (2, ExcludedNode::BothEnds) => (0, 1),
        (_, ExcludedNode::BothEnds) => (1, 1),
    };
    sorted.get(low..all - high).unwrap_or_default()
}

/// Counters of heartbeats are at most 10^15, below the 2^53 that a float represents exactly.
#[expect(
    clippy::cast_precision_loss,
    reason = "a counter above 2^53 is rounded, which changes no verdict"
)]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(nodes: &[(u64, u64)], without: ExcludedNode) -> (f64, f64) {
        let nodes = nodes.iter().map(|(hits, total)| Hits {
            hits: *hits,
            total: *total,
        });
        let Counted { hits, total } = pool(nodes, without);
        (hits, total)
    }

    #[test]
    fn the_extreme_nodes_are_left_out_and_a_busy_one_weighs_as_the_median() {
        let nodes = [(0, 100), (5, 100), (90, 100), (40, 10_000_000)];
        for (nodes, without, expected) in [
            (&nodes[..], ExcludedNode::BothEnds, (5.0, 200.0)),
            (&nodes[..3], ExcludedNode::Lowest, (95.0, 200.0)),
            (&nodes[..3], ExcludedNode::Highest, (5.0, 200.0)),
            (&nodes[..2], ExcludedNode::BothEnds, (0.0, 100.0)),
            (&nodes[1..2], ExcludedNode::Lowest, (5.0, 100.0)),
            (&nodes[..0], ExcludedNode::Lowest, (0.0, 0.0)),
        ] {
            let (hits, total) = pooled(nodes, without);
            assert!((hits - expected.0).abs() < 0.1, "{without:?}: {hits}");
            assert!((total - expected.1).abs() < 0.1, "{without:?}: {total}");
        }
    }
}
