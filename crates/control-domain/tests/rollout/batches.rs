//! Conditions for completing a batch, and for the end of a rollback.

use crate::{DEADLINE_SECS, NOW, after, planned, user};
use control_domain::{
    Actor, BatchCounts, BatchSize, BatchState, Comparison, Figures, Gate, Observation, OnFailure,
    Refusal, Rejection, RevertCounts, RevertProgress, Role, Rollout, RolloutCommand, RolloutEvent,
    RolloutState, short_reason,
};
use control_wire::RouteTraffic;
use jiff::SignedDuration;
use std::collections::BTreeMap;

fn figures(requests: u64, errors: u64) -> Figures {
    let mut figures = Figures::default();
    let mut latency = [0; 12];
    latency[3] = requests;
    let route = RouteTraffic {
        requests,
        errors,
        latency,
        ..RouteTraffic::default()
    };
    let routes = BTreeMap::from([("api".to_owned(), route)]);
    let traffic = control_wire::Traffic {
        routes,
        ..control_wire::Traffic::default()
    };
    figures.add(1.0, Some(traffic), None);
    figures
}

/// Creates a running rollout with a batch in this state, opened at [`NOW`].
fn running(gate: Option<Gate>, state: BatchState, soak_secs: i64) -> Rollout {
    let mut rollout = planned(OnFailure::RollBack, gate, 2);
    rollout.strategy.soak_secs = soak_secs;
    let actor = user(Role::Operator);
    let started = rollout.decide(&actor, RolloutCommand::Start, NOW).unwrap();
    let seen = Observation::default();
    let opened = started.rollout.advance(&Actor::System, &seen, NOW);
    let mut rollout = opened.unwrap().unwrap().rollout;
    if let Some(batch) = &mut rollout.batch {
        batch.state = state;
        batch.switched_at = (state == BatchState::Switched).then_some(NOW);
    }
    rollout
}

#[test]
fn a_batch_passes_by_its_nodes_its_time_and_its_gate() {
    let gate = Some(Gate::DEFAULT);
    let (good, bad, few) = (figures(1_000, 0), figures(1_000, 500), figures(9, 0));
    let (open, switched) = (BatchState::Open, BatchState::Switched);
    let (ready, offline, none) = ((1, 0), (0, 1), (0, 0));
    let cases = [
        (None, open, ready, None, 0, Some(RolloutEvent::SwitchBatch)),
        (None, open, none, None, 99, None),
        (None, open, none, None, 100, Some(RolloutEvent::Fail)),
        (None, open, offline, None, 99, None),
        (None, open, offline, None, 100, Some(RolloutEvent::Fail)),
        (None, switched, ready, None, 9, None),
        (
            None,
            switched,
            ready,
            None,
            10,
            Some(RolloutEvent::PassBatch),
        ),
        (gate, switched, ready, None, 10, None),
        (gate, switched, ready, None, 100, Some(RolloutEvent::Fail)),
        (gate, switched, ready, Some(&few), 99, None),
        (
            gate,
            switched,
            ready,
            Some(&few),
            100,
            Some(RolloutEvent::Fail),
        ),
        (gate, switched, ready, Some(&good), 9, None),
        (
            gate,
            switched,
            ready,
            Some(&good),
            10,
            Some(RolloutEvent::PassBatch),
        ),
        (
            gate,
            switched,
            ready,
            Some(&bad),
            0,
            Some(RolloutEvent::Fail),
        ),
        (gate, open, ready, Some(&bad), 0, Some(RolloutEvent::Fail)),
    ];
    for (gate, state, (ready, offline), batch, secs, expected) in cases {
        let rollout = running(gate, state, 10);
        let seen = Observation {
            batch: Some(BatchCounts {
                nodes: 1,
                unordered: 0,
                ready,
                reported: ready,
                offline,
            }),
            compared: batch.map(|batch| Comparison {
                batch: batch.clone(),
                rest: figures(1_000, 0),
            }),
            ..Observation::default()
        };
        let change = rollout.advance(&Actor::System, &seen, after(secs)).unwrap();
        let event = change.map(|change| change.event);
        assert_eq!(event, expected, "{state} {seen:?} at {secs}");
    }
}

#[test]
fn a_difference_that_is_not_sure_yet_lengthens_the_soak_up_to_the_deadline() {
    // 150 requests are compared with 1000, and 5xx may be 1 % more: 9 are evidence, 6 a suspicion.
    let (pass, fail) = (RolloutEvent::PassBatch, RolloutEvent::Fail);
    for (soak_secs, errors, secs, expected) in [
        (10, 2, 10, Some(pass)),
        (10, 6, 9, None),
        (10, 6, 10, None),
        (10, 6, 99, None),
        (10, 6, 100, Some(pass)),
        (10, 9, 10, Some(fail)),
        // The deadline has passed when such a soak ends.
        (DEADLINE_SECS, 2, 100, Some(pass)),
        (DEADLINE_SECS, 6, 149, None),
        (DEADLINE_SECS, 6, 150, Some(pass)),
        (DEADLINE_SECS, 9, 149, Some(fail)),
    ] {
        let rollout = running(Some(Gate::DEFAULT), BatchState::Switched, soak_secs);
        let seen = Observation {
            batch: Some(BatchCounts {
                nodes: 1,
                ready: 1,
                reported: 1,
                ..BatchCounts::default()
            }),
            compared: Some(Comparison {
                batch: figures(150, errors),
                rest: figures(1_000, 0),
            }),
            ..Observation::default()
        };
        let change = rollout.advance(&Actor::System, &seen, after(secs)).unwrap();
        let event = change.map(|change| change.event);
        assert_eq!(event, expected, "{errors} errors at {secs}");
        let waits_for = rollout.waits_for(&seen, after(secs));
        assert_eq!(waits_for.is_none(), expected.is_some(), "{waits_for:?}");
    }
}

#[test]
fn a_batch_may_miss_offline_nodes_and_waits_for_late_ones() {
    let (switch, fail) = (RolloutEvent::SwitchBatch, RolloutEvent::Fail);
    let cases = [
        (3, 0, 0, Some(switch)),
        (2, 1, 0, Some(switch)),
        (2, 0, 99, None),
        (2, 0, 100, Some(switch)),
        (1, 2, 99, None),
        (1, 2, 100, Some(fail)),
        (1, 1, 100, Some(fail)),
    ];
    for (ready, offline, secs, expected) in cases {
        let mut rollout = running(None, BatchState::Open, 0);
        rollout.strategy.max_unavailable = 1;
        let seen = Observation {
            batch: Some(BatchCounts {
                nodes: 3,
                unordered: 0,
                ready,
                reported: ready,
                offline,
            }),
            ..Observation::default()
        };
        let change = rollout.advance(&Actor::System, &seen, after(secs)).unwrap();
        let event = change.map(|change| change.event);
        assert_eq!(
            event, expected,
            "{ready} ready, {offline} offline at {secs}"
        );
    }
}

#[test]
fn a_batch_passes_after_its_soak_when_its_nodes_have_reported_since_the_switch() {
    let pass = Some(RolloutEvent::PassBatch);
    // Soak time, number of nodes that may be missing, and number of nodes that have reported.
    for (soak_secs, max_unavailable, reported, expected) in [
        (10, 0, 2, None),
        (10, 0, 3, pass),
        (10, 1, 1, None),
        (10, 1, 2, pass),
        (10, 3, 0, None),
        (0, 0, 0, pass),
    ] {
        let mut rollout = running(None, BatchState::Switched, soak_secs);
        rollout.strategy.max_unavailable = max_unavailable;
        let seen = Observation {
            batch: Some(BatchCounts {
                nodes: 3,
                ready: 3,
                reported,
                ..BatchCounts::default()
            }),
            ..Observation::default()
        };
        for secs in [10, 100] {
            let change = rollout.advance(&Actor::System, &seen, after(secs)).unwrap();
            let event = change.map(|change| change.event);
            let case = format!("soak {soak_secs}, {max_unavailable} may be missing");
            assert_eq!(event, expected, "{case}, {reported} reported, at {secs}");
        }
    }
}

#[test]
fn a_batch_names_the_reason_for_which_it_waits() {
    let (open, switched) = (BatchState::Open, BatchState::Switched);
    let counts = |ready, reported| BatchCounts {
        nodes: 2,
        ready,
        reported,
        ..BatchCounts::default()
    };
    let gate = Some(Gate::DEFAULT);
    let soak = format!("the end of its soak at {:.0}", after(10));
    for (state, gate, counts, secs, expected) in [
        (open, None, counts(1, 0), 1, "the switch of 1 of 2 nodes"),
        (switched, None, counts(2, 0), 9, &*soak),
        (
            switched,
            None,
            counts(2, 1),
            10,
            "reports of 1 of 2 nodes from the end of its soak",
        ),
        (
            switched,
            gate,
            counts(2, 2),
            10,
            "data for its gate: no node has switched",
        ),
    ] {
        let rollout = running(gate, state, 10);
        let seen = Observation {
            batch: Some(counts),
            ..Observation::default()
        };
        let found = rollout.waits_for(&seen, after(secs));
        assert_eq!(found.as_deref(), Some(expected));
    }
    let rollout = running(None, switched, 10);
    let seen = Observation {
        batch: Some(counts(2, 2)),
        ..Observation::default()
    };
    assert_eq!(rollout.waits_for(&seen, after(10)), None, "it passes");
}

#[test]
fn no_batch_is_late_after_an_outage() {
    let rollout = running(None, BatchState::Open, 0);
    for (is_after_outage, expected) in [(true, None), (false, Some(RolloutEvent::Fail))] {
        let seen = Observation {
            is_after_outage,
            batch: Some(BatchCounts {
                nodes: 1,
                offline: 1,
                ..BatchCounts::default()
            }),
            ..Observation::default()
        };
        let change = rollout.advance(&Actor::System, &seen, after(100)).unwrap();
        assert_eq!(change.map(|change| change.event), expected);
    }
}

#[test]
fn reports_count_from_the_last_heartbeat_interval_of_the_soak() {
    let interval = SignedDuration::from_secs(30);
    for (soak_secs, since) in [(0, 0), (30, 0), (31, 1), (600, 570)] {
        let rollout = running(None, BatchState::Switched, soak_secs);
        let expected = Some(after(since));
        assert_eq!(rollout.reports_since(interval), expected, "{soak_secs}");
    }
    let open = running(None, BatchState::Open, 60);
    assert_eq!(open.reports_since(interval), None);
}

#[test]
fn a_batch_without_a_node_that_runs_the_bundle_does_not_pass() {
    let fail = RolloutEvent::Fail;
    for (offline, secs, expected) in [(1, 0, None), (1, 99, None), (1, 100, Some(fail))] {
        let mut rollout = running(None, BatchState::Open, 0);
        rollout.strategy.max_unavailable = 1;
        let seen = Observation {
            batch: Some(BatchCounts {
                nodes: 1,
                unordered: 0,
                ready: 0,
                reported: 0,
                offline,
            }),
            ..Observation::default()
        };
        let change = rollout.advance(&Actor::System, &seen, after(secs)).unwrap();
        let event = change.map(|change| change.event);
        assert_eq!(event, expected, "at {secs}");
    }
}

#[test]
fn nodes_that_do_not_go_back_are_awaited_until_the_deadline_and_reported() {
    let rollout = running(None, BatchState::Switched, 0);
    let back = rollout.decide(&user(Role::Operator), RolloutCommand::RollBack, NOW);
    let rollout = back.unwrap().rollout;
    let counts = RevertCounts {
        waiting: 3,
        offline: 2,
        without_way: 1,
    };
    let late = "rolled back by hand; 3 nodes did not revert in time; \
                2 offline nodes will revert when they return; 1 node had no former bundle";
    let rest = RevertProgress::Rest(counts);
    let all_back = RevertProgress::Rest(RevertCounts::default());
    for (progress, secs, expected) in [
        (RevertProgress::Waiting, 0, None),
        (rest, 99, None),
        (rest, 100, Some(late)),
        (all_back, 0, Some("rolled back by hand")),
    ] {
        let seen = Observation {
            reverting: Some(progress),
            ..Observation::default()
        };
        assert_eq!(rollout.is_revert_late(after(secs)), secs == DEADLINE_SECS);
        let change = rollout.advance(&Actor::System, &seen, after(secs)).unwrap();
        let reason = change.and_then(|change| change.rollout.reason);
        assert_eq!(reason.as_deref(), expected, "{progress:?} at {secs}");
    }
}

#[test]
fn batches_are_of_a_count_or_a_share() {
    for (batch, nodes, size, batches) in [
        (BatchSize::Count(2), 5, 2, 3),
        (BatchSize::Count(9), 5, 5, 1),
        (BatchSize::Percent(10), 25, 3, 9),
        (BatchSize::Percent(1), 5, 1, 5),
        (BatchSize::Percent(100), 5, 5, 1),
    ] {
        let mut rollout = planned(OnFailure::Pause, None, 1);
        rollout.strategy.batch = batch;
        let rollout = rollout.plan(nodes).unwrap();
        assert_eq!((rollout.batch_size, rollout.batches()), (size, batches));
    }
    let many = planned(OnFailure::Pause, None, 1).plan(501);
    assert!(matches!(many, Err(Refusal::Invalid { .. })), "{many:?}");
    let none = planned(OnFailure::Pause, None, 1).plan(0);
    assert!(matches!(none, Err(Refusal::Invalid { .. })), "{none:?}");
}

#[test]
fn the_reason_of_an_automatic_stop_outlives_the_command_after_it() {
    let gate = "2 of 11 nodes did not switch in time";
    for (before, command, expected) in [
        (None, RolloutCommand::Pause, "paused by hand"),
        (None, RolloutCommand::RollBack, "rolled back by hand"),
        (
            Some(gate),
            RolloutCommand::RollBack,
            "rolled back by hand; stopped before: 2 of 11 nodes did not switch in time",
        ),
        (
            Some(gate),
            RolloutCommand::Cancel,
            "cancelled by hand; stopped before: 2 of 11 nodes did not switch in time",
        ),
        (
            Some("paused by hand"),
            RolloutCommand::RollBack,
            "rolled back by hand",
        ),
    ] {
        let mut rollout = running(None, BatchState::Switched, 0);
        rollout.reason = before.map(str::to_owned);
        if before.is_some() {
            rollout.state = RolloutState::Paused;
        }
        let stopped = rollout.decide(&user(Role::Operator), command, NOW);
        let stopped = stopped.unwrap().rollout;
        assert_eq!(stopped.reason.as_deref(), Some(expected));
        assert!(stopped.is_stopped_by_hand());
        assert_eq!(
            rollout.is_stopped_by_hand(),
            before == Some("paused by hand")
        );
    }
}

#[test]
fn each_reason_of_a_stop_without_the_gate_has_its_short_form() {
    let ready = BatchCounts {
        nodes: 1,
        ..BatchCounts::default()
    };
    let rejected = |node: &str, diagnostic: &str| Observation {
        batch: Some(ready),
        rejection: Some(Rejection {
            node: node.to_owned(),
            diagnostic: Some(diagnostic.to_owned()),
        }),
        ..Observation::default()
    };
    let late = Observation {
        batch: Some(ready),
        ..Observation::default()
    };
    let revoked = Observation {
        is_revoked: true,
        ..Observation::default()
    };
    for (seen, expected) in [
        (
            rejected("fra-1", "requests that take CPU end with 5xx"),
            "a node rejected the bundle",
        ),
        (
            rejected("a: 3 take 5", "the bundle was revoked"),
            "a node rejected the bundle",
        ),
        (late, "its batch did not pass in time"),
        (revoked, "its bundle was revoked"),
    ] {
        let rollout = running(None, BatchState::Open, 0);
        let change = rollout.advance(&Actor::System, &seen, after(DEADLINE_SECS));
        let reason = change.unwrap().unwrap().rollout.reason.unwrap();
        assert_eq!(short_reason(&reason), Some(expected), "{reason}");
    }
}
