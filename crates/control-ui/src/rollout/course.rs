//! History of a rollout, newest first.

use crate::rollout::words::is_by_hand;
use crate::view::component::{AbsoluteTime, Icon, icon, moment};
use crate::view::phrase::count;
use control_app::StoredBatch;
use control_domain::{BatchState, Rollout, RolloutState};
use jiff::Timestamp;

/// Steps that a page shows.
const MAX_STEPS: usize = 60;

/// An event of the list.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: AbsoluteTime,
    pub(crate) icon: Icon,
    pub(crate) text: String,
}

/// The course, newest first.
pub(crate) fn steps(rollout: &Rollout, batches: &[StoredBatch], now: Timestamp) -> Vec<Step> {
    let mut found: Vec<(Timestamp, &'static str, String)> = Vec::new();
    let planned = format!(
        "Planned for {} in {}",
        count(rollout.nodes, "node"),
        count(rollout.batches(), "batch")
    );
    found.push((rollout.created_at, "rollout", planned));
    let started = rollout
        .started_at
        .map(|at| (at, "rollout", "Started".to_owned()));
    found.extend(started);
    for stored in batches {
        let batch = &stored.batch;
        let number = batch.number;
        found.push((
            batch.opened_at,
            "busy",
            format!("Batch {number} was ordered"),
        ));
        if let Some(at) = batch.switched_at {
            found.push((at, "busy", format!("Batch {number} runs the bundle")));
        }
        if let Some(at) = batch.ended_at {
            let (sign, end) = match batch.state {
                BatchState::Passed => ("ok", "passed"),
                BatchState::Open | BatchState::Switched | BatchState::Failed => {
                    ("bad", "did not pass")
                }
            };
            found.push((at, sign, format!("Batch {number} {end}")));
        }
    }
    let back = rollout.reverting_since;
    found.extend(back.map(|at| (at, "back", "The rollback began".to_owned())));
    if let Some(at) = rollout.ended_at {
        let (sign, text) = match rollout.state {
            RolloutState::Completed => ("ok", "Completed"),
            RolloutState::RolledBack if is_by_hand(rollout) => ("back", "Rolled back, by hand"),
            RolloutState::RolledBack => ("back", "Rolled back"),
            RolloutState::Planned
            | RolloutState::AwaitingApproval
            | RolloutState::Running
            | RolloutState::Paused
            | RolloutState::Failed
            | RolloutState::RollingBack
            | RolloutState::Cancelled => ("off", "Cancelled by hand"),
        };
        found.push((at, sign, text.to_owned()));
    }
    // Things of one moment keep their order.
    found.sort_by_key(|(at, ..)| *at);
    let newest = found.into_iter().rev().take(MAX_STEPS);
    let steps = newest.map(|(at, sign, text)| Step {
        at: moment(at, now),
        icon: icon(sign),
        text,
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::words::tests::rollout;
    use control_domain::Batch;

    #[test]
    fn the_course_begins_with_the_newest() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut one = rollout(RolloutState::RolledBack, Some("rolled back by hand"));
        one.started_at = Some(at(1));
        one.reverting_since = Some(at(5));
        one.ended_at = Some(at(6));
        let batch = StoredBatch {
            batch: Batch {
                number: 1,
                state: BatchState::Failed,
                opened_at: at(2),
                switched_at: Some(at(3)),
                ended_at: Some(at(4)),
            },
            nodes: None,
            ready: None,
            figures: None,
        };
        let texts: Vec<String> = steps(&one, &[batch], at(7))
            .into_iter()
            .map(|step| step.text)
            .collect();
        assert_eq!(
            texts,
            [
                "Rolled back, by hand",
                "The rollback began",
                "Batch 1 did not pass",
                "Batch 1 runs the bundle",
                "Batch 1 was ordered",
                "Started",
                "Planned for 64 nodes in 6 batches",
            ]
        );
    }
}
