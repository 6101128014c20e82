//! Model check of a node's loop: every reachable state, every outcome, and crashes before and after
//! every write.
#![expect(
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at some actions, and stops at others"
)]

mod support;
mod trial;

use control_client::{
    Action, EventKind, Identity, Machine, Outcome, PersistedState, RefusalReason,
};
use control_wire::{BundleId, Order, Verdict};
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use support::{Sample, assigned, id, tagged};

const NOW: Duration = Duration::ZERO;
/// More states than are reachable. A machine without repeated states would not end.
const MAX_STATES: usize = 200_000;

/// The state machine, the contents of the disk, and the next action.
#[derive(Clone)]
struct Node {
    machine: Machine,
    disk: (Option<Identity>, PersistedState),
    action: Action,
}

impl Node {
    fn new() -> Self {
        Self::restarted((None, PersistedState::default()))
    }

    fn restarted(disk: (Option<Identity>, PersistedState)) -> Self {
        let (identity, state) = disk.clone();
        let mut machine = Machine::new(identity, state, support::versions());
        let action = machine.begin();
        Self {
            machine,
            disk,
            action,
        }
    }

    /// Identifies a state: nodes with the same key behave equally, except for the length of waits.
    fn key(&self) -> u64 {
        let text = format!("{:?}", self.machine);
        let (before, rest) = text.split_once(", wait: ").expect("the text has the field");
        let (_, after) = rest
            .split_once(", interval: ")
            .expect("the text has the field");
        let (after, _) = after
            .split_once(", last_refusal: ")
            .expect("the text has the field");
        hash(&(before, after, format!("{:?}", self.disk.1)))
    }

    /// Returns the node after an outcome, and after the write that follows it.
    fn after(&self, outcome: Outcome) -> Self {
        let mut node = self.clone();
        node.action = node.machine.next(outcome, NOW);
        drop(node.machine.take_events());
        node.disk = (
            node.machine.identity().cloned(),
            node.machine.state().clone(),
        );
        node
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Checks invariants after a step.
fn check(before: &Node, outcome: &Outcome, after: &Node, sample: &Sample) {
    let (old, new) = (before.machine.state(), after.machine.state());
    assert!(old.counter <= new.counter, "the counter fell");
    let (was, is) = (
        before.machine.status().active,
        after.machine.status().active,
    );
    if was != is {
        assert_eq!(*outcome, Outcome::Activated, "in force without activation");
        assert!(matches!(
            before.action,
            Action::Activate(_) | Action::TryOut(_) | Action::Revert
        ));
    }
    let order = match &after.action {
        Action::Fetch(order) => Some(order),
        Action::Stage(bundle) | Action::Activate(bundle) | Action::TryOut(bundle) => {
            let found = control_bundle::digest(&bundle.archive);
            assert_eq!(found, bundle.order.digest, "another archive than ordered");
            Some(&bundle.order)
        }
        _ => None,
    };
    if let Some(order) = order {
        assert!(sample.is_genuine(order), "an unproven order is followed");
        let is_last_good = new.last_good.as_ref() == Some(order) && is.is_none();
        assert!(
            is_last_good || new.counter <= order.counter,
            "an old order is followed"
        );
        let answered = new.answer.as_ref();
        if let Some(answer) = answered.filter(|_| new.counter == order.counter) {
            let answered = (answer.bundle, &answer.digest);
            assert_eq!(
                answered,
                (order.bundle, &order.digest),
                "a counter was used twice"
            );
        }
    }
    if let Some(answer) = &new.answer
        && answer.verdict == Verdict::Accepted
    {
        let last_good = new.last_good.as_ref().expect("a bundle was accepted");
        let is_on_trial = last_good.counter < new.counter;
        assert!(last_good.bundle == answer.bundle || is_on_trial);
    }
    if matches!(outcome, Outcome::Failed(_)) {
        assert!(
            matches!(after.action, Action::Wait(_) | Action::Revert),
            "asks again at once"
        );
    }
}

#[test]
fn no_sequence_of_outcomes_and_crashes_makes_a_node_follow_an_unproven_order() {
    let sample = Sample::new();
    let outcomes = sample.outcomes();
    let mut disks = HashSet::new();
    let (mut seen, mut open) = (HashSet::new(), VecDeque::from([Node::new()]));
    while let Some(node) = open.pop_front() {
        assert!(seen.len() < MAX_STATES, "the machine has too many states");
        for outcome in &outcomes {
            let next = node.after(outcome.clone());
            check(&node, outcome, &next, &sample);
            for disk in [&node.disk, &next.disk] {
                if !disks.insert(hash(&format!("{disk:?}"))) {
                    continue;
                }
                let restarted = Node::restarted(disk.clone());
                assert_eq!(disk.1.counter, restarted.machine.state().counter);
                if seen.insert(restarted.key()) {
                    open.push_back(restarted);
                }
            }
            if seen.insert(next.key()) {
                open.push_back(next);
            }
        }
    }
    println!("{} states", seen.len());
    assert!(1_000 < seen.len(), "only {} states", seen.len());
}

/// Creates a machine at its first long poll.
fn polling(sample: &Sample) -> Machine {
    let mut machine = Machine::new(None, PersistedState::default(), support::versions());
    assert_eq!(machine.begin(), Action::Enrol);
    for outcome in [
        Outcome::Enrolled(sample.registered.clone()),
        Outcome::TokenIssued,
        Outcome::Keys(vec![sample.key.clone()].into()),
        Outcome::Reported(Duration::from_secs(30)),
    ] {
        machine.next(outcome, NOW);
    }
    machine
}

fn run(machine: &mut Machine, order: &Order, archive: &Arc<[u8]>) -> Action {
    let fetched = machine.next(assigned(order.clone(), 0), NOW);
    assert_eq!(fetched, Action::Fetch(order.clone()));
    let staged = machine.next(Outcome::Fetched(Arc::clone(archive)), NOW);
    assert!(matches!(staged, Action::Stage(_)), "{staged:?}");
    machine.next(Outcome::Staged, NOW);
    machine.next(Outcome::Activated, NOW)
}

#[test]
fn a_good_order_is_carried_out_and_reported() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let order = sample.order(1, &sample.good);
    let Action::Report(status) = run(&mut machine, &order, &sample.good) else {
        panic!("no report");
    };
    assert_eq!(status.active, Some(order.bundle));
    assert_eq!(status.last_good, Some(order.bundle));
    assert_eq!(
        (status.order, status.verdict),
        (Some(1), Some(Verdict::Accepted))
    );
    assert_eq!(machine.state().last_good, Some(order));
}

#[test]
fn a_bundle_that_fails_leaves_the_one_before_active() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let first = sample.order(1, &sample.good);
    run(&mut machine, &first, &sample.good);
    machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    let mut second = sample.order(2, &sample.good);
    second.bundle = BundleId(id(77));
    sample.sign(&mut second);
    machine.next(assigned(second.clone(), 0), NOW);
    machine.next(Outcome::Fetched(Arc::clone(&sample.good)), NOW);
    machine.next(Outcome::Staged, NOW);
    let action = machine.next(Outcome::Rejected(vec!["no".to_owned()]), NOW);
    let Action::Report(status) = action else {
        panic!("no report: {action:?}");
    };
    assert_eq!(status.active, Some(first.bundle));
    assert_eq!(status.staged, Some(second.bundle));
    assert_eq!(
        (status.order, status.verdict),
        (Some(2), Some(Verdict::Rejected))
    );
    assert_eq!(status.diagnostics, ["no"]);
    assert_eq!(machine.state().last_good, Some(first));
}

#[test]
fn an_order_by_a_new_key_is_accepted_once_a_pinned_key_endorses_it() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let order = sample.order_by_next_key(1);
    let asked = machine.next(assigned(order.clone(), 0), NOW);
    assert!(matches!(asked, Action::FetchKeys(_)), "{asked:?}");
    let keys = vec![sample.key.clone(), sample.next_key.clone()];
    let action = machine.next(Outcome::Keys(keys.into()), NOW);
    assert_eq!(action, Action::Fetch(order));
}

#[test]
fn an_order_by_a_key_that_nothing_endorses_is_refused_and_asked_for_later() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let order = sample.order_by_next_key(1);
    machine.next(assigned(order, 0), NOW);
    let mut bare = sample.next_key.clone();
    bare.endorsement = None;
    let action = machine.next(Outcome::Keys(vec![sample.key.clone(), bare].into()), NOW);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!(status.verdict, Some(Verdict::Rejected));
    assert!(
        status.diagnostics[0].contains("does not trust"),
        "{status:?}"
    );
    assert_eq!(machine.state().counter, 0, "its counter is not believed");
}

#[test]
fn an_etag_is_returned_unchanged_and_a_new_one_each_time_slows_the_node() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let order = sample.order(1, &sample.good);
    run(&mut machine, &order, &sample.good);
    for tag in ["\"a\"", "W/\"b\"", "no quotes", "", ""] {
        machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
        let action = machine.next(tagged(order.clone(), 0, tag), NOW);
        assert!(matches!(action, Action::Wait(_)), "{tag}: {action:?}");
        machine.next(Outcome::Waited, NOW);
        let mut reported = machine.clone();
        let action = reported.next(Outcome::Reported(Duration::from_secs(30)), NOW);
        let Action::Poll { known, .. } = action else {
            panic!("no poll: {action:?}");
        };
        assert_eq!(known, tag);
    }
}

#[test]
fn a_node_without_an_order_waits_for_one_in_a_long_poll() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let none = || Outcome::Unassigned("\"0\"".to_owned());
    let action = machine.next(none(), NOW);
    let Action::Poll { known, wait } = action else {
        panic!("no poll: {action:?}");
    };
    assert_eq!((&*known, wait), ("\"0\"", Duration::from_secs(30)));
    let action = machine.next(none(), NOW);
    assert!(matches!(action, Action::Wait(_)), "early: {action:?}");
}

#[test]
fn a_report_that_is_refused_keeps_no_node_from_its_orders() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let whole = Outcome::Unchanged(Duration::from_secs(30));
    let action = machine.next(whole, NOW);
    assert!(matches!(action, Action::Report(_)), "{action:?}");
    let action = machine.next(Outcome::Refused("422".to_owned()), NOW);
    assert!(matches!(action, Action::Poll { .. }), "{action:?}");
    let order = sample.order(1, &sample.good);
    run(&mut machine, &order, &sample.good);
    assert_eq!(machine.status().active, Some(order.bundle));
}

#[test]
fn early_answers_do_not_make_a_node_poll_without_a_pause() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let second = Duration::from_secs(1);
    let mut waited = Duration::ZERO;
    for _ in 0..10 {
        let took = Duration::from_millis(5);
        let action = machine.next(Outcome::Unchanged(took), NOW);
        let Action::Wait(wait) = action else {
            panic!("no pause: {action:?}");
        };
        waited += wait;
        machine.next(Outcome::Waited, NOW);
        machine.next(Outcome::Reported(second), NOW);
    }
    assert!(Duration::from_secs(9) < waited, "{waited:?} for ten polls");
}

#[test]
fn a_token_is_renewed_by_elapsed_time_and_not_by_the_wall_clock() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let unchanged = || Outcome::Unchanged(Duration::from_secs(30));
    let action = machine.next(unchanged(), Duration::from_hours(5));
    assert!(matches!(action, Action::Report(_)));
    machine.next(
        Outcome::Reported(Duration::from_secs(30)),
        Duration::from_hours(5),
    );
    let action = machine.next(unchanged(), Duration::from_hours(6));
    assert_eq!(action, Action::ExchangeToken);
}

#[test]
fn requests_for_immediately_refused_tokens_back_off() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let mut waits = Vec::new();
    for _ in 0..4 {
        // One replica accepts the heartbeat, another one refuses the poll.
        match machine.next(Outcome::Unauthorized, NOW) {
            Action::Wait(wait) => waits.push(wait.as_secs()),
            other => panic!("no pause: {other:?}"),
        }
        assert_eq!(machine.next(Outcome::Waited, NOW), Action::ExchangeToken);
        machine.next(Outcome::TokenIssued, NOW);
        machine.next(Outcome::Keys(vec![sample.key.clone()].into()), NOW);
        machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    }
    assert_eq!(waits, [1, 2, 4, 8]);
    let later = Duration::from_mins(5);
    let action = machine.next(Outcome::Unauthorized, later);
    assert_eq!(action, Action::ExchangeToken, "it was good for a while");
}

#[test]
fn a_wait_that_the_control_plane_asks_for_is_kept_when_the_driver_halves_it() {
    let sample = Sample::new();
    for (asked, least) in [(10, 10), (30, 30), (60, 60), (3_600, 60), (u64::MAX, 60)] {
        let mut machine = polling(&sample);
        let asked = Some(Duration::from_secs(asked));
        let Action::Wait(wait) = machine.next(Outcome::Failed(asked), NOW) else {
            panic!("no pause");
        };
        assert_eq!((wait / 2).as_secs(), least);
    }
}

/// Returns the persisted state of a node that serves a bundle, and has rejected a newer one.
fn rejecting(sample: &Sample) -> (Option<Identity>, PersistedState) {
    let mut machine = polling(sample);
    run(&mut machine, &sample.order(1, &sample.good), &sample.good);
    machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    let newer = newer(sample);
    machine.next(assigned(newer, 0), NOW);
    machine.next(Outcome::Fetched(Arc::clone(&sample.tls)), NOW);
    machine.next(Outcome::Staged, NOW);
    machine.next(Outcome::Refused("gone".to_owned()), NOW);
    (machine.identity().cloned(), machine.state().clone())
}

/// Creates an order for another bundle than the first one.
fn newer(sample: &Sample) -> Order {
    let mut newer = sample.order(2, &sample.tls);
    newer.bundle = BundleId(id(11));
    sample.sign(&mut newer);
    newer
}

#[test]
fn a_node_that_rejected_the_newest_order_reactivates_the_bundle_before_after_a_failed_start() {
    let sample = Sample::new();
    let good = sample.order(1, &sample.good);
    let unassigned = Outcome::Unassigned("\"0\"".to_owned());
    for answer in [assigned(newer(&sample), 0), unassigned] {
        let (identity, state) = rejecting(&sample);
        let before = Machine::new(identity.clone(), state.clone(), support::versions()).status();
        assert_eq!(before.verdict, Some(Verdict::Rejected));
        let mut machine = Machine::new(identity, state, support::versions());
        let away = vec!["the control plane does not answer".to_owned()];
        machine.started_with(&sample.bundle(&good), Err(away));
        machine.begin();
        machine.next(Outcome::TokenIssued, NOW);
        machine.next(Outcome::Keys(vec![sample.key.clone()].into()), NOW);
        machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
        assert_eq!(machine.next(answer, NOW), Action::Fetch(good.clone()));
        machine.next(Outcome::Fetched(Arc::clone(&sample.good)), NOW);
        machine.next(Outcome::Staged, NOW);
        let Action::Report(status) = machine.next(Outcome::Activated, NOW) else {
            panic!("no report");
        };
        assert_eq!(status.active, Some(good.bundle));
        assert_eq!(
            (status.order, status.verdict),
            (before.order, before.verdict)
        );
        assert_eq!(
            status.diagnostics, before.diagnostics,
            "of the newest order"
        );
        assert_eq!(machine.state().counter, 2, "it never falls");
    }
}

#[test]
fn an_unreachable_control_plane_is_asked_less_and_less_often() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let mut waits = Vec::new();
    for _ in 0..8 {
        match machine.next(Outcome::Failed(None), NOW) {
            Action::Wait(wait) => waits.push(wait.as_secs()),
            other => panic!("{other:?}"),
        }
        machine.next(Outcome::Waited, NOW);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn a_node_whose_bundle_did_not_start_tries_it_again() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let order = sample.order(1, &sample.good);
    run(&mut machine, &order, &sample.good);
    let (identity, state) = (machine.identity().cloned(), machine.state().clone());
    let mut machine = Machine::new(identity, state, support::versions());
    let bundle = sample.bundle(&order);
    machine.started_with(&bundle, Err(vec!["the address is in use".to_owned()]));
    assert_eq!(machine.begin(), Action::ExchangeToken);
    machine.next(Outcome::TokenIssued, NOW);
    machine.next(Outcome::Keys(vec![sample.key.clone()].into()), NOW);
    machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    assert_eq!(machine.status().verdict, Some(Verdict::Rejected));
    let action = run(&mut machine, &order, &sample.good);
    let Action::Report(status) = action else {
        panic!("no report: {action:?}");
    };
    assert_eq!(status.active, Some(order.bundle));
    assert_eq!(status.verdict, Some(Verdict::Accepted));
}

/// Creates a machine that runs a bundle with a certificate, and polls for orders.
fn serving_tls(sample: &Sample) -> (Machine, Order) {
    let mut machine = polling(sample);
    let order = sample.order(1, &sample.tls);
    machine.next(assigned(order.clone(), 3), NOW);
    machine.next(Outcome::Fetched(Arc::clone(&sample.tls)), NOW);
    let action = machine.next(Outcome::Staged, NOW);
    assert!(matches!(action, Action::FetchCertificates(_)), "{action:?}");
    machine.next(Outcome::CertificatesFetched, NOW);
    machine.next(Outcome::Activated, NOW);
    machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    (machine, order)
}

#[test]
fn renewed_certificates_are_fetched_and_served_without_another_order() {
    let sample = Sample::new();
    let (mut machine, order) = serving_tls(&sample);
    let before = machine.status();
    let action = machine.next(assigned(order.clone(), 4), NOW);
    assert!(matches!(action, Action::FetchCertificates(_)), "{action:?}");
    let action = machine.next(Outcome::CertificatesFetched, NOW);
    assert_eq!(action, Action::Renew);
    let action = machine.next(Outcome::Renewed(true), NOW);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    assert_eq!(machine.status(), before, "the verdict on the order stays");
    let events = machine.take_events();
    let last = events.last().expect("an event");
    assert_eq!(last.kind, EventKind::CertificatesRenewed);
    machine.next(Outcome::Waited, NOW);
    let action = machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    let Action::Poll { known, .. } = action else {
        panic!("no poll: {action:?}");
    };
    assert_eq!(known, "W/\"1-4\"", "the tag as it came");
    let action = machine.next(assigned(order, 4), NOW);
    assert!(matches!(action, Action::Wait(_)), "not again: {action:?}");
}

#[test]
fn certificates_that_cannot_be_served_are_reported_and_tried_again() {
    let sample = Sample::new();
    let (mut machine, order) = serving_tls(&sample);
    machine.next(assigned(order.clone(), 4), NOW);
    machine.next(Outcome::CertificatesFetched, NOW);
    let action = machine.next(Outcome::Rejected(vec!["no".to_owned()]), NOW);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!(status.diagnostics, ["certificates: no"]);
    assert_eq!(status.verdict, Some(Verdict::Accepted));
    machine.next(Outcome::Waited, NOW);
    machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    let action = machine.next(assigned(order, 4), NOW);
    assert!(matches!(action, Action::FetchCertificates(_)), "{action:?}");
    machine.next(Outcome::CertificatesFetched, NOW);
    machine.next(Outcome::Renewed(true), NOW);
    assert_eq!(machine.status().diagnostics, [""; 0]);
}

#[test]
fn a_certificate_that_was_deleted_stays_until_the_next_bundle() {
    let sample = Sample::new();
    let (mut machine, order) = serving_tls(&sample);
    machine.next(assigned(order.clone(), 4), NOW);
    let action = machine.next(Outcome::Refused("gone".to_owned()), NOW);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    assert_eq!(machine.status().diagnostics, ["certificates: gone"]);
    machine.next(Outcome::Waited, NOW);
    machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    let action = machine.next(assigned(order, 4), NOW);
    assert!(matches!(action, Action::Wait(_)), "not again: {action:?}");
}

#[test]
fn a_refusal_has_its_reason() {
    let sample = Sample::new();
    let mut machine = polling(&sample);
    let mut forged = sample.order(1, &sample.good);
    forged.counter = 2;
    machine.next(assigned(forged, 0), NOW);
    machine.next(Outcome::Waited, NOW);
    machine.next(Outcome::Reported(Duration::from_secs(30)), NOW);
    let order = sample.order(1, &sample.good);
    machine.next(assigned(order, 0), NOW);
    machine.next(Outcome::Fetched(Arc::from(*b"another")), NOW);
    let events = machine.take_events().into_iter();
    let reasons: Vec<_> = events.filter_map(|event| event.kind.refusal()).collect();
    assert_eq!(reasons, [RefusalReason::Signature, RefusalReason::Archive]);
    assert_eq!(machine.order_in_force(), 0);
}

#[test]
fn the_reference_has_a_row_for_every_phase() {
    let page = control_client::reference::page();
    for phase in [
        "enrolling",
        "polling",
        "fetching certificates",
        "activating",
        "fetching renewed certificates",
        "renewing certificates",
        "waiting",
    ] {
        assert!(page.contains(&format!("\n| {phase} | ")), "{phase}\n{page}");
    }
}
