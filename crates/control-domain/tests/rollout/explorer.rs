//! Model check of a rollout with three nodes: every order of commands, crashes and reports.

use crate::{DEADLINE_SECS, NOW, after, planned, user};
use control_domain::{
    Actor, BatchCounts, Observation, OnFailure, ROLLOUT_TRANSITIONS, Rejection, RevertCounts,
    RevertProgress, Role, Rollout, RolloutChange, RolloutCommand, RolloutEvent, RolloutState,
    next_state,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const NODES: usize = 3;

/// State and last report of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Old,
    New,
    Rejected,
    /// Offline; true if it ran the new bundle last.
    Offline(bool),
}

/// Contents of the database: the rollout, the nodes with orders, and their reports.
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

    fn observe(&self, secs: i64) -> Observation {
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
                reported: i64::from(self.ordered[current] && node == Node::New),
                offline: i64::from(matches!(node, Node::Offline(_))),
            });
            seen.rejection = (node == Node::Rejected).then(|| Rejection {
                node: current.to_string(),
                diagnostic: None,
            });
        }
        seen.reverting = Some(self.revert_progress(secs));
        seen
    }

    fn revert_progress(&self, secs: i64) -> RevertProgress {
        let mut counts = RevertCounts::default();
        for index in (0..NODES).filter(|index| self.ordered[*index]) {
            match self.nodes[index] {
                _ if !self.back[index] => return RevertProgress::Unordered,
                Node::Old => {}
                Node::Offline(_) => counts.offline += 1,
                Node::New | Node::Rejected => counts.waiting += 1,
            }
        }
        match counts.waiting {
            1.. if secs < DEADLINE_SECS => RevertProgress::Waiting,
            _ => RevertProgress::Rest(counts),
        }
    }

    /// Applies the effects of the store in the transaction of a step.
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

    /// Returns the states after every possible event. A crash before the write changes nothing, and
    /// one after it is the same as no crash, because the next step starts from the database.
    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        for &command in RolloutCommand::ALL {
            if let Ok(change) = self.rollout.decide(&user(Role::Operator), command, NOW) {
                next.push(self.store(&change));
            }
        }
        for secs in [0, DEADLINE_SECS] {
            let seen = self.observe(secs);
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

    /// Returns the possible next reports of a node.
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

    /// Resets all times, so that states that differ only in time are equal.
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
fn every_order_of_commands_crashes_and_reports_is_consistent() {
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
        // An end is reachable from every state. Checked backwards from the ends.
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
