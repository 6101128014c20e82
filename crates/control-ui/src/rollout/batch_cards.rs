//! Cards of a rollout's batches, the picture of its progress.

use crate::rollout::words::batch_status;
use crate::view::component::Status;
use crate::view::phrase::{count, duration, number};
use control_app::{RolloutProgress, StoredBatch};
use control_domain::BatchState;
use jiff::Timestamp;

/// Number of batches shown around the current one.
const MAX_BATCHES_SHOWN: i64 = 12;

/// A batch with its state, and one line on its nodes.
#[derive(Debug)]
pub(super) struct BatchCard {
    pub(super) number: i64,
    pub(super) class: &'static str,
    pub(super) status: Status,
    pub(super) note: String,
}

/// Batches around the current one, and a sentence on the rest.
pub(super) fn track(progress: &RolloutProgress, now: Timestamp) -> (Vec<BatchCard>, String) {
    let rollout = &progress.rollout;
    let all = rollout.batches();
    let current = rollout.batch.as_ref().map_or(1, |batch| batch.number);
    let first = (current - MAX_BATCHES_SHOWN / 2)
        .min(all - MAX_BATCHES_SHOWN + 1)
        .max(1);
    let last = (first + MAX_BATCHES_SHOWN - 1).min(all);
    let cards = (first..=last).map(|number| card(progress, number, now));
    let hidden = all - (last - first + 1);
    let hidden = match hidden {
        0 => String::new(),
        _ => format!("Batches {first} to {last} of {all} are drawn."),
    };
    (cards.collect(), hidden)
}

fn card(progress: &RolloutProgress, number: i64, now: Timestamp) -> BatchCard {
    let rollout = &progress.rollout;
    let stored = progress
        .batches
        .iter()
        .find(|one| one.batch.number == number);
    let size = rollout.batch_size;
    let planned = size.min(rollout.nodes - (number - 1) * size).max(0);
    let state = stored.map(|stored| stored.batch.state);
    let status = batch_status(rollout, number, state);
    let note = match stored {
        None => count(planned, "node"),
        Some(stored) => note(stored, progress, planned, now),
    };
    BatchCard {
        number,
        class: if state.is_some() {
            status.tone.class()
        } else {
            ""
        },
        status,
        note,
    }
}

fn note(stored: &StoredBatch, progress: &RolloutProgress, planned: i64, now: Timestamp) -> String {
    let batch = &stored.batch;
    let end = batch.ended_at.unwrap_or(now);
    let seconds = end.as_second() - batch.opened_at.as_second();
    match (batch.state, progress.counts) {
        (BatchState::Passed, _) => format!(
            "{} in {}",
            count(stored.nodes.unwrap_or(planned), "node"),
            duration(seconds)
        ),
        (BatchState::Failed, _) => format!(
            "{} of {} switched",
            number(stored.ready.unwrap_or_default()),
            count(stored.nodes.unwrap_or(planned), "node")
        ),
        (BatchState::Open | BatchState::Switched, Some(counts)) => format!(
            "{} of {} for {}; at most {}",
            number(counts.ready),
            count(counts.nodes, "node"),
            duration(seconds),
            duration(progress.rollout.strategy.deadline_secs)
        ),
        (BatchState::Open | BatchState::Switched, None) => count(planned, "node"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::words::tests::rollout;
    use control_domain::RolloutState;

    fn progress(nodes: i64, batch_size: i64, current: Option<i64>) -> RolloutProgress {
        let mut rollout = rollout(RolloutState::Running, None);
        (rollout.nodes, rollout.batch_size) = (nodes, batch_size);
        if let (Some(batch), Some(number)) = (&mut rollout.batch, current) {
            batch.number = number;
        }
        RolloutProgress {
            rollout,
            batches: Vec::new(),
            counts: None,
            figures: None,
            held_until: None,
            waits_for: None,
            commands: Vec::new(),
            stops: Vec::new(),
        }
    }

    #[test]
    fn the_last_batch_has_the_rest_of_the_nodes() {
        let (cards, hidden) = track(&progress(64, 11, Some(3)), Timestamp::UNIX_EPOCH);
        assert_eq!(cards.len(), 6);
        assert_eq!(cards[5].note, "9 nodes");
        assert_eq!(hidden, "");
    }

    #[test]
    fn of_many_batches_those_around_the_current_one_are_drawn() {
        let numbers = |current| {
            let (cards, hidden) = track(&progress(500, 1, Some(current)), Timestamp::UNIX_EPOCH);
            (cards[0].number, cards[cards.len() - 1].number, hidden)
        };
        assert_eq!(
            numbers(1),
            (1, 12, "Batches 1 to 12 of 500 are drawn.".to_owned())
        );
        assert_eq!(numbers(250).0, 244);
        assert_eq!(numbers(500).1, 500);
    }
}
