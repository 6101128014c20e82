//! Wording of a rollout: a sentence, and its state as an icon and a word.

use crate::view::component::{Status, Tone};
use crate::view::diagnostic::in_one_line;
use crate::view::phrase::{count, number, pick, sentence};
use control_app::RolloutProgress;
use control_domain::{BatchState, Rollout, RolloutState};

/// Reasons of rollouts that an operator paused, cancelled or rolled back.
const MANUAL_REASONS: &[&str] = &["paused by hand", "cancelled by hand", "rolled back by hand"];

/// State as an icon and a word.
pub(crate) fn status(rollout: &Rollout) -> Status {
    let (tone, icon, word) = match rollout.state {
        RolloutState::Planned => (Tone::Off, "wait", "Planned"),
        RolloutState::AwaitingApproval => (Tone::Warn, "wait", "Waits for approval"),
        RolloutState::Running => (Tone::Busy, "busy", "Under way"),
        RolloutState::Paused if is_by_hand(rollout) => (Tone::Warn, "pause", "Paused by hand"),
        RolloutState::Paused => (Tone::Bad, "pause", "Stopped"),
        RolloutState::Completed => (Tone::Ok, "ok", "Completed"),
        RolloutState::Failed | RolloutState::RollingBack => (Tone::Bad, "back", "Rolling back"),
        RolloutState::RolledBack => (Tone::Warn, "back", "Rolled back"),
        RolloutState::Cancelled => (Tone::Off, "off", "Cancelled"),
    };
    Status::new(tone, icon, word)
}

/// Sentence on the rollout; `moved` is the number of nodes that run its bundle.
pub(crate) fn heading(rollout: &Rollout, bundle: &str, moved: i64) -> String {
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
        RolloutState::Paused if is_by_hand(rollout) => format!("Paused by hand{at}."),
        RolloutState::Paused => format!("Stopped{at}: {}", reason(rollout)),
        RolloutState::Completed => match nodes {
            1 => format!("The node runs “{bundle}”."),
            _ => format!("All {all} run “{bundle}”."),
        },
        RolloutState::Failed | RolloutState::RollingBack => {
            format!("Rolling back{at}: nodes return to what they ran before.")
        }
        RolloutState::RolledBack if is_by_hand(rollout) => format!("Rolled back by hand{at}."),
        RolloutState::RolledBack => format!("Rolled back{at}: {}", reason(rollout)),
        RolloutState::Cancelled => {
            format!("Ended by hand{at}: {}.", running(rollout, bundle, moved))
        }
    }
}

/// Phrase such as `22 of 64 nodes run “cart”`.
fn running(rollout: &Rollout, bundle: &str, moved: i64) -> String {
    let all = count(rollout.nodes, "node");
    let verb = pick(moved, "runs", pick(rollout.nodes, "runs", "run"));
    format!("{} of {all} {verb} “{bundle}”", number(moved))
}

/// Number of nodes that run the bundle by this rollout; an ended batch counts as at its end.
pub(crate) fn moved(progress: &RolloutProgress) -> i64 {
    let ended = progress.batches.iter().filter_map(|batch| batch.ready);
    let now = progress.counts.map_or(0, |counts| counts.ready);
    ended.sum::<i64>() + now
}

/// Phrase such as ` at batch 3 of 6`; empty before the first batch.
pub(crate) fn place(rollout: &Rollout) -> String {
    let batches = rollout.batches();
    match &rollout.batch {
        Some(batch) if 1 < batches => format!(" at batch {} of {batches}", batch.number),
        Some(_) | None => String::new(),
    }
}

/// Returns true if an operator, and not the gate, ended or paused the rollout.
pub(crate) fn is_by_hand(rollout: &Rollout) -> bool {
    let reason = rollout.reason.as_deref().unwrap_or_default();
    MANUAL_REASONS
        .iter()
        .any(|by_hand| reason.starts_with(by_hand))
}

/// Short form of the reason, as the end of a sentence.
fn reason(rollout: &Rollout) -> String {
    let reason = rollout.reason.as_deref().unwrap_or_default();
    let short = [
        ("end with 5xx", "too many requests fail"),
        ("failures with the reason", "requests fail for a new reason"),
        ("take", "requests take too long"),
        ("CPU", "nodes use too much CPU"),
        ("rejected the bundle", "a node refused the bundle"),
        ("was revoked", "its bundle was revoked"),
        ("the gate needs", "too few requests to judge by"),
        (
            "do not say what they serve",
            "nodes do not say what they serve",
        ),
        ("did not switch in time", "its batch did not pass in time"),
    ];
    let found = short.iter().find(|(part, _)| reason.contains(part));
    // Other reasons are shown unchanged.
    let text = found.map_or(reason, |(_, text)| text);
    format!("{}.", text.trim_end_matches('.'))
}

/// The complete reason as a sentence; `None` without one, or if it only states an operator's
/// action.
pub(crate) fn full_reason(rollout: &Rollout) -> Option<String> {
    let reason = rollout.reason.as_deref()?;
    (!MANUAL_REASONS.contains(&reason)).then(|| sentence(&in_one_line(reason)))
}

/// State of a batch as an icon and a word; `None` is a batch that was not opened.
pub(crate) fn batch_status(state: Option<BatchState>) -> Status {
    match state {
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
        let errors = "route shop: 31 of 1000 requests end with 5xx, 2 of 1000 on the others";
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
                "Rolled back at batch 3 of 6: a node refused the bundle.",
            ),
            (
                State::Cancelled,
                Some("cancelled by hand"),
                "Ended by hand at batch 3 of 6: 22 of 64 nodes run “cart”.",
            ),
        ] {
            assert_eq!(heading(&rollout(state, reason), "cart", 22), expected);
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
