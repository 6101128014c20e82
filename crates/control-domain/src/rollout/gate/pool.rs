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
    /// The lowest and the highest, so that no single node sets the baseline; of two nodes, the
    /// highest.
    BothEnds,
    /// None of them.
    None,
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    for Hits { hits, total } in keep(&nodes, without) {
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
    for node in keep(&nodes, without) {
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

/// The nodes without each one of them in turn; a single node stays.
///
/// A batch is compared with its own time before over the same nodes on both sides, so that nodes
/// which are unlike each other do not differ from themselves. If any of these sides has become
/// worse, no false figures of one node excuse the rest.
pub(super) fn without_each<T: Copy>(nodes: &[T]) -> impl Iterator<Item = Vec<T>> {
    let all = nodes.len();
    let is_kept = move |index, without| all == 1 || index != without;
    (0..all).map(move |without| {
        let kept = nodes.iter().enumerate();
        let kept = kept.filter(|(index, _)| is_kept(*index, without));
        kept.map(|(_, node)| *node).collect()
    })
}

/// The means of both values of [`without_each`], without its copies: a batch may have all nodes of a
/// fleet.
pub(super) fn means_without_each(nodes: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let kept = nodes.len().saturating_sub(1).max(1);
    let count = float(u64::try_from(kept).unwrap_or(u64::MAX));
    let total = nodes.iter().fold((0.0, 0.0), |total, node| {
        (total.0 + node.0, total.1 + node.1)
    });
    let is_single = nodes.len() == 1;
    nodes.iter().map(move |node| {
        let without = if is_single { (0.0, 0.0) } else { *node };
        ((total.0 - without.0) / count, (total.1 - without.1) / count)
    })
}

/// Minimum number of requests that a pool counts, whichever nodes are its extreme ones.
pub(super) fn least_pooled(requests: impl Iterator<Item = u64>, without: ExcludedNode) -> f64 {
    let mut nodes: Vec<u64> = requests.filter(|requests| *requests > 0).collect();
    nodes.sort_unstable();
    let cap = weight_cap(nodes.iter().copied());
    let (low, high) = excluded(nodes.len(), without);
    let kept = nodes.iter().take(nodes.len() - low - high);
    kept.map(|requests| float((*requests).min(cap))).sum()
}

fn keep<T>(sorted: &[T], without: ExcludedNode) -> &[T] {
    let (low, high) = excluded(sorted.len(), without);
    sorted.get(low..sorted.len() - high).unwrap_or_default()
}

/// Number of the lowest and of the highest among `nodes` that an aggregate excludes.
fn excluded(nodes: usize, without: ExcludedNode) -> (usize, usize) {
    match (nodes, without) {
        (0 | 1, _) | (_, ExcludedNode::None) => (0, 0),
        (_, ExcludedNode::Lowest) => (1, 0),
        (_, ExcludedNode::Highest) | (2, ExcludedNode::BothEnds) => (0, 1),
        (_, ExcludedNode::BothEnds) => (1, 1),
    }
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
        let nodes = nodes.iter().map(|(hits, of)| Hits {
            hits: *hits,
            total: *of,
        });
        let Counted { hits, total } = pool(nodes, without);
        (hits, total)
    }

    #[test]
    fn the_minimum_of_a_pool_is_that_without_its_busiest_nodes() {
        let all = [70, 0, 50, 60];
        for (nodes, without, expected) in [
            (&all[..], ExcludedNode::Lowest, 110.0),
            (&all[..], ExcludedNode::BothEnds, 50.0),
            (&all[..3], ExcludedNode::BothEnds, 50.0),
            (&all[..1], ExcludedNode::BothEnds, 70.0),
            (&all[1..2], ExcludedNode::Lowest, 0.0),
            (&[50, 5_000][..], ExcludedNode::Lowest, 50.0),
        ] {
            let found = least_pooled(nodes.iter().copied(), without);
            assert!((found - expected).abs() < 1e-9, "{nodes:?} {without:?}");
        }
    }

    #[test]
    fn each_node_is_left_out_in_turn_unless_it_is_the_only_one() {
        let sides = |nodes: &[u8]| without_each(nodes).collect::<Vec<_>>();
        assert_eq!(sides(&[1, 2, 3]), [[2, 3], [1, 3], [1, 2]]);
        assert_eq!(sides(&[1]), [[1]]);
        assert!(sides(&[]).is_empty());
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
            let (hits, of) = pooled(nodes, without);
            assert!((hits - expected.0).abs() < 0.1, "{without:?}: {hits}");
            assert!((of - expected.1).abs() < 0.1, "{without:?}: {of}");
        }
    }
}
