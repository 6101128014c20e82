//! Orders on trial: confirmed, waiting, or reverted by the node itself.

use crate::support::{Sample, assigned, id, on_trial, versions};
use control_client::{Action, Machine, Outcome, PersistedState, Served};
use control_wire::{BundleId, Order, Verdict};
use std::sync::Arc;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(30);
const CONFIRM_WITHIN: Duration = Duration::from_mins(5);
const NOW: Duration = Duration::from_hours(1);

/// A reporting node with the active bundle `good`, and no order on trial.
struct Node {
    sample: Sample,
    machine: Machine,
    good: Order,
    bad: Order,
}

impl Node {
    fn start() -> Self {
        let sample = Sample::new();
        let mut machine = Machine::new(None, PersistedState::default(), versions());
        machine.begin();
        for outcome in [
            Outcome::Enrolled(sample.registered.clone()),
            Outcome::TokenIssued,
            Outcome::Keys(vec![sample.key.clone()].into()),
        ] {
            machine.next(outcome, NOW);
        }
        let good = sample.order(1, &sample.good);
        let mut bad = sample.order(2, &sample.good);
        bad.bundle = BundleId(id(12));
        sample.sign(&mut bad);
        Self {
            sample,
            machine,
            good,
            bad,
        }
    }

    /// Creates a node on which `bad` has been on trial since [`NOW`].
    fn in_trial() -> Self {
        let mut node = Self::start();
        let order = assigned(node.good.clone(), 0);
        assert!(matches!(node.follow(order), Action::Activate(_)));
        node.machine.next(Outcome::Activated, NOW);
        let order = on_trial(node.bad.clone(), CONFIRM_WITHIN);
        assert!(matches!(node.follow(order), Action::TryOut(_)));
        node.machine.next(Outcome::Activated, NOW);
        let status = node.machine.status();
        assert_eq!(status.active, Some(node.bad.bundle));
        assert_eq!(status.verdict, Some(Verdict::Accepted));
        assert_eq!(status.last_good, Some(node.good.bundle));
        node
    }

    /// Reports, receives the order, and downloads its bundle.
    fn follow(&mut self, order: Outcome) -> Action {
        self.machine.next(Outcome::Reported(INTERVAL), NOW);
        self.machine.next(order, NOW);
        let archive = Arc::clone(&self.sample.good);
        self.machine.next(Outcome::Fetched(archive), NOW);
        self.machine.next(Outcome::Staged, NOW)
    }

    fn assert_reverted(&self, why: &str) {
        let status = self.machine.status();
        assert_eq!(status.active, Some(self.good.bundle));
        assert_eq!(status.verdict, Some(Verdict::Rejected));
        assert_eq!(status.order, Some(self.bad.counter));
        let reported = status.diagnostics.join("; ");
        assert!(reported.contains(why), "{reported}");
        let state = self.machine.state();
        assert_eq!(state.last_good.as_ref(), Some(&self.good));
        assert_eq!(state.trial, None);
    }
}

#[test]
fn an_unconfirmed_order_is_reverted() {
    let mut node = Node::in_trial();
    let late = NOW + CONFIRM_WITHIN;
    let wait = node.machine.next(
        Outcome::Failed(None),
        late.saturating_sub(Duration::from_millis(1)),
    );
    assert_eq!(wait, Action::Wait(Duration::from_millis(1)));
    let back = node.machine.next(Outcome::Failed(None), late);
    assert_eq!(back, Action::Revert);
    let report = node.machine.next(Outcome::Activated, late);
    assert!(matches!(report, Action::Report(_)), "{report:?}");
    node.assert_reverted("no confirmation by the control plane within 300 s");
    // When the control plane is back, the order is sent again and completed.
    node.machine.next(Outcome::Reported(INTERVAL), late);
    let again = node
        .machine
        .next(on_trial(node.bad.clone(), CONFIRM_WITHIN), late);
    assert!(!matches!(again, Action::Fetch(_)), "{again:?}");
}

#[test]
fn a_confirmed_order_is_the_last_good_one() {
    let mut node = Node::in_trial();
    assert_eq!(node.machine.state().trial.as_ref(), Some(&node.bad));
    node.machine.next(Outcome::Confirmed(INTERVAL), NOW);
    assert_eq!(node.machine.trial_left(NOW), None);
    let state = node.machine.state();
    assert_eq!(state.last_good.as_ref(), Some(&node.bad));
    assert_eq!(state.trial, None);
    let later = NOW + 2 * CONFIRM_WITHIN;
    let action = node.machine.next(Outcome::Failed(None), later);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
}

#[test]
fn a_paused_rollout_holds_the_trial() {
    let mut node = Node::in_trial();
    let late = NOW + CONFIRM_WITHIN.saturating_sub(Duration::from_secs(1));
    node.machine.next(Outcome::Held(INTERVAL), late);
    assert_eq!(node.machine.trial_left(late), Some(CONFIRM_WITHIN));
}

#[test]
fn a_process_that_exits_in_a_trial_starts_with_the_last_good_bundle_and_retries_the_order() {
    let mut node = restarted(Node::in_trial());
    assert_eq!(node.machine.status().active, Some(node.good.bundle));
    let order = on_trial(node.bad.clone(), CONFIRM_WITHIN);
    assert!(matches!(node.follow(order), Action::TryOut(_)));
    let failed = "live test \"shop\" fails".to_owned();
    node.machine.next(Outcome::Rejected(vec![failed]), NOW);
    node.assert_reverted("live test");
}

/// The next process of the node, after the end of this one. It has a token and the keys.
fn restarted(node: Node) -> Node {
    let state = node.machine.state().clone();
    let identity = node.machine.identity().cloned();
    let mut machine = Machine::new(identity, state, versions());
    machine.started_with(&node.sample.bundle(&node.good), Ok(()));
    machine.begin();
    let mut node = Node { machine, ..node };
    node.machine.next(Outcome::TokenIssued, NOW);
    let keys = vec![node.sample.key.clone()].into();
    node.machine.next(Outcome::Keys(keys), NOW);
    node
}

#[test]
fn a_bundle_whose_process_ends_twice_in_its_trial_is_rejected() {
    let mut node = restarted(Node::in_trial());
    let order = on_trial(node.bad.clone(), CONFIRM_WITHIN);
    assert!(matches!(node.follow(order), Action::TryOut(_)));
    node.machine.next(Outcome::Activated, NOW);
    assert_eq!(node.machine.status().active, Some(node.bad.bundle));

    let mut node = restarted(node);
    node.assert_reverted("the process ended 2 times in the trial");
    let events = node.machine.take_events();
    assert_eq!(events.len(), 1, "{events:?}");
    node.machine.next(Outcome::Reported(INTERVAL), NOW);
    let order = on_trial(node.bad.clone(), CONFIRM_WITHIN);
    let action = node.machine.next(order, NOW);
    assert!(!matches!(action, Action::Fetch(_)), "{action:?}");
}

#[test]
fn a_newer_order_begins_to_count_anew() {
    let mut node = restarted(Node::in_trial());
    assert_eq!(node.machine.state().interrupted_trials, 1);
    let mut newer = node.bad.clone();
    newer.counter += 1;
    node.sample.sign(&mut newer);
    let order = on_trial(newer, CONFIRM_WITHIN);
    assert!(matches!(node.follow(order), Action::TryOut(_)));
    node.machine.next(Outcome::Activated, NOW);
    assert_eq!(node.machine.state().interrupted_trials, 0);
}

#[test]
fn far_more_failures_than_before_revert_the_order() {
    let mut node = Node::in_trial();
    let served = |errors, requests| Served { requests, errors };
    node.machine.note_served(served(90, 99));
    let action = node.machine.next(Outcome::Reported(INTERVAL), NOW);
    assert!(matches!(action, Action::Poll { .. }), "{action:?}");
    node.machine.note_served(served(90, 300));
    let back = node.machine.next(Outcome::Failed(None), NOW);
    assert_eq!(back, Action::Revert);
    node.machine.next(Outcome::Activated, NOW);
    node.assert_reverted("90 of 300 requests failed with a 5xx status, before the switch 0 of 0");
}

#[test]
fn a_failed_revert_keeps_the_bundle_and_is_retried() {
    let mut node = Node::in_trial();
    let late = NOW + CONFIRM_WITHIN;
    node.machine.next(Outcome::Failed(None), late);
    let closed = vec!["the address is in use".to_owned()];
    let action = node.machine.next(Outcome::Rejected(closed), late);
    assert!(matches!(action, Action::Report(_)), "{action:?}");
    assert_eq!(node.machine.status().active, Some(node.bad.bundle));
    let again = node
        .machine
        .next(Outcome::Failed(None), late + Duration::from_mins(1));
    assert_eq!(again, Action::Revert);
}

#[test]
fn the_first_bundle_of_a_node_needs_no_confirmation() {
    let mut node = Node::start();
    let order = on_trial(node.good.clone(), CONFIRM_WITHIN);
    assert!(matches!(node.follow(order), Action::TryOut(_)));
    node.machine.next(Outcome::Activated, NOW);
    assert_eq!(node.machine.trial_left(NOW), None);
    assert_eq!(node.machine.state().last_good.as_ref(), Some(&node.good));
}
