//! Latency: the 99th percentile, the mean, and the time to the first byte of streams.

use crate::rollout::figures::total;
use crate::rollout::gate::pool::{ExcludedNode, Spread, float, pool_means, without_each};
use crate::rollout::gate::settings::Gate;
use crate::rollout::gate::sides::{ComparedReports, Direction, Scope, counts_of};
use crate::rollout::gate::significance::{Estimate, excess};
use crate::rollout::gate::verdict::GateFailure;
use crate::rollout::weighing::{NodeCounts, Trim, WeighedFigures};
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
    let mut own = scopes.filter(|scope| scope.route == scope.baseline);
    own.find_map(|scope| {
        slowest(gate, sides, scope)
            .or_else(|| mean(gate, sides, scope))
            .or_else(|| first_byte(gate, sides, scope))
    })
}

/// Maximum p99 of the batch that passes, in milliseconds.
pub(super) fn p99_limit(gate: &Gate, others_ms: i64) -> i64 {
    let share = others_ms.saturating_mul(gate.max_p99_percent) / 100;
    share.saturating_add(gate.p99_slack_ms)
}

fn slowest(gate: &Gate, sides: &ComparedReports<'_>, scope: Scope<'_>) -> Option<GateFailure> {
    let own = weigh(sides.batch.iter(), scope.route, Trim::Lowest).p99_ms?;
    let others = weigh(sides.rest.iter(), scope.baseline, Trim::BothEnds).p99_ms?;
    if own <= p99_limit(gate, others) {
        return None;
    }
    let limit = p99_before_limit(gate, sides, scope, others)?;
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
    found.exceeds(|share| share).then(|| {
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
        most,
        requests,
    } = significantly_slower(sides, scope, durations, limit)?;
    Some(GateFailure::Latency(format!(
        "{}a request takes {own:.1} ms in the mean, {others:.1} ms on the others; up to {most:.1} ms pass \
         ({requests:.0} requests of the batch)",
        scope.prefix()
    )))
}

fn first_byte(gate: &Gate, sides: &ComparedReports<'_>, scope: Scope<'_>) -> Option<GateFailure> {
    let slack = float(gate.p99_slack_ms.unsigned_abs());
    let limit = |ms: f64| (ms * FIRST_BYTE_FACTOR).max(ms + slack);
    let durations = |route: &RouteTraffic| Some((route.first_byte?, None));
    let SlowerBatch {
        own,
        others,
        most,
        requests,
    } = significantly_slower(sides, scope, durations, limit)?;
    Some(GateFailure::Latency(format!(
        "{}the first byte of a stream comes after {own:.1} ms in the mean, {others:.1} ms on the others; \
         up to {most:.1} ms pass ({requests:.0} streams of the batch)",
        scope.prefix()
    )))
}

/// Means of a batch that is slower than the rest, in milliseconds.
struct SlowerBatch {
    own: f64,
    others: f64,
    /// Maximum mean that passes.
    most: f64,
    /// Number of the batch's requests.
    requests: f64,
}

/// The means of both sides, if the batch's mean is significantly above `limit` of the rest's, and of
/// its own before.
fn significantly_slower(
    sides: &ComparedReports<'_>,
    scope: Scope<'_>,
    durations: impl Fn(&RouteTraffic) -> Option<(Buckets, Option<u64>)>,
    limit: impl Fn(f64) -> f64,
) -> Option<SlowerBatch> {
    let spread = |node: &Traffic, route: Option<&str>| spread(node, route, &durations);
    let means = |spreads: &mut dyn Iterator<Item = Spread>, without: ExcludedNode| {
        let pooled = pool_means(spreads, without);
        pooled.filter(|(_, requests)| sides.is_enough(*requests))
    };
    let nodes: Vec<(Spread, Spread)> = sides
        .with_before()
        .map(|(now, before)| {
            let before = before.map(|before| spread(before, scope.route));
            (spread(now, scope.route), before.unwrap_or_default())
        })
        .collect();
    let mut own = nodes.iter().map(|(now, _)| *now);
    let (own, requests) = means(&mut own, ExcludedNode::Lowest)?;
    let mut others = sides.rest.iter().map(|node| spread(node, scope.baseline));
    let (others, _) = means(&mut others, ExcludedNode::BothEnds)?;
    let is_beyond = |own: Estimate, usual: Estimate, needed: f64| {
        limit(usual.mean) < own.mean && needed <= excess(own, usual)
    };
    if !is_beyond(own, others, sides.needed) {
        return None;
    }
    // The maximum mean that passes, of those nodes that have become slower.
    let most = without_each(&nodes).find_map(|nodes| {
        let (mut now, mut before) = (
            nodes.iter().map(|(now, _)| *now),
            nodes.iter().map(|(_, before)| *before),
        );
        let (own, _) = means(&mut now, ExcludedNode::None)?;
        let before = means(&mut before, ExcludedNode::None).map(|(before, _)| before);
        let has_changed = before.is_none_or(|before| is_beyond(own, before, sides.change_needed()));
        let most = before.map_or(0.0, |before| limit(before.mean));
        (is_beyond(own, others, sides.needed) && has_changed)
            .then_some(most.max(limit(others.mean)))
    })?;
    Some(SlowerBatch {
        own: own.mean,
        others: others.mean,
        most,
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

/// Maximum p99 that passes in milliseconds, if it is exceeded over the batch's nodes without one, by
/// the rest's and by those nodes' own before.
fn p99_before_limit(
    gate: &Gate,
    sides: &ComparedReports<'_>,
    scope: Scope<'_>,
    others_ms: i64,
) -> Option<i64> {
    let nodes: Vec<_> = sides.with_before().collect();
    without_each(&nodes).find_map(|nodes| {
        let (now, before) = (
            nodes.iter().map(|(now, _)| *now),
            nodes.iter().filter_map(|(_, before)| *before),
        );
        let own = weigh(now, scope.route, Trim::Lowest).p99_ms?;
        let before = weigh(before, scope.route, Trim::Lowest);
        let before_ms = before
            .p99_ms
            .filter(|_| sides.is_enough(float(before.requests)));
        let limit = p99_limit(gate, before_ms.map_or(others_ms, |ms| ms.max(others_ms)));
        (limit < own).then_some(limit)
    })
}

fn weigh<'t>(
    nodes: impl Iterator<Item = &'t Traffic>,
    route: Option<&str>,
    trim: Trim,
) -> WeighedFigures {
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
    counts.weigh(trim)
}
