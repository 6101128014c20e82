//! The rollout's state machine: every state, every event, every crash.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may stop, and looks at few events of many"
)]

use control_domain::{
    Actor, BatchCounts, BatchSize, BatchState, Comparison, Figures, Gate, NewRollout, Observation,
    OnFailure, ROLLOUT_TRANSITIONS, Refusal, Rejection, RevertCounts, Role, Rollout, RolloutChange,
    RolloutCommand, RolloutEvent, RolloutState, Strategy, Tenant, next_state,
};
use control_wire::{BundleId, OrgId, ProjectId, RolloutId, RouteTraffic, SessionId, UserId};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uuid::Uuid;

const ORG: OrgId = OrgId(Uuid::from_u128(1));
const PROJECT: ProjectId = ProjectId(Uuid::from_u128(2));
const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);
const DEADLINE_SECS: i64 = 100;
const NODES: usize = 3;

fn user(role: Role) -> Actor {
    Actor::User {
        id: UserId(Uuid::from_u128(4)),
        session: SessionId(Uuid::from_u128(5)),
        instance_admin: false,
        roles: BTreeMap::from([(ORG, role)]),
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
fn every_state_is_reached_and_every_way_ends() {
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

/// What a node of the explored fleet runs, and says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Old,
    New,
    Rejected,
    /// With the bundle that it ran last.
    Offline(bool),
}

/// What the database holds: the rollout, which nodes are ordered, and what they say.
#[derive(Clone, Debug)]
struct World {
    rollout: Rollout,
    ordered: [bool; NODES],
    back: [bool; NODES],
    nodes: [Node; NODES],
    is_revoked: bool,
}

impl World {
    fn new(on_failure: OnFailure) -> Self {
        Self {
            rollout: planned(on_failure, None, 3),
            ordered: [false; NODES],
            back: [false; NODES],
            nodes: [Node::Old; NODES],
            is_revoked: false,
        }
    }

    fn current(&self) -> Option<usize> {
        let batch = self.rollout.batch.as_ref()?;
        usize::try_from(batch.number - 1).ok()
    }

    fn observe(&self) -> Observation {
        let mut seen = Observation {
            is_revoked: self.is_revoked,
            ..Observation::default()
        };
        if let Some(current) = self.current() {
            let node = self.nodes[current];
            seen.batch = Some(BatchCounts {
                nodes: 1,
                unordered: i64::from(!self.ordered[current]),
                ready: i64::from(self.ordered[current] && node == Node::New),
                offline: i64::from(matches!(node, Node::Offline(_))),
            });
            seen.rejection = (node == Node::Rejected).then(|| Rejection {
                node: current.to_string(),
                diagnostic: None,
            });
        }
        let mut counts = RevertCounts::default();
        for index in 0..NODES {
            match self.nodes[index] {
                _ if !self.ordered[index] => {}
                _ if !self.back[index] => counts.unordered += 1,
                Node::Old => {}
                Node::Offline(_) => counts.offline += 1,
                Node::New | Node::Rejected => counts.waiting += 1,
            }
        }
        seen.reverting = Some(counts);
        seen
    }

    /// What the store does in the transaction of a step.
    fn store(&self, change: &RolloutChange) -> Self {
        let mut next = Self {
            rollout: change.rollout.clone(),
            ..self.clone()
        };
        match change.event {
            RolloutEvent::OpenBatch | RolloutEvent::OrderNodes => {
                let current = next.current().unwrap();
                next.ordered[current] = true;
            }
            RolloutEvent::Resume => {
                if let Some(current) = next.current()
                    && next.rollout.batch_under_way().is_some()
                    && next.nodes[current] != Node::New
                {
                    next.ordered[current] = false;
                    if next.nodes[current] == Node::Rejected {
                        next.nodes[current] = Node::Old;
                    }
                }
            }
            RolloutEvent::RevertNodes => {
                for index in 0..NODES {
                    next.back[index] = next.ordered[index];
                }
            }
            _ => {}
        }
        next
    }

    /// All that can happen next. A crash before the write is no change, and one behind it is the same
    /// as none: whatever is to follow is read from here.
    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        for &command in RolloutCommand::ALL {
            if let Ok(change) = self.rollout.decide(&user(Role::Operator), command, NOW) {
                next.push(self.store(&change));
            }
        }
        for secs in [0, DEADLINE_SECS] {
            let seen = self.observe();
            let change = self.rollout.advance(&Actor::System, &seen, after(secs));
            let again = self.rollout.advance(&Actor::System, &seen, after(secs));
            assert_eq!(change, again, "a crash before the write changes nothing");
            if let Some(change) = change.unwrap() {
                self.check_step(&change, secs);
                next.push(self.store(&change));
            }
        }
        for index in 0..NODES {
            for node in self.words(index) {
                let mut other = self.clone();
                other.nodes[index] = node;
                next.push(other);
            }
        }
        let revoked = Self {
            is_revoked: true,
            ..self.clone()
        };
        next.push(revoked);
        for world in &mut next {
            world.forget_times();
        }
        next
    }

    /// What a node may say next.
    fn words(&self, index: usize) -> Vec<Node> {
        let node = self.nodes[index];
        match node {
            Node::Offline(true) => vec![Node::New],
            Node::Offline(false) => vec![Node::Old],
            _ if self.back[index] => vec![Node::Old, Node::Offline(node == Node::New)],
            Node::Old if self.ordered[index] => {
                vec![Node::New, Node::Rejected, Node::Offline(false)]
            }
            Node::Old => vec![Node::Offline(false)],
            Node::New => vec![Node::Offline(true)],
            Node::Rejected => vec![],
        }
    }

    fn check_step(&self, change: &RolloutChange, secs: i64) {
        let next = next_state(ROLLOUT_TRANSITIONS, self.rollout.state, change.event);
        assert_eq!(next, Some(change.rollout.state), "{change:?}");
        let current = self.current().map(|current| self.nodes[current]);
        match change.event {
            RolloutEvent::PassBatch => assert_eq!(current, Some(Node::New), "{self:?}"),
            RolloutEvent::Complete => assert_eq!(self.ordered, [true; NODES], "{self:?}"),
            RolloutEvent::FinishRollback if secs == 0 => {
                for index in (0..NODES).filter(|index| self.ordered[*index]) {
                    let back = matches!(self.nodes[index], Node::Old | Node::Offline(_));
                    assert!(back && self.back[index], "{self:?}");
                }
            }
            _ => {}
        }
        if self.is_revoked && self.rollout.state == RolloutState::Running {
            assert_eq!(change.event, RolloutEvent::Fail);
        }
    }

    fn check(&self) {
        let current = self.current().map_or(0, |current| current + 1);
        for index in current..NODES {
            assert!(!self.ordered[index], "a later batch was ordered: {self:?}");
        }
    }

    /// Time goes on the same from every state.
    fn forget_times(&mut self) {
        let rollout = &mut self.rollout;
        let some = |time: Option<Timestamp>| time.map(|_| NOW);
        rollout.started_at = some(rollout.started_at);
        rollout.reverting_since = some(rollout.reverting_since);
        rollout.ended_at = some(rollout.ended_at);
        rollout.reason = None;
        if let Some(batch) = &mut rollout.batch {
            batch.opened_at = NOW;
            batch.switched_at = some(batch.switched_at);
            batch.ended_at = some(batch.ended_at);
        }
    }

    fn key(&self) -> String {
        format!("{self:?}")
    }
}

#[test]
fn no_order_of_commands_crashes_and_words_of_nodes_leads_astray() {
    for on_failure in [OnFailure::Pause, OnFailure::RollBack] {
        let first = World::new(on_failure);
        let mut known = BTreeMap::from([(first.key(), 0_usize)]);
        let (mut worlds, mut before) = (vec![first], vec![Vec::new()]);
        let mut open = VecDeque::from([0_usize]);
        while let Some(index) = open.pop_front() {
            let world = worlds[index].clone();
            world.check();
            for next in world.next() {
                let place = *known.entry(next.key()).or_insert_with(|| {
                    worlds.push(next);
                    before.push(Vec::new());
                    open.push_back(worlds.len() - 1);
                    worlds.len() - 1
                });
                before[place].push(index);
            }
        }
        let states: BTreeSet<RolloutState> =
            worlds.iter().map(|world| world.rollout.state).collect();
        let approval = RolloutState::AwaitingApproval;
        assert_eq!(
            states.len(),
            RolloutState::ALL.len() - 1,
            "all but {approval}"
        );
        assert!(1_000 < worlds.len(), "{} worlds", worlds.len());
        // From everywhere an end is reached: walked backwards from the ends.
        let ends = (0..worlds.len()).filter(|index| worlds[*index].rollout.state.is_final());
        let (mut reached, mut open) = (BTreeSet::new(), ends.collect::<Vec<_>>());
        while let Some(index) = open.pop() {
            if reached.insert(index) {
                open.extend(&before[index]);
            }
        }
        assert_eq!(reached.len(), worlds.len(), "a rollout that never ends");
    }
}

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
    figures.add(1.0, Some(control_wire::Traffic { routes }), None);
    figures
}

/// A running rollout with a batch in this state, opened at [`NOW`].
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
