//! Simple load balancing among the healthy targets.

use crate::balancer_state::{BalancerState, BalancingRequest};
use crate::rendezvous::score;
use crate::slow_start::WHOLE_SHARE;
use std::cmp::Ordering;

/// The distribution of requests over the targets of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoadBalancer {
    /// `round_robin`: each target in turn; with different weights as `weighted`.
    #[default]
    RoundRobin,
    /// `weighted`: in proportion to the weights, evenly spread over time, as nginx does.
    Weighted,
    /// `least_connections`: the target with the fewest active requests relative to its weight;
    /// among equals in proportion to the weights.
    LeastConnections,
    /// `ip_hash`: the same target for the same client, in proportion to the weights. When a target
    /// is removed, only its own clients move, and they return with it.
    IpHash,
    /// `random_two`: of two random targets, the one with fewer active requests relative to its
    /// weight.
    RandomTwo,
    /// `peak_ewma`: of two random targets, the one expected to respond sooner, by latency and
    /// active requests.
    PeakEwma,
    /// `sticky`: the target that the client's cookie names, else as `weighted`.
    Sticky,
}

/// Latency assumed for a target with active requests and no response yet.
const UNKNOWN_LATENCY_NS: f32 = 1e9;

impl LoadBalancer {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::RoundRobin,
        Self::Weighted,
        Self::LeastConnections,
        Self::IpHash,
        Self::RandomTwo,
        Self::PeakEwma,
        Self::Sticky,
    ];

    /// The kind's word in a configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::Weighted => "weighted",
            Self::LeastConnections => "least_connections",
            Self::IpHash => "ip_hash",
            Self::RandomTwo => "random_two",
            Self::PeakEwma => "peak_ewma",
            Self::Sticky => "sticky",
        }
    }

    /// The target for a request, none of `tried`; none if no other takes requests.
    ///
    /// Pure: an equal set, request and tried targets give an equal choice. It takes constant time
    /// for round robin with equal weights, else time in proportion to the targets, and allocates
    /// nothing.
    #[inline]
    pub fn choose(
        self,
        set: &impl BalancerState,
        request: &BalancingRequest,
        tried: &[u16],
    ) -> Option<u16> {
        match self {
            Self::RoundRobin if set.has_equal_weights() => round_robin(set, request, tried),
            Self::RoundRobin | Self::Weighted => most_owed(set, tried),
            Self::LeastConnections => least_connections(set, tried),
            Self::IpHash => by_client(set, request, tried),
            Self::RandomTwo => {
                let (first, second) = random_pair(set, request, tried)?;
                Some(better(first, second, |target| {
                    f64::from(set.active_requests(target)) / power(set, target)
                }))
            }
            Self::PeakEwma => {
                let (first, second) = random_pair(set, request, tried)?;
                Some(better(first, second, |target| expected_wait(set, target)))
            }
            Self::Sticky => {
                let session = request.session.and_then(|token| set.session(token));
                let session = session.filter(|target| !tried.contains(target));
                session.or_else(|| most_owed(set, tried))
            }
        }
    }

    /// The target of a retry; never one of `tried`.
    #[must_use]
    pub const fn reads_load(self) -> bool {
        matches!(
            self,
            Self::LeastConnections | Self::RandomTwo | Self::PeakEwma
        )
    }

    /// Returns true if the choice depends on [`BalancingRequest::random`], apart from slow starts.
    #[must_use]
    pub const fn reads_random(self) -> bool {
        matches!(self, Self::RandomTwo | Self::PeakEwma)
    }

    /// Records the choice of `chosen`; the next choice continues from there.
    #[inline]
    pub fn advance(self, set: &impl BalancerState, chosen: u16) {
        set.rotation().step();
        match self {
            Self::RoundRobin if set.has_equal_weights() => {}
            Self::RoundRobin | Self::Weighted | Self::Sticky => {
                update_credits(set, chosen, |_| true);
            }
            Self::LeastConnections => update_credits(set, chosen, |target| {
                let load = |one, other| {
                    u64::from(set.active_requests(one)) * u64::from(effective_weight(set, other))
                };
                load(target, chosen) == load(chosen, target)
            }),
            Self::IpHash | Self::RandomTwo | Self::PeakEwma => {}
        }
    }
}

fn fresh<'s>(
    set: &'s impl BalancerState,
    tried: &'s [u16],
) -> impl Iterator<Item = u16> + Clone + 's {
    let ready = set.ready().iter().copied();
    ready.filter(move |target| !tried.contains(target))
}

/// Effective weight of a target relative to its peers, at most 10⁷.
#[inline]
fn effective_weight(set: &impl BalancerState, target: u16) -> u32 {
    set.weight(target).saturating_mul(set.share(target)).max(1)
}

#[inline]
fn power(set: &impl BalancerState, target: u16) -> f64 {
    f64::from(effective_weight(set, target))
}

fn round_robin(set: &impl BalancerState, request: &BalancingRequest, tried: &[u16]) -> Option<u16> {
    let ready = set.ready();
    let turn = set.rotation().turn() as usize;
    let at = |step: usize| ready.get((turn + step).checked_rem(ready.len())?).copied();
    let first = at(0)?;
    let is_fresh = |target: &u16| !tried.contains(target);
    let (low, high) = halves(request.random);
    let offset = if is_fresh(&first) {
        let share = set.share(first);
        if share >= WHOLE_SHARE || scale(low, u64::from(WHOLE_SHARE)) < u64::from(share) {
            return Some(first);
        }
        // A target that starts slowly passes its turn on to any other.
        let others = ready.len().saturating_sub(1) as u64;
        1 + usize::try_from(scale(high, others)).unwrap_or_default()
    } else {
        1
    };
    let mut others = (offset..offset + ready.len()).filter_map(at);
    others.find(is_fresh)
}

/// Smooth weighted round robin: the target to which most is owed, its own weight included.
fn most_owed(set: &impl BalancerState, tried: &[u16]) -> Option<u16> {
    let owed = |target: u16| set.rotation().owed(target) + i64::from(effective_weight(set, target));
    fresh(set, tried).reduce(|best, next| if owed(best) < owed(next) { next } else { best })
}

/// Adds its weight to every target in the rotation with `chosen`, and subtracts their sum from
/// `chosen`.
fn update_credits(set: &impl BalancerState, chosen: u16, is_in_turn: impl Fn(u16) -> bool) {
    let rotation = set.rotation();
    let weight = |target: u16| i64::from(effective_weight(set, target));
    let peers = || set.ready().iter().copied().filter(|one| is_in_turn(*one));
    let total: i64 = peers().map(weight).sum();
    for target in peers() {
        let taken = if target == chosen { total } else { 0 };
        let owed = rotation.owed(target) + weight(target) - taken;
        // A target that is passed over for its load saves up one round at most.
        rotation.owe(target, owed.clamp(-total, total));
    }
}

fn least_connections(set: &impl BalancerState, tried: &[u16]) -> Option<u16> {
    let figures = |target: u16| {
        let weight = effective_weight(set, target);
        let owed = set.rotation().owed(target) + i64::from(weight);
        (
            u64::from(set.active_requests(target)),
            u64::from(weight),
            owed,
        )
    };
    let chosen = fresh(set, tried)
        .map(|target| (target, figures(target)))
        .reduce(|best, next| {
            let ((_, (least, best_weight, best_owed)), (_, (active, weight, owed))) = (best, next);
            // Compared as fractions: requests for each unit of weight.
            match (active * best_weight).cmp(&(least * weight)) {
                Ordering::Less => next,
                Ordering::Equal if best_owed < owed => next,
                Ordering::Equal | Ordering::Greater => best,
            }
        });
    chosen.map(|(target, _)| target)
}

/// Chooses by weight alone: a slow start would move clients twice.
fn by_client(set: &impl BalancerState, request: &BalancingRequest, tried: &[u16]) -> Option<u16> {
    let score = |target: u16| {
        score(
            request.client_hash,
            set.address_hash(target),
            set.weight(target),
        )
    };
    let scored = fresh(set, tried).map(|target| (target, score(target)));
    let best = scored.reduce(|best, next| if best.1 < next.1 { next } else { best });
    best.map(|(target, _)| target)
}

/// Two different targets by their weights, if there are two.
fn random_pair(
    set: &impl BalancerState,
    request: &BalancingRequest,
    tried: &[u16],
) -> Option<(u16, Option<u16>)> {
    let weight = |target: u16| u64::from(effective_weight(set, target));
    let pick = |random: u32, but: Option<u16>| {
        let targets = fresh(set, tried).filter(move |target| Some(*target) != but);
        let total = targets.clone().map(weight).sum();
        let mut left = scale(random, total);
        let mut targets = targets;
        targets.find(|target| {
            let found = left < weight(*target);
            left = left.saturating_sub(weight(*target));
            found
        })
    };
    let (low, high) = halves(request.random);
    let first = pick(low, None)?;
    Some((first, pick(high, Some(first))))
}

/// The target with the lower cost; the first of equals.
fn better(first: u16, second: Option<u16>, cost: impl Fn(u16) -> f64) -> u16 {
    second
        .filter(|second| cost(*second) < cost(first))
        .unwrap_or(first)
}

fn expected_wait(set: &impl BalancerState, target: u16) -> f64 {
    let active = set.active_requests(target);
    let latency = match set.latency_ns(target) {
        Some(latency) => latency,
        None if active == 0 => 0.0,
        None => UNKNOWN_LATENCY_NS,
    };
    f64::from(latency) * (f64::from(active) + 1.0) / power(set, target)
}

/// Random bits as a number below `limit`; 0 if that is 0.
#[inline]
fn scale(random: u32, limit: u64) -> u64 {
    let product = u128::from(random) * u128::from(limit);
    u64::try_from(product >> 32).unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
const fn halves(bits: u64) -> (u32, u32) {
    (bits as u32, (bits >> 32) as u32)
}

#[cfg(test)]
mod tests;
