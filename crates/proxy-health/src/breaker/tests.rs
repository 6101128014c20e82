//! Exhaustive tests of the breaker's states, and tests of its permits.

use super::*;
use std::collections::{HashSet, VecDeque};

const MS: u64 = 1_000_000;
const TIMEOUT: Duration = Duration::from_millis(100);

fn settings(failures: u32, probes: u32, successes: u32) -> BreakerSettings {
    BreakerSettings {
        failure_threshold: failures,
        timeout: TIMEOUT,
        half_open_max_requests: probes,
        success_threshold: successes,
    }
}

/// A breaker that has opened at `now_ns`.
fn open(settings: BreakerSettings, now_ns: u64) -> CircuitBreaker {
    let breaker = CircuitBreaker::new(settings);
    for _ in 0..settings.failure_threshold {
        breaker.admit(now_ns).unwrap().failure(now_ns);
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

#[test]
fn consecutive_failures_open_it_and_a_success_resets_their_count() {
    let breaker = CircuitBreaker::new(settings(3, 1, 1));
    let settle = |results: &str| {
        let mut state = None;
        for result in results.chars() {
            let permit = breaker.admit(0).unwrap();
            state = match result {
                '+' => permit.success(0),
                '-' => permit.failure(0),
                _ => None,
            };
        }
        state
    };

    assert_eq!(settle("--+--"), None);
    // A permit that is dropped, as for a disconnected client, counts as neither.
    assert_eq!(settle("?+--??"), None);
    assert_eq!(settle("-"), Some(BreakerState::Open));
    let refused = breaker.admit(40 * MS).unwrap_err();
    assert_eq!(refused.retry_after, Duration::from_millis(60));
}

#[test]
fn retry_after_is_never_longer_than_the_timeout() {
    let breaker = open(settings(1, 1, 1), 7);

    for now_ns in [0, 7, MS] {
        let refused = breaker.admit(now_ns).unwrap_err();
        assert!(refused.retry_after <= TIMEOUT, "{:?}", refused.retry_after);
    }
}

#[test]
fn it_half_opens_after_its_timeout_and_not_before() {
    let breaker = open(settings(1, 1, 1), 7);

    assert!(breaker.admit(100 * MS).is_err());
    assert_eq!(breaker.state(), BreakerState::Open);
    let probe = breaker.admit(101 * MS).unwrap();
    assert!(probe.is_probe());
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert!(breaker.admit(101 * MS).is_err());
    assert_eq!(probe.success(101 * MS), Some(BreakerState::Closed));
    assert!(!breaker.admit(101 * MS).unwrap().is_probe());
}

#[test]
fn the_exported_state_is_half_open_after_the_timeout_without_a_request() {
    let breaker = open(settings(1, 1, 1), 0);

    assert_eq!(breaker.state_at(99 * MS), BreakerState::Open);
    assert_eq!(breaker.state_at(100 * MS), BreakerState::HalfOpen);
    assert_eq!(breaker.state(), BreakerState::Open, "nothing has changed");
    assert_eq!(breaker.take_entered(), [0, 1, 0]);
    breaker.admit(100 * MS).unwrap().success(100 * MS);
    assert_eq!(breaker.state_at(100 * MS), BreakerState::Closed);
}

#[test]
fn one_failure_of_a_probe_opens_it_for_another_timeout() {
    let breaker = open(settings(3, 2, 2), 0);
    let [first, second] = [0; 2].map(|_| breaker.admit(100 * MS).unwrap());

    assert_eq!(first.success(100 * MS), None);
    assert_eq!(second.failure(150 * MS), Some(BreakerState::Open));
    assert!(breaker.admit(249 * MS).is_err());
    assert!(breaker.admit(250 * MS).is_ok());
}

#[test]
fn a_probe_of_a_disconnected_client_releases_its_slot() {
    let breaker = open(settings(1, 1, 1), 0);
    for _ in 0..1_000 {
        let probe = breaker.admit(100 * MS).unwrap();
        assert!(breaker.admit(100 * MS).is_err());
        drop(probe);
    }

    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    let probe = breaker.admit(100 * MS).unwrap();
    assert_eq!(probe.success(100 * MS), Some(BreakerState::Closed));
}

#[test]
fn results_from_an_earlier_state_are_ignored() {
    let breaker = CircuitBreaker::new(settings(1, 1, 2));
    let [early_failure, early_success, early_drop] = [0; 3].map(|_| breaker.admit(0).unwrap());
    breaker.admit(0).unwrap().failure(0);
    let probe = breaker.admit(100 * MS).unwrap();

    assert_eq!(early_failure.failure(100 * MS), None);
    assert_eq!(early_success.success(100 * MS), None);
    drop(early_drop);
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert!(breaker.admit(100 * MS).is_err());
    assert_eq!(probe.success(100 * MS), None);
}

#[test]
fn every_phase_fits_in_the_packed_word() {
    let phases = [
        Phase::Closed { failures: u32::MAX },
        Phase::Open { until_ms: 1 << 45 },
        Phase::HalfOpen {
            probes: u16::MAX,
            successes: 3,
        },
    ];
    for phase in phases {
        for generation in [0, 1, u16::MAX] {
            let word = phase.pack(generation);
            assert_eq!(Phase::unpack(word), (phase, generation));
        }
    }
}

/// Admits a probe and counts the concurrent ones; every second one succeeds, the rest are dropped.
fn probe(breaker: &CircuitBreaker, round: u64, under_way: &AtomicU64, most: &AtomicU64) {
    let Ok(permit) = breaker.admit(100 * MS) else {
        return;
    };
    let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
    most.fetch_max(now, Ordering::SeqCst);
    under_way.fetch_sub(1, Ordering::SeqCst);
    if round.is_multiple_of(2) {
        permit.success(100 * MS);
    }
}

#[test]
fn threads_never_have_more_probes_than_allowed() {
    let breaker = open(settings(1, 3, 60_000), 0);
    let (under_way, most) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5_000).for_each(|round| probe(&breaker, round, &under_way, &most)));
        }
    });

    assert!(most.into_inner() <= 3);
    let probes = [0; 3].map(|_| breaker.admit(100 * MS).unwrap());
    assert!(breaker.admit(100 * MS).is_err());
    drop(probes);
}

/// Returns true if `condition` holds in `phase`, derived independently of the state machine's code.
fn holds(
    condition: BreakerCondition,
    phase: Phase,
    settings: &BreakerSettings,
    now_ns: u64,
) -> bool {
    let few_failures =
        matches!(phase, Phase::Closed { failures } if failures + 1 < settings.failure_threshold);
    let over = matches!(phase, Phase::Open { until_ms } if until_ms * MS <= now_ns);
    let free = matches!(phase, Phase::HalfOpen { probes, .. }
        if u32::from(probes) < settings.half_open_max_requests);
    let few_successes = matches!(phase, Phase::HalfOpen { successes, .. }
        if u32::from(successes) + 1 < settings.success_threshold);
    match condition {
        BreakerCondition::Always => true,
        BreakerCondition::FewFailures => few_failures,
        BreakerCondition::ManyFailures => !few_failures,
        BreakerCondition::BeforeTimeout => !over,
        BreakerCondition::AfterTimeout => over,
        BreakerCondition::ProbeFree => free,
        BreakerCondition::ProbesTaken => !free,
        BreakerCondition::FewSuccesses => few_successes,
        BreakerCondition::ManySuccesses => !few_successes,
    }
}

#[test]
fn every_state_and_event_takes_the_one_row_of_the_table_that_holds() {
    let mut used = HashSet::new();
    for failures in 1..=3 {
        for probes in 1..=3 {
            for successes in 1..=3 {
                explore(&settings(failures, probes, successes), &mut used);
            }
        }
    }
    let all: HashSet<usize> = (0..BREAKER_TRANSITIONS.len()).collect();
    assert_eq!(used, all, "rows that are never taken");
}

/// Walks from the initial phase to every reachable one, by every event, before and after the timeout.
fn explore(settings: &BreakerSettings, used: &mut HashSet<usize>) {
    let times = [0, 99 * MS, 100 * MS, 200 * MS];
    let first = Phase::Closed { failures: 0 };
    let (mut known, mut next) = (HashSet::from([first]), VecDeque::from([first]));
    while let Some(phase) = next.pop_front() {
        let events = BreakerEvent::ALL.into_iter();
        let moments = events.flat_map(|event| times.map(|now_ns| (event, now_ns)));
        for moment in moments {
            let reached = follow(phase, moment, settings, used);
            next.extend(reached.filter(|reached| known.insert(*reached)));
        }
    }
    let states: HashSet<BreakerState> = known.iter().map(|phase| phase.state()).collect();
    assert_eq!(states.len(), BreakerState::ALL.len());
}

fn follow(
    phase: Phase,
    (event, now_ns): (BreakerEvent, u64),
    settings: &BreakerSettings,
    used: &mut HashSet<usize>,
) -> Option<Phase> {
    let state = phase.state();
    let ends = matches!(
        event,
        BreakerEvent::Success | BreakerEvent::Failure | BreakerEvent::Abandoned
    );
    let under_way = match phase {
        Phase::Closed { .. } => true,
        Phase::Open { .. } => false,
        Phase::HalfOpen { probes, .. } => probes > 0,
    };
    if ends && !under_way {
        return None;
    }
    let rows = BREAKER_TRANSITIONS.iter().enumerate().filter(|(_, row)| {
        (row.from, row.event) == (state, event) && holds(row.condition, phase, settings, now_ns)
    });
    let rows: Vec<_> = rows.collect();
    let [(index, row)] = rows[..] else {
        panic!("{} rows hold for {phase:?} {event:?}", rows.len());
    };
    used.insert(index);
    let Step { next, admitted } = phase.step(event, settings, now_ns);
    assert_eq!(next.state(), row.to, "{phase:?} {event:?} at {now_ns}");
    assert_eq!(
        admitted,
        row.effect.contains("passes"),
        "{phase:?} {event:?}"
    );
    if let Phase::HalfOpen { probes, .. } = next {
        assert!(u32::from(probes) <= settings.half_open_max_requests);
    }
    Some(next)
}

#[test]
fn the_page_has_a_line_for_each_row() {
    let page = breaker_reference_page();

    let rows = page.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, BREAKER_TRANSITIONS.len() + 1);
    assert!(page.contains("0 closed, 1 open, 2 half-open."));
}
