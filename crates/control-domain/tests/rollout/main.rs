//! State machine of rollouts: every state, every event, every crash.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may stop, and looks at few events of many"
)]

mod batches;
mod explorer;

use control_domain::{
    Actor, BatchSize, Gate, NewRollout, Observation, OnFailure, ROLLOUT_TRANSITIONS, Refusal, Role,
    Rollout, RolloutChange, RolloutCommand, RolloutEvent, RolloutState, Strategy, Tenant,
    next_state,
};
use control_wire::{BundleId, OrgId, ProjectId, RolloutId, SessionId, UserId};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const ORG: OrgId = OrgId(Uuid::from_u128(1));
const PROJECT: ProjectId = ProjectId(Uuid::from_u128(2));
const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);
const DEADLINE_SECS: i64 = 100;

fn user(role: Role) -> Actor {
    Actor::User {
        id: UserId(Uuid::from_u128(4)),
        session: SessionId(Uuid::from_u128(5)),
        instance_admin: false,
        roles: BTreeMap::from([(ORG, role)]),
        project_roles: BTreeMap::new(),
        locked: BTreeSet::new(),
        is_fresh: true,
        owns_account: true,
    }
}

fn planned(on_failure: OnFailure, gate: Option<Gate>, nodes: i64) -> Rollout {
    let new = NewRollout {
        bundle: BundleId(Uuid::from_u128(7)),
        strategy: Strategy {
            batch: BatchSize::Count(1),
            max_unavailable: 0,
            deadline_secs: DEADLINE_SECS,
            soak_secs: 0,
            gate,
            needs_approval: false,
            on_failure,
        },
        condition: None,
        labels: BTreeMap::new(),
        not_before: None,
    };
    let id = RolloutId(Uuid::from_u128(3));
    let tenant = Tenant::project(ORG, PROJECT);
    let rollout = Rollout::create(&user(Role::Operator), tenant, id, new, NOW);
    rollout.unwrap().plan(nodes).unwrap()
}

fn after(secs: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(secs)
}

#[test]
fn every_state_is_reachable_and_every_path_terminates() {
    for &state in RolloutState::ALL {
        for &event in RolloutEvent::ALL {
            let rows = ROLLOUT_TRANSITIONS.iter();
            let rows = rows.filter(|row| (row.from, row.event) == (state, event));
            assert!(rows.count() <= 1, "{state} has two rows for {event}");
        }
    }
    let reach = |from: RolloutState| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(state) = open.pop() {
            if seen.insert(state) {
                let rows = ROLLOUT_TRANSITIONS.iter();
                open.extend(rows.filter(|row| row.from == state).map(|row| row.to));
            }
        }
        seen
    };
    let all: BTreeSet<RolloutState> = RolloutState::ALL.iter().copied().collect();
    assert_eq!(reach(RolloutState::Planned), all);
    for state in all {
        assert!(reach(state).iter().any(|end| end.is_final()), "{state}");
    }
}

#[test]
fn a_command_follows_the_table_and_needs_the_permission() {
    for &state in RolloutState::ALL {
        for &command in RolloutCommand::ALL {
            let rollout = Rollout {
                state,
                submitted_person: Some(UserId(Uuid::from_u128(9))),
                ..planned(OnFailure::Pause, None, 1)
            };
            match rollout.decide(&user(Role::Operator), command, NOW) {
                Ok(RolloutChange { rollout, event }) => {
                    let next = next_state(ROLLOUT_TRANSITIONS, state, event);
                    assert_eq!(next, Some(rollout.state));
                }
                Err(refused) => {
                    assert!(matches!(refused, Refusal::WrongState { .. }), "{refused}");
                }
            }
            let refused = rollout.decide(&user(Role::Reader), command, NOW);
            assert_eq!(refused, Err(Refusal::LowerRole(Role::Operator)));
            let seen = Observation::default();
            let refused = rollout.advance(&user(Role::Admin), &seen, NOW);
            assert_eq!(refused, Err(Refusal::WrongCredential));
        }
    }
}
