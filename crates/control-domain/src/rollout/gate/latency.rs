//! Latency: the 99th percentile, the mean, and the time to the first byte of streams.

use crate::rollout::figures::total;
use crate::rollout::gate::pool::{ExcludedNode, Spread, float, pool_means};
use crate::rollout::gate::settings::Gate;
use crate::rollout::gate::sides::{ComparedReports, Direction, Scope, counts_of};
use crate::rollout::gate::significance::{Estimate, excess};
use crate::rollout::gate::verdict::GateFailure;
use crate::rollout::weighing::{NodeCounts, Trim};
use control_wire::{LATENCY_BOUNDS_MS, RouteTraffic, Traffic};

/// Divisor of the 99th percentile's slack: growth of the mean that always passes.
const MEAN_SLACK_PART: f64 = 5.0;
/// Tolerated growth factor of the mean time to a stream's first byte.
const FIRST_BYTE_FACTOR: f64 = 2.0;
/// Factor of the last bound: the value that longer durations count as.
const LONGEST_FACTOR: f64 = 2.0;

type Buckets = [u64; LATENCY_BOUNDS_MS.len() + 1];

/// The first route, or the total, that is too slow in the batch.
pub(super) fn latency(gate: &Gate, sides: &ComparedReports<'_>) -> Option<GateFailure> {
    let scopes = sides.scopes();
    let mut own = scopes.iter().filter(|scope| scope.route == scope.baseline);
    own.find_map(|scope| {
        slowest(gate, sides, *scope)
            .or_else(|| mean(gate, sides, *scope))
            .or_else(|| first_byte(gate, sides, *scope))
    })
}

/// Maximum p99 of the batch that passes, in milliseconds.
pub(super) fn p99_limit(gate: &Gate, others_ms: i64) -> i64 {
    let share = others_ms.saturating_mul(gate.max_p99_percent) / 100;
    share.saturating_add(gate.p99_slack_ms)
}

fn slowest(gate: &Gate, sides: &ComparedReports<'_>, scope: Scope<'_>) -> Option<GateFailure> {
    let own = p99_ms(sides.batch, scope.route, Trim::Lowest)?;
    let others = p99_ms(sides.rest, scope.baseline, Trim::BothEnds)?;
    let limit = p99_limit(gate, others);
    if own <= limit {
        return None;
    }
    let bounds = LATENCY_BOUNDS_MS.iter();
    let within = bounds
        .take_while(|bound| i64::from(**bound) < limit)
        .count()
        + 1;
    let within = within.min(LATENCY_BOUNDS_MS.len());
    let slow = |route: &RouteTraffic| {
        let above = route.latency.iter().skip(within);
        Some(above.copied().fold(0, u64::saturating_add))
    };
    let found = sides.share(scope, Direction::Growth, slow)?;
    found.is_significant.then(|| {
        GateFailure::Latency(format!(
            "{}99 % of requests take up to {own} ms, {others} ms on the others; up to {limit} ms pass \
             ({:.0} requests of the batch)",
            scope.prefix(),
            found.own.total
        ))
    })
}

fn mean(gate: &Gate, sides: &ComparedReports<'_>, scope: Scope<'_>) -> Option<GateFailure> {
    let more = f64::from(i32::try_from(gate.max_latency_increase_percent).unwrap_or(i32::MAX));
    let slack = float(gate.p99_slack_ms.unsigned_abs()) / MEAN_SLACK_PART;
    let limit = |ms: f64| (ms * (1.0 + more / 100.0)).max(ms + slack);
    let durations = |route: &RouteTraffic| Some((route.latency, route.latency_us));
    let SlowerBatch {
        own,
        others,
        requests,
    } = significantly_slower(sides, scope, durations, limit)?;
    Some(GateFailure::Latency(format!(
        "{}a request takes {own:.1} ms in the mean, {others:.1} ms on the others; up to {:.1} ms pass \
         ({requests:.0} requests of the batch)",
        scope.prefix(),
        limit(others)
    )))
}

fn first_byte(gate: &Gate, sides: &ComparedReports<'_>, scope: Scope<'_>) -> Option<GateFailure> {
    let slack = float(gate.p99_slack_ms.unsigned_abs());
    let limit = |ms: f64| (ms * FIRST_BYTE_FACTOR).max(ms + slack);
    let durations = |route: &RouteTraffic| Some((route.first_byte?, None));
    let SlowerBatch {
        own,
        others,
        requests,
    } = significantly_slower(sides, scope, durations, limit)?;
    Some(GateFailure::Latency(format!(
        "{}the first byte of a stream comes after {own:.1} ms in the mean, {others:.1} ms on the others; \
         up to {:.1} ms pass ({requests:.0} streams of the batch)",
        scope.prefix(),
        limit(others)
    )))
}

/// Means of a batch that is slower than the rest, in milliseconds.
struct SlowerBatch {
    own: f64,
    others: f64,
    /// Number of the batch's requests.
    requests: f64,
}

/// The means of both sides, if the batch's mean is significantly above `limit` of the rest's.
fn significantly_slower(
    sides: &ComparedReports<'_>,
    scope: Scope<'_>,
    durations: impl Fn(&RouteTraffic) -> Option<(Buckets, Option<u64>)>,
    limit: impl Fn(f64) -> f64,
) -> Option<SlowerBatch> {
    let means = |nodes: &[Traffic], route: Option<&str>, without: ExcludedNode| {
        let spreads = nodes.iter().map(|node| spread(node, route, &durations));
        let pooled = pool_means(spreads, without);
        pooled.filter(|(_, requests)| sides.is_enough(*requests))
    };
    let (own, requests) = means(sides.batch, scope.route, ExcludedNode::Lowest)?;
    let (others, _) = means(sides.rest, scope.baseline, ExcludedNode::BothEnds)?;
    let before = means(sides.before, scope.route, ExcludedNode::BothEnds);
    let mut baselines = [Some(others), before.map(|(before, _)| before)]
        .into_iter()
        .flatten();
    let is_slower = baselines.all(|Estimate { mean, .. }| limit(mean) < own.mean);
    let is_significant = sides.needed <= excess(own, others);
    (is_slower && is_significant).then_some(SlowerBatch {
        own: own.mean,
        others: others.mean,
        requests,
    })
}

/// Mean and variance of a node's durations in milliseconds: from their reported sum, or else from
/// the buckets' midpoints.
fn spread(
    node: &Traffic,
    route: Option<&str>,
    durations: &impl Fn(&RouteTraffic) -> Option<(Buckets, Option<u64>)>,
) -> Spread {
    let (mut counts, mut sum_us) = (Buckets::default(), Some(0_u64));
    for (buckets, us) in counts_of(node, route).filter_map(durations) {
        for (sum, count) in counts.iter_mut().zip(buckets) {
            *sum = sum.saturating_add(count);
        }
        sum_us = sum_us.zip(us).map(|(sum, us)| sum.saturating_add(us));
    }
    let requests = counts
        .iter()
        .fold(0_u64, |sum, count| sum.saturating_add(*count));
    let all = float(requests).max(1.0);
    let weighed = |value: &dyn Fn(f64, f64) -> f64| {
        let buckets = bounds().zip(counts);
        buckets
            .map(|((lower, upper), count)| float(count) * value(lower, upper))
            .sum::<f64>()
            / all
    };
    let (middle, most) = (
        weighed(&|lower, upper| f64::midpoint(lower, upper)),
        weighed(&|_, upper| upper),
    );
    let reported = sum_us.map(|us| float(us) / 1_000.0 / all);
    let mean = reported.map_or(middle, |reported| reported.min(most));
    let variance = weighed(&|lower, upper| {
        let (distance, width) = (f64::midpoint(lower, upper) - mean, upper - lower);
        distance * distance + width * width / 12.0
    });
    Spread {
        requests,
        mean,
        variance,
    }
}

/// Lower and upper bound of each bucket, in milliseconds.
fn bounds() -> impl Iterator<Item = (f64, f64)> {
    let uppers = LATENCY_BOUNDS_MS.into_iter().map(f64::from);
    let last = LATENCY_BOUNDS_MS.last().copied().map_or(0.0, f64::from);
    let lowers = std::iter::once(0.0).chain(uppers.clone());
    lowers.zip(uppers.chain([last * LONGEST_FACTOR]))
}

fn p99_ms(nodes: &[Traffic], route: Option<&str>, trim: Trim) -> Option<i64> {
    let mut counts = NodeCounts::default();
    for node in nodes {
        if route.is_none() {
            counts.push(&total(node));
            continue;
        }
        for route in counts_of(node, route) {
            counts.push(route);
        }
    }
    counts.weigh(trim).p99_ms
}
