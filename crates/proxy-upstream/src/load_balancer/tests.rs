//! The distribution of each load-balancing policy.

use super::*;
use crate::balancer_state::Rotation;
use crate::rendezvous::{mix, target_hash};
use crate::sticky::{StickyKey, StickyToken};
use LoadBalancer::{IpHash, LeastConnections, PeakEwma, RandomTwo, RoundRobin, Sticky, Weighted};
use proptest::prelude::{any, prop, prop_assert, proptest};

/// Targets with given properties.
struct Targets {
    ready: Vec<u16>,
    weights: Vec<u32>,
    shares: Vec<u32>,
    active: Vec<u32>,
    latencies_ms: Vec<Option<f32>>,
    draining: Vec<u16>,
    rotation: Rotation,
}

impl Targets {
    fn weighing(weights: &[u32]) -> Self {
        let count = weights.len();
        Self {
            ready: (0..).take(count).collect(),
            weights: weights.to_vec(),
            shares: vec![WHOLE_SHARE; count],
            active: vec![0; count],
            latencies_ms: vec![None; count],
            draining: Vec::new(),
            rotation: Rotation::new(count, 0),
        }
    }

    fn without(mut self, target: u16) -> Self {
        self.ready.retain(|ready| *ready != target);
        self
    }

    /// The number of `requests` that each target gets, from consecutive clients.
    fn spread(&self, policy: LoadBalancer, requests: u64) -> Vec<u64> {
        let mut counts = vec![0; self.weights.len()];
        for number in 0..requests {
            let chosen = policy.choose(self, &request(number), &[]).unwrap();
            policy.advance(self, chosen);
            counts[usize::from(chosen)] += 1;
        }
        counts
    }

    fn sequence(&self, policy: LoadBalancer, requests: u64) -> Vec<u16> {
        let choices = (0..requests).map(|number| {
            let chosen = policy.choose(self, &request(number), &[]).unwrap();
            policy.advance(self, chosen);
            chosen
        });
        choices.collect()
    }
}

fn request(number: u64) -> BalancingRequest {
    BalancingRequest {
        client_hash: mix(number),
        random: mix(number + (1 << 40)),
        session: None,
        is_https: false,
    }
}

fn token(target: u16) -> StickyToken {
    StickyToken::new(&StickyKey([1; 16]), "api", &target.to_string())
}

impl BalancerState for Targets {
    fn ready(&self) -> &[u16] {
        &self.ready
    }

    fn weight(&self, target: u16) -> u32 {
        self.weights[usize::from(target)]
    }

    fn has_equal_weights(&self) -> bool {
        let mut weights = self.ready.iter().map(|target| self.weight(*target));
        weights
            .next()
            .is_none_or(|first| weights.all(|weight| weight == first))
    }

    fn share(&self, target: u16) -> u32 {
        self.shares[usize::from(target)]
    }

    fn active_requests(&self, target: u16) -> u32 {
        self.active[usize::from(target)]
    }

    fn latency_ns(&self, target: u16) -> Option<f32> {
        self.latencies_ms[usize::from(target)].map(|millis| millis * 1e6)
    }

    fn address_hash(&self, target: u16) -> u64 {
        target_hash(&format!("10.0.0.{target}:80"))
    }

    fn session(&self, session: StickyToken) -> Option<u16> {
        let mut known = self.ready.iter().chain(&self.draining).copied();
        known.find(|target| token(*target) == session)
    }

    fn rotation(&self) -> &Rotation {
        &self.rotation
    }
}

fn close(counts: &[u64], expected: &[u64]) -> bool {
    let near =
        |(count, expected): (&u64, &u64)| count.abs_diff(*expected) * 50 <= (*expected).max(500);
    counts.len() == expected.len() && counts.iter().zip(expected).all(near)
}

#[test]
fn each_word_has_its_own_distribution() {
    // Weights 1, 2 and 3; the third is busy with 12 requests and slow.
    let mut targets = Targets::weighing(&[1, 2, 3]);
    targets.active = vec![0, 2, 12];
    targets.latencies_ms = vec![Some(10.0), Some(10.0), Some(90.0)];
    // Pairs of a weighted choice: {0,1} 1/6×2/5 + 2/6×1/4 = 9/60, {0,2} 1/6×3/5 + 3/6×1/3 = 16/60,
    // {1,2} the rest. The less busy of each pair is 0, 0, 1; the quicker one by 10, 15 and 390 is too.
    let pairs = [25_000, 35_000, 0];
    let table: [(LoadBalancer, [u64; 3]); 7] = [
        (RoundRobin, [10_000, 20_000, 30_000]),
        (Weighted, [10_000, 20_000, 30_000]),
        (LeastConnections, [60_000, 0, 0]),
        (IpHash, [10_000, 20_000, 30_000]),
        (RandomTwo, pairs),
        (PeakEwma, pairs),
        (Sticky, [10_000, 20_000, 30_000]),
    ];
    for (policy, expected) in table {
        targets.rotation = Rotation::new(3, 0);
        let counts = targets.spread(policy, 60_000);
        assert!(close(&counts, &expected), "{}: {counts:?}", policy.word());
    }
}

#[test]
fn policies_with_equal_shares_choose_in_different_orders() {
    let targets = Targets::weighing(&[1, 2, 3]);
    let same = request(7);

    // The same client again: only the hash stays.
    let choices = |policy: LoadBalancer| {
        let choices = (0..6).map(|_| {
            let chosen = policy.choose(&targets, &same, &[]).unwrap();
            policy.advance(&targets, chosen);
            chosen
        });
        choices.collect::<Vec<_>>()
    };
    let hashed = choices(IpHash);
    assert!(hashed.iter().all(|target| *target == hashed[0]));
    let mut weighted = choices(Weighted);
    weighted.sort_unstable();
    assert_eq!(weighted, [0, 1, 1, 2, 2, 2]);

    // Load moves the one, latency the other.
    let mut busy = Targets::weighing(&[1, 1]);
    busy.active = vec![5, 4];
    busy.latencies_ms = vec![Some(1.0), Some(100.0)];
    assert_eq!(busy.spread(RandomTwo, 100), [0, 100]);
    assert_eq!(busy.spread(PeakEwma, 100), [100, 0]);
    // And a cookie nothing but sticky.
    let bound = BalancingRequest {
        session: Some(token(1)),
        is_https: false,
        ..request(0)
    };
    assert_eq!(Sticky.choose(&busy, &bound, &[]), Some(1));
    assert_eq!(Weighted.choose(&busy, &bound, &[]), Some(0));
}

#[test]
fn weights_are_spread_smoothly() {
    // The sequence that nginx documents for 5, 1, 1.
    for policy in [Weighted, RoundRobin] {
        let targets = Targets::weighing(&[5, 1, 1]);
        assert_eq!(
            targets.sequence(policy, 14),
            [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]
        );
    }
    let targets = Targets::weighing(&[2, 2, 2]);
    assert_eq!(targets.sequence(RoundRobin, 6), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_free_upstream_is_used_by_weight_under_least_connections() {
    let targets = Targets::weighing(&[1, 3]);
    assert_eq!(targets.spread(LeastConnections, 400), [100, 300]);

    let mut loaded = Targets::weighing(&[1, 3]);
    loaded.active = vec![1, 2];
    // 1/1 is more than 2/3.
    assert_eq!(loaded.spread(LeastConnections, 10), [0, 10]);
    loaded.active = vec![1, 3];
    loaded.rotation = Rotation::new(2, 0);
    assert_eq!(loaded.spread(LeastConnections, 4), [1, 3]);
}

#[test]
fn clients_of_other_targets_stay_when_a_target_leaves_and_returns() {
    let (all, fewer) = (
        Targets::weighing(&[1, 2, 3, 1]),
        Targets::weighing(&[1, 2, 3, 1]).without(2),
    );
    let mut moved_to = [0; 4];
    for client in 0..40_000 {
        let before = IpHash.choose(&all, &request(client), &[]).unwrap();
        let after = IpHash.choose(&fewer, &request(client), &[]).unwrap();
        if before == 2 {
            moved_to[usize::from(after)] += 1;
        } else {
            assert_eq!(before, after, "client {client}");
        }
    }

    // Clients of the removed target are spread by weight.
    let total: u64 = moved_to.iter().sum();
    assert!(
        close(&moved_to, &[total / 4, total / 2, 0, total / 4]),
        "{moved_to:?}"
    );
}

#[test]
fn a_target_that_starts_slowly_gets_its_share() {
    for policy in [RoundRobin, Weighted, LeastConnections, RandomTwo, Sticky] {
        let mut targets = Targets::weighing(&[1, 1, 1, 1]);
        targets.shares[1] = 250;
        let counts = targets.spread(policy, 40_000);
        let part = counts[1] * 1_000 / 10_000;
        assert!((200..=330).contains(&part), "{}: {counts:?}", policy.word());
        assert!(
            counts[0].abs_diff(counts[3]) < 700,
            "{}: {counts:?}",
            policy.word()
        );
    }
}

#[test]
fn a_session_keeps_a_draining_target_and_moves_after_its_removal() {
    let mut targets = Targets::weighing(&[1, 1, 1]).without(1);
    let bound = BalancingRequest {
        session: Some(token(1)),
        is_https: false,
        ..request(0)
    };
    targets.draining = vec![1];
    assert_eq!(Sticky.choose(&targets, &bound, &[]), Some(1));
    // It does not answer: any other.
    assert!(
        Sticky
            .choose(&targets, &bound, &[1])
            .is_some_and(|other| other != 1)
    );
    targets.draining.clear();
    assert!(
        Sticky
            .choose(&targets, &bound, &[])
            .is_some_and(|other| other != 1)
    );
}

#[test]
fn a_target_without_a_measurement_is_tried_once_and_not_flooded() {
    let mut targets = Targets::weighing(&[1, 1]);
    targets.latencies_ms = vec![Some(50.0), None];
    assert_eq!(targets.spread(PeakEwma, 10), [0, 10]);
    targets.active[1] = 1;
    assert_eq!(targets.spread(PeakEwma, 10), [10, 0]);
}

#[test]
fn a_long_skipped_target_gets_at_most_one_round() {
    let mut targets = Targets::weighing(&[1, 1]);
    targets.active = vec![1, 0];
    targets.spread(LeastConnections, 10_000);
    targets.active = vec![0, 0];

    let first = targets.sequence(LeastConnections, 6);
    let in_a_row = first.iter().take_while(|target| **target == 0).count();
    assert!(in_a_row <= 3, "{first:?}");
}

#[test]
fn nothing_ready_is_nothing_chosen() {
    let none = Targets::weighing(&[]);
    for policy in LoadBalancer::ALL {
        assert_eq!(policy.choose(&none, &request(1), &[]), None);
    }
}

proptest! {
    /// Under any load a choice is ready and untried, and is made while there is one.
    #[test]
    fn a_choice_is_ready_and_new(
        figures in prop::collection::vec((1_u32..10_000, 1_u32..=1_000, any::<u32>(), any::<bool>()), 1..12),
        latencies in prop::collection::vec(prop::option::of(0.0_f32..1e5), 12),
        tried in prop::collection::vec(0_u16..12, 0..6),
        numbers in prop::collection::vec(any::<u32>(), 1..20),
    ) {
        let weights: Vec<u32> = figures.iter().map(|figure| figure.0).collect();
        let mut targets = Targets::weighing(&weights);
        targets.shares = figures.iter().map(|figure| figure.1).collect();
        targets.active = figures.iter().map(|figure| figure.2).collect();
        targets.latencies_ms = latencies;
        targets.ready.retain(|target| figures[usize::from(*target)].3);
        let possible = targets.ready.iter().any(|target| !tried.contains(target));
        for policy in LoadBalancer::ALL {
            for number in &numbers {
                let chosen = policy.choose(&targets, &request(u64::from(*number)), &tried);
                prop_assert!(chosen.is_some() == possible, "{}", policy.word());
                if let Some(target) = chosen {
                    prop_assert!(targets.ready.contains(&target) && !tried.contains(&target));
                    policy.advance(&targets, target);
                }
            }
        }
    }
}
