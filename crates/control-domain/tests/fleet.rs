//! State machines of nodes, enrolment tokens and signing keys: every state and every event.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use control_auth::SigningPair;
use control_domain::{
    Access, Actor, ENROLMENT_TOKEN_TRANSITIONS, EnrolmentToken, EnrolmentTokenEvent,
    EnrolmentTokenState, HeartbeatInterval, NODE_TRANSITIONS, NewEnrolmentToken, NewNode, Node,
    NodeCredential, NodeReport, NodeState, NodeTransitionEvent, Refusal, Role,
    SIGNING_KEY_TRANSITIONS, SigningKey, SigningKeyEvent, SigningKeyState, Tenant, Transition,
    next_state,
};
use control_wire::{
    EnrolmentTokenId, NodeId, NodeStatus, OrgId, ProjectId, SecretId, SessionId, SigningKeyId,
    UserId,
};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use uuid::Uuid;

const ORG: OrgId = OrgId(Uuid::from_u128(1));
const PROJECT: ProjectId = ProjectId(Uuid::from_u128(2));
const NODE: NodeId = NodeId(Uuid::from_u128(3));
const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);

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

fn tenant() -> Tenant {
    Tenant::project(ORG, PROJECT)
}

fn after(secs: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(secs)
}

/// Checks that no pair has two rows, every state is reachable from `first`, and `last` has no
/// transitions.
fn explore<S, E>(table: &[Transition<S, E>], states: &[S], events: &[E], first: S, last: S)
where
    S: Copy + Debug + Ord,
    E: Copy + Debug + PartialEq,
{
    for state in states {
        for event in events {
            let rows = table.iter();
            let rows = rows.filter(|row| row.from == *state && row.event == *event);
            assert!(rows.count() <= 1, "{state:?} has two rows for {event:?}");
        }
    }
    let (mut reached, mut open) = (BTreeSet::new(), vec![first]);
    while let Some(state) = open.pop() {
        if reached.insert(state) {
            let next = events
                .iter()
                .filter_map(|event| next_state(table, state, *event));
            open.extend(next);
        }
    }
    assert_eq!(reached, states.iter().copied().collect());
    let out = events
        .iter()
        .find(|event| next_state(table, last, **event).is_some());
    assert_eq!(out, None, "{last:?} is the end");
}

#[test]
fn every_state_is_reached_and_every_event_is_decided_by_one_row_or_refused() {
    explore(
        NODE_TRANSITIONS,
        NodeState::ALL,
        NodeTransitionEvent::ALL,
        NodeState::Enrolled,
        NodeState::Deleted,
    );
    explore(
        ENROLMENT_TOKEN_TRANSITIONS,
        EnrolmentTokenState::ALL,
        EnrolmentTokenEvent::ALL,
        EnrolmentTokenState::Active,
        EnrolmentTokenState::Revoked,
    );
    explore(
        SIGNING_KEY_TRANSITIONS,
        SigningKeyState::ALL,
        SigningKeyEvent::ALL,
        SigningKeyState::Standby,
        SigningKeyState::Deactivated,
    );
}

fn node(seen_at: Option<Timestamp>) -> Node {
    let registered = Node::register(
        &user(Role::Operator),
        tenant(),
        NODE,
        NewNode {
            name: "edge-1",
            labels: BTreeMap::new(),
            given: None,
        },
        NOW,
    );
    let report = seen_at.map(|seen_at| NodeReport {
        seen_at,
        cpu_percent: 1.0,
        version: None,
        status: NodeStatus::default(),
        traffic: None,
        duplicate: None,
    });
    Node {
        report,
        ..registered.unwrap()
    }
}

/// A real node follows the table: all states × events.
#[test]
fn a_node_changes_state_by_the_table() {
    use NodeTransitionEvent::{Delete, Heartbeat, Miss};
    let interval = HeartbeatInterval::default();
    let (new, there, gone) = (node(None), node(Some(NOW)), node(Some(after(-90))));
    for (node, state) in [
        (&new, NodeState::Enrolled),
        (&there, NodeState::Online),
        (&gone, NodeState::Offline),
    ] {
        assert_eq!(node.state(interval, NOW), state);
        let next = |event| next_state(NODE_TRANSITIONS, state, event);
        let beaten = self::node(Some(after(1))).state(interval, after(1));
        assert_eq!(next(Heartbeat), Some(beaten));
        let missed = node.state(interval, after(90));
        assert_eq!(next(Miss).unwrap_or(state), missed);
        let deleted = node.check_delete(&user(Role::Operator), interval, NOW);
        assert_eq!(deleted.is_ok(), next(Delete).is_some());
    }
    assert_eq!(there.state(interval, after(89)), NodeState::Online);
    let reader = there.check_delete(&user(Role::Reader), interval, NOW);
    assert_eq!(reader, Err(Refusal::LowerRole(Role::Operator)));
}

#[test]
fn a_node_is_online_for_three_of_its_intervals() {
    let node = node(Some(NOW));
    for (secs, online) in [(1, 2), (10, 29), (300, 899), (0, 2), (u16::MAX, 899)] {
        let interval = HeartbeatInterval::from_secs(secs);
        assert_eq!(node.state(interval, after(online)), NodeState::Online);
        assert_eq!(node.state(interval, after(online + 1)), NodeState::Offline);
    }
}

#[test]
fn a_node_may_act_only_as_itself() {
    let node = |id, by| Actor::Node {
        id,
        tenant: tenant(),
        by,
    };
    let (key, token) = (NodeCredential::Key, NodeCredential::Token);
    let (other, wrong) = (NodeId(Uuid::from_u128(9)), Refusal::WrongCredential);
    for (actor, access, expected) in [
        (node(NODE, key), Access::OwnNode, Ok(tenant())),
        (node(NODE, token), Access::OwnNode, Ok(tenant())),
        (node(NODE, key), Access::OwnNodeKey, Ok(tenant())),
        (node(NODE, token), Access::OwnNodeKey, Err(wrong.clone())),
        (node(other, key), Access::OwnNode, Err(Refusal::NotFound)),
        (user(Role::Admin), Access::OwnNode, Err(wrong)),
    ] {
        assert_eq!(Node::own(&actor, access, NODE), expected, "{actor:?}");
    }
}

fn token(max_uses: i64) -> EnrolmentToken {
    let new = NewEnrolmentToken {
        labels: BTreeMap::new(),
        name: "rack 1".to_owned(),
        max_uses: Some(max_uses),
        expires_at: Some(after(100)),
    };
    let id = EnrolmentTokenId(Uuid::from_u128(6));
    EnrolmentToken::create(&user(Role::Operator), tenant(), id, new, NOW).unwrap()
}

#[test]
fn an_enrolment_token_changes_state_by_the_table() {
    use EnrolmentTokenEvent::{Expire, Revoke, UseUp};
    let used_up = EnrolmentToken {
        uses: 2,
        ..token(2)
    };
    let expired = EnrolmentToken {
        expires_at: NOW,
        ..token(2)
    };
    let revoked = EnrolmentToken {
        revoked_at: Some(NOW),
        ..token(2)
    };
    for (token, state) in [
        (token(2), EnrolmentTokenState::Active),
        (used_up, EnrolmentTokenState::UsedUp),
        (expired, EnrolmentTokenState::Expired),
        (revoked, EnrolmentTokenState::Revoked),
    ] {
        assert_eq!(token.state(NOW), state);
        let next = |event| next_state(ENROLMENT_TOKEN_TRANSITIONS, state, event);
        let accepted = token.accept(NOW).is_ok();
        // A used-up token still repeats lost responses.
        let admits = [EnrolmentTokenState::Active, EnrolmentTokenState::UsedUp];
        assert_eq!(accepted, admits.contains(&state));
        let used = EnrolmentToken {
            uses: 2,
            ..token.clone()
        };
        assert_eq!(next(UseUp).unwrap_or(state), used.state(NOW));
        assert_eq!(next(Expire).unwrap_or(state), token.state(after(100)));
        let revoked = token.revoke(&user(Role::Operator), NOW);
        let revoked = revoked.map(|token| token.state(NOW)).ok();
        assert_eq!(next(Revoke), revoked);
    }
}

fn signing_key(state: SigningKeyState) -> SigningKey {
    SigningKey {
        id: SigningKeyId(Uuid::from_u128(7)),
        org: ORG,
        state,
        public_key: SigningPair::new(&[1; 32]).unwrap().public(),
        secret: SecretId(Uuid::from_u128(8)),
        endorsement: None,
        created_at: NOW,
        deactivated_at: None,
    }
}

#[test]
fn a_signing_key_changes_state_by_the_table() {
    use SigningKeyEvent::{Activate, Deactivate, Retire};
    let (admin, active) = (user(Role::Admin), signing_key(SigningKeyState::Active));
    for &state in SigningKeyState::ALL {
        let next = |event| next_state(SIGNING_KEY_TRANSITIONS, state, event);
        let key = signing_key(state);
        assert_eq!(key.verifies(), state != SigningKeyState::Deactivated);
        let rotated = SigningKey::rotate(&admin, key.clone(), active.clone());
        let activated = rotated.map(|(next, _)| next.state).ok();
        assert_eq!(next(Activate), activated);
        let standby = signing_key(SigningKeyState::Standby);
        let rotated = SigningKey::rotate(&admin, standby, key.clone());
        let retired = rotated.map(|(_, before)| before.state).ok();
        assert_eq!(next(Retire), retired);
        let deactivated = key.deactivate(&admin, NOW).map(|key| key.state).ok();
        assert_eq!(next(Deactivate), deactivated);
    }
    let operator = user(Role::Operator);
    let refused = Err(Refusal::LowerRole(Role::Admin));
    assert_eq!(active.deactivate(&operator, NOW).map(drop), refused);
    assert_eq!(SigningKey::check_create(&operator, ORG, 0), refused);
    assert_eq!(SigningKey::check_create(&admin, ORG, 15), Ok(()));
    assert!(SigningKey::check_create(&admin, ORG, 16).is_err());
}
