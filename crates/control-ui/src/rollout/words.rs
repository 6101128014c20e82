//! Wording of a rollout: a sentence, and its state as an icon and a word.

use crate::view::component::{Status, Tone};
use crate::view::diagnostic::in_one_line;
use crate::view::phrase::{count, number, pick, sentence};
use control_app::{RolloutProgress, RolloutReach};
use control_domain::{BatchState, Rollout, RolloutState, short_reason};

/// Reasons that only state an operator's command.
const MANUAL_REASONS: &[&str] = &["paused by hand", "cancelled by hand", "rolled back by hand"];

/// Numbers of a rollout's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Nodes that were ordered to run the bundle and not ordered to revert.
    pub(crate) ordered: i64,
    /// Of these, online nodes that run it; once the rollout has ended, those at the end of their batch.
    pub(crate) ready: i64,
    /// Of these, offline nodes that ran it when they reported last.
    pub(crate) silent: i64,
}

impl Moved {
    /// Nodes that were ordered to run the bundle and have not reported that they do.
    pub(crate) fn unreported(self) -> i64 {
        (self.ordered - self.ready - self.silent).max(0)
    }

    /// Nodes that the rollout has not ordered.
    pub(crate) fn unordered(self, rollout: &Rollout) -> i64 {
        (rollout.nodes - self.ordered).max(0)
    }
}

/// State as an icon and a word.
pub(crate) fn status(rollout: &Rollout) -> Status {
    let (tone, icon, word) = match rollout.state {
        RolloutState::Planned => (Tone::Off, "wait", "Planned"),
        RolloutState::AwaitingApproval => (Tone::Warn, "wait", "Waits for approval"),
        RolloutState::Running => (Tone::Busy, "busy", "Under way"),
        RolloutState::Paused if rollout.is_stopped_by_hand() => {
            (Tone::Warn, "pause", "Paused by hand")
        }
        RolloutState::Paused => (Tone::Bad, "pause", "Stopped"),
        RolloutState::Completed => (Tone::Ok, "ok", "Completed"),
        RolloutState::Failed | RolloutState::RollingBack => (Tone::Bad, "back", "Rolling back"),
        RolloutState::RolledBack => (Tone::Warn, "back", "Rolled back"),
        RolloutState::Cancelled => (Tone::Off, "off", "Cancelled"),
    };
    Status::new(tone, icon, word)
}

/// Sentence on the rollout.
pub(crate) fn heading(rollout: &Rollout, bundle: &str, moved: Moved) -> String {
    let (nodes, batches) = (rollout.nodes, rollout.batches());
    let all = count(nodes, "node");
    let at = place(rollout);
    match rollout.state {
        RolloutState::Planned => format!(
            "{all} in {} {} for the start.",
            count(batches, "batch"),
            pick(nodes, "waits", "wait")
        ),
        RolloutState::AwaitingApproval => {
            format!("Another person must approve before {all} can get “{bundle}”.")
        }
        RolloutState::Running => format!("{}{at}.", running(rollout, bundle, moved)),
        RolloutState::Paused if rollout.is_stopped_by_hand() => format!("Paused by hand{at}."),
        RolloutState::Paused => format!("Stopped{at}: {}", reason(rollout)),
        RolloutState::Completed => completed(bundle, moved),
        RolloutState::Failed | RolloutState::RollingBack => {
            format!("Rolling back{at}: nodes revert to their former bundles.")
        }
        RolloutState::RolledBack if rollout.is_stopped_by_hand() => {
            format!("Rolled back by hand{at}.")
        }
        RolloutState::RolledBack => format!("Rolled back{at}: {}", reason(rollout)),
        RolloutState::Cancelled => {
            format!("Cancelled{at}: {}.", running(rollout, bundle, moved))
        }
    }
}

/// Phrase such as `22 of 64 nodes run “cart”`.
fn running(rollout: &Rollout, bundle: &str, moved: Moved) -> String {
    let all = count(rollout.nodes, "node");
    let verb = pick(moved.ready, "runs", pick(rollout.nodes, "runs", "run"));
    format!("{} of {all} {verb} “{bundle}”", number(moved.ready))
}

/// Sentence on a completed rollout. Nodes that a batch may miss follow their orders later, which is not
/// counted: the numbers are those of its end, and so is the tense.
fn completed(bundle: &str, moved: Moved) -> String {
    let Moved { ordered, ready, .. } = moved;
    let missing = moved.unreported();
    match (ordered, missing) {
        (_, 1..) => format!(
            "When it completed, {} of {} ran “{bundle}”; {} {} away.",
            number(ready),
            count(ordered, "node"),
            number(missing),
            pick(missing, "was", "were")
        ),
        (1, _) => format!("The node runs “{bundle}”."),
        (..=0, _) => "Completed: none of its nodes is left.".to_owned(),
        _ => format!("All {} run “{bundle}”.", count(ordered, "node")),
    }
}

/// Numbers of the rollout's nodes: by their last reports, or those at the end of each batch once the
/// rollout has ended, because later rollouts move the nodes on.
pub(crate) fn moved(progress: &RolloutProgress, reach: RolloutReach) -> Moved {
    if progress.rollout.state.is_final() {
        let batches = progress.batches.iter();
        return Moved {
            ordered: batches.clone().filter_map(|batch| batch.nodes).sum(),
            ready: batches.filter_map(|batch| batch.ready).sum(),
            silent: 0,
        };
    }
    let RolloutReach {
        ordered,
        ready,
        silent,
    } = reach;
    Moved {
        ordered,
        ready,
        silent,
    }
}

/// Phrase such as ` at batch 3 of 6`; empty before the first batch.
pub(crate) fn place(rollout: &Rollout) -> String {
    let batches = rollout.batches();
    match &rollout.batch {
        Some(batch) if 1 < batches => format!(" at batch {} of {batches}", batch.number),
        Some(_) | None => String::new(),
    }
}

/// Short form of the reason, as the end of a sentence.
fn reason(rollout: &Rollout) -> String {
    let reason = rollout.reason.as_deref().unwrap_or_default();
    // Other reasons are shown unchanged.
    let text = short_reason(reason).unwrap_or(reason);
    format!("{}.", text.trim_end_matches('.'))
}

/// The complete reason as a sentence; `None` without one, or if it only states an operator's
/// action.
pub(crate) fn full_reason(rollout: &Rollout) -> Option<String> {
    let reason = rollout.reason.as_deref()?;
    (!MANUAL_REASONS.contains(&reason)).then(|| sentence(&in_one_line(reason)))
}

/// Returns true if an operator ended the open batch `number`, and not the gate.
pub(crate) fn is_batch_ended_by_hand(rollout: &Rollout, number: i64) -> bool {
    let reason = rollout.reason.as_deref().unwrap_or_default();
    let is_newest = rollout
        .batch
        .as_ref()
        .is_some_and(|batch| batch.number == number);
    is_newest && rollout.is_stopped_by_hand() && !reason.contains("; stopped before: ")
}

/// State of a batch as an icon and a word; `None` is a batch that was not opened.
pub(crate) fn batch_status(rollout: &Rollout, number: i64, state: Option<BatchState>) -> Status {
    match state {
        Some(BatchState::Failed) if is_batch_ended_by_hand(rollout, number) => {
            Status::new(Tone::Off, "off", "Cancelled")
        }
        None if rollout.state.is_final() => Status::new(Tone::Off, "off", "Not reached"),
        None => Status::new(Tone::Off, "wait", "Waits"),
        Some(BatchState::Open) => Status::new(Tone::Busy, "busy", "Switching"),
        Some(BatchState::Switched) => Status::new(Tone::Busy, "busy", "Observed"),
        Some(BatchState::Passed) => Status::new(Tone::Ok, "ok", "Passed"),
        Some(BatchState::Failed) => Status::new(Tone::Bad, "bad", "Did not pass"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use control_domain::{
        Batch, BatchSize, Gate, OnFailure, RolloutState as State, RouteNames, Strategy, Tenant,
    };
    use control_wire::{BundleId, OrgId, ProjectId, RolloutId};
    use jiff::Timestamp;
    use uuid::Uuid;

    /// A rollout of 64 nodes in 6 batches, in its third one.
    pub(crate) fn rollout(state: State, reason: Option<&str>) -> Rollout {
        let at = Timestamp::UNIX_EPOCH;
        Rollout {
            id: RolloutId(Uuid::nil()),
            tenant: Tenant::project(OrgId(Uuid::nil()), ProjectId(Uuid::nil())),
            bundle: BundleId(Uuid::nil()),
            state,
            strategy: Strategy {
                batch: BatchSize::Count(11),
                max_unavailable: 0,
                deadline_secs: 600,
                soak_secs: 60,
                gate: Some(Gate::DEFAULT),
                needs_approval: false,
                on_failure: OnFailure::Pause,
            },
            condition: None,
            route_names: RouteNames::default(),
            labels: std::collections::BTreeMap::new(),
            nodes: 64,
            batch_size: 11,
            batch: (state != State::Planned && state != State::AwaitingApproval).then_some(Batch {
                number: 3,
                state: BatchState::Failed,
                opened_at: at,
                switched_at: None,
                ended_at: None,
            }),
            reason: reason.map(str::to_owned),
            not_before: None,
            created_by: Uuid::nil(),
            submitted_by: None,
            submitted_person: None,
            created_at: at,
            started_at: None,
            reverting_since: None,
            ended_at: None,
        }
    }

    #[test]
    fn a_rollout_is_summed_up_in_one_sentence() {
        let errors = "route shop: 31 of 1000 among 1000 requests of the batch, 2 of 1000 among 3000 on the \
                      others end with 5xx; up to 12 of 1000 pass";
        for (state, reason, expected) in [
            (
                State::Planned,
                None,
                "64 nodes in 6 batches wait for the start.",
            ),
            (
                State::AwaitingApproval,
                None,
                "Another person must approve before 64 nodes can get “cart”.",
            ),
            (
                State::Running,
                None,
                "22 of 64 nodes run “cart” at batch 3 of 6.",
            ),
            (
                State::Paused,
                Some(errors),
                "Stopped at batch 3 of 6: too many requests fail.",
            ),
            (
                State::Paused,
                Some("paused by hand"),
                "Paused by hand at batch 3 of 6.",
            ),
            (
                State::Paused,
                Some("`sum(failed)` is 0.9; up to 0.5 pass"),
                "Stopped at batch 3 of 6: `sum(failed)` is 0.9; up to 0.5 pass.",
            ),
            (
                State::Paused,
                Some("2 of 11 nodes did not switch in time"),
                "Stopped at batch 3 of 6: its batch did not pass in time.",
            ),
            (State::Completed, None, "All 64 nodes run “cart”."),
            (
                State::RolledBack,
                Some("node a rejected the bundle: no such file"),
                "Rolled back at batch 3 of 6: a node rejected the bundle.",
            ),
            (
                State::Cancelled,
                Some("cancelled by hand"),
                "Cancelled at batch 3 of 6: 22 of 64 nodes run “cart”.",
            ),
        ] {
            let moved = Moved {
                ordered: if state == State::Completed { 64 } else { 33 },
                ready: if state == State::Completed { 64 } else { 22 },
                silent: 0,
            };
            assert_eq!(heading(&rollout(state, reason), "cart", moved), expected);
        }
    }

    #[test]
    fn a_completed_rollout_claims_no_node_that_has_not_followed() {
        let completed = rollout(State::Completed, None);
        for (ordered, ready, expected) in [
            (64, 64, "All 64 nodes run “cart”."),
            (
                64,
                61,
                "When it completed, 61 of 64 nodes ran “cart”; 3 were away.",
            ),
            (
                64,
                63,
                "When it completed, 63 of 64 nodes ran “cart”; 1 was away.",
            ),
            // One of the 64 nodes was deleted.
            (63, 63, "All 63 nodes run “cart”."),
            (1, 1, "The node runs “cart”."),
            (0, 0, "Completed: none of its nodes is left."),
        ] {
            let moved = Moved {
                ordered,
                ready,
                silent: 0,
            };
            assert_eq!(heading(&completed, "cart", moved), expected);
        }
    }

    #[test]
    fn the_heading_names_the_gates_reason_and_not_a_word_of_a_name() {
        let slow = "route takeaway: a request takes 9.1 ms in the mean, 3.0 ms on the others; up to 5.0 ms pass";
        let failing = "route takeaway: 31 of 1000 among 900 requests of the batch, 2 of 1000 among 3000 on the \
                       others end with 5xx; up to 12 of 1000 pass";
        let refused = "node fra-1 rejected the bundle: routes take CPU: no upstream";
        for (reason, expected) in [
            (slow, "Stopped at batch 3 of 6: requests take too long."),
            (failing, "Stopped at batch 3 of 6: too many requests fail."),
            (
                refused,
                "Stopped at batch 3 of 6: a node rejected the bundle.",
            ),
            (
                "31 of 1000 among 900 requests of the batch, 2 of 1000 among 3000 on the others fail with the reason \
                 connect_refused; up to 2.5 of 1000 pass",
                "Stopped at batch 3 of 6: requests fail for a new reason.",
            ),
        ] {
            let stopped = rollout(State::Paused, Some(reason));
            assert_eq!(heading(&stopped, "cart", Moved::default()), expected);
        }
    }

    #[test]
    fn only_a_reason_with_further_facts_is_shown_in_full() {
        let by_hand = rollout(State::Paused, Some("paused by hand"));
        assert_eq!(full_reason(&by_hand), None);
        let gate = rollout(
            State::Paused,
            Some("a node uses 90 % CPU, 30 % on the others"),
        );
        let message = "A node uses 90 % CPU, 30 % on the others.";
        assert_eq!(full_reason(&gate).as_deref(), Some(message));
    }
}
