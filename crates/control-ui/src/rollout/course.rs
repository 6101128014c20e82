//! History of a rollout, newest step first.

use crate::rollout::words::is_batch_ended_by_hand;
use crate::view::component::{AbsoluteTime, Icon, icon, moment};
use crate::view::diagnostic::in_one_line;
use crate::view::phrase::{count, short};
use control_app::{CommandRecord, RolloutProgress, StopRecord, StoredBatch};
use control_domain::{BatchState, Rollout, RolloutState};
use jiff::Timestamp;

/// Maximum number of steps shown.
const MAX_STEPS: usize = 60;

/// An event of the list.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: AbsoluteTime,
    pub(crate) icon: Icon,
    pub(crate) text: String,
}

/// An event before rendering: time, icon and text.
type Event = (Timestamp, &'static str, String);

/// The history, newest step first.
pub(crate) fn steps(progress: &RolloutProgress, now: Timestamp) -> Vec<Step> {
    let RolloutProgress {
        rollout,
        commands,
        stops,
        ..
    } = progress;
    let of_batches = progress.batches.iter();
    let of_batches = of_batches.flat_map(|stored| batch_events(rollout, stored));
    let mut found: Vec<Event> = Vec::new();
    found.extend(beginning(rollout, commands));
    found.extend(events_of(
        commands,
        &["submit", "start", "approve", "pause", "resume"],
    ));
    found.extend(of_batches);
    found.extend(stops.iter().map(stop));
    found.extend(events_of(commands, &["roll_back", "cancel"]));
    found.extend(end(progress));
    // A stable sort: simultaneous events keep their order.
    found.sort_by_key(|(at, ..)| *at);
    let newest = found.into_iter().rev().take(MAX_STEPS);
    let steps = newest.map(|(at, sign, text)| Step {
        at: moment(at, now),
        icon: icon(sign),
        text,
    });
    steps.collect()
}

/// The plan, and the start unless a recorded command is the start.
fn beginning(rollout: &Rollout, commands: &[CommandRecord]) -> Vec<Event> {
    let created = commands.iter().find(|command| command.event == "created");
    let planned = format!(
        "Planned for {} in {}{}",
        count(rollout.nodes, "node"),
        count(rollout.batches(), "batch"),
        created.map_or_else(String::new, by)
    );
    let mut found = vec![(rollout.created_at, "rollout", planned)];
    if !is_on_record(commands, &["start", "approve"]) {
        let started = rollout.started_at;
        found.extend(started.map(|at| (at, "rollout", "Started".to_owned())));
    }
    found
}

fn batch_events(rollout: &Rollout, stored: &StoredBatch) -> Vec<Event> {
    let batch = &stored.batch;
    let number = batch.number;
    let ordered = format!("Batch {number} started");
    let mut found = vec![(batch.opened_at, "busy", ordered)];
    if let Some(at) = batch.switched_at {
        found.push((at, "busy", format!("Batch {number} runs the bundle")));
    }
    if let Some(at) = batch.ended_at {
        let (sign, end) = match batch.state {
            BatchState::Passed => ("ok", "passed"),
            BatchState::Failed if is_batch_ended_by_hand(rollout, number) => {
                ("off", "was ended by hand")
            }
            BatchState::Open | BatchState::Switched | BatchState::Failed => ("bad", "did not pass"),
        };
        found.push((at, sign, format!("Batch {number} {end}")));
    }
    found
}

/// An automatic stop, with its reason if that is on record.
fn stop(record: &StopRecord) -> Event {
    let StopRecord { event, at, reason } = record;
    let (sign, what) = match event.as_str() {
        "pause" => ("pause", "Stopped automatically"),
        _ => ("back", "Rollback begun automatically"),
    };
    let text = match reason.as_str() {
        "" => what.to_owned(),
        reason => format!("{what}: {}", in_one_line(reason)),
    };
    (*at, sign, text)
}

/// The rollback and the end, unless they are on record.
fn end(progress: &RolloutProgress) -> Vec<Event> {
    let RolloutProgress {
        rollout,
        commands,
        stops,
        ..
    } = progress;
    let mut found = Vec::new();
    let is_automatic = stops.iter().any(|stop| stop.event == "roll_back");
    if !is_automatic && !is_on_record(commands, &["roll_back"]) {
        let back = rollout.reverting_since;
        found.extend(back.map(|at| (at, "back", "The rollback began".to_owned())));
    }
    let Some(at) = rollout.ended_at else {
        return found;
    };
    let (sign, text) = match rollout.state {
        RolloutState::Completed => ("ok", "Completed"),
        RolloutState::RolledBack if rollout.is_stopped_by_hand() => {
            ("back", "Rolled back, by hand")
        }
        RolloutState::RolledBack => ("back", "Rolled back"),
        RolloutState::Planned
        | RolloutState::AwaitingApproval
        | RolloutState::Running
        | RolloutState::Paused
        | RolloutState::Failed
        | RolloutState::RollingBack
        | RolloutState::Cancelled => {
            if is_on_record(commands, &["cancel"]) {
                return found;
            }
            ("off", "Cancelled by hand")
        }
    };
    found.push((at, sign, text.to_owned()));
    found
}

fn is_on_record(commands: &[CommandRecord], events: &[&str]) -> bool {
    let mut found = commands.iter();
    found.any(|command| events.contains(&command.event.as_str()))
}

/// Recorded commands of these kinds, each with its actor.
fn events_of(commands: &[CommandRecord], events: &[&str]) -> Vec<Event> {
    let chosen = commands
        .iter()
        .filter(|command| events.contains(&command.event.as_str()));
    let drawn = chosen.map(|command| {
        let (sign, words) = match command.event.as_str() {
            "submit" => ("wait", "Approval requested"),
            "start" => ("rollout", "Started"),
            "approve" => ("rollout", "Approved and started"),
            "pause" => ("pause", "Paused"),
            "resume" => ("rollout", "Resumed"),
            "roll_back" => ("back", "Rollback begun"),
            _ => ("off", "Cancelled"),
        };
        (command.at, sign, format!("{words}{}", by(command)))
    });
    drawn.collect()
}

/// Name of the command's actor.
fn by(command: &CommandRecord) -> String {
    let CommandRecord {
        actor_kind,
        actor,
        actor_name,
        ..
    } = command;
    let name = match actor_name.as_str() {
        "" => format!("…{}", short(*actor)),
        name => name.to_owned(),
    };
    match actor_kind.as_str() {
        "api_key" => format!(" by the API key {name}"),
        _ => format!(" by {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::words::tests::rollout;
    use control_domain::Batch;
    use uuid::Uuid;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn progress(commands: Vec<CommandRecord>) -> RolloutProgress {
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
        RolloutProgress {
            rollout: one,
            batches: vec![batch],
            counts: None,
            figures: None,
            held_until: None,
            waits_for: None,
            commands,
            stops: Vec::new(),
        }
    }

    fn texts(progress: &RolloutProgress) -> Vec<String> {
        let steps = steps(progress, at(7)).into_iter();
        steps.map(|step| step.text).collect()
    }

    fn command(event: &str, second: i64, actor_kind: &str, name: &str) -> CommandRecord {
        CommandRecord {
            event: event.to_owned(),
            at: at(second),
            actor_kind: actor_kind.to_owned(),
            actor: Uuid::from_u128(0x1234_5678),
            actor_name: name.to_owned(),
        }
    }

    #[test]
    fn the_course_begins_with_the_newest() {
        let expected = [
            "Rolled back, by hand",
            "The rollback began",
            "Batch 1 did not pass",
            "Batch 1 runs the bundle",
            "Batch 1 started",
            "Started",
            "Planned for 64 nodes in 6 batches",
        ];
        assert_eq!(texts(&progress(Vec::new())), expected);
    }

    #[test]
    fn each_command_names_its_person_or_key() {
        let commands = vec![
            command("created", 0, "api_key", "ci, a key of Ada"),
            command("submit", 0, "user", "Ada"),
            command("approve", 1, "user", "Grace"),
            command("pause", 3, "user", ""),
            command("resume", 4, "user", "Grace"),
            command("roll_back", 5, "user", "Grace"),
        ];
        let expected = [
            "Rolled back, by hand",
            "Rollback begun by Grace",
            "Batch 1 did not pass",
            "Resumed by Grace",
            "Batch 1 runs the bundle",
            "Paused by …345678",
            "Batch 1 started",
            "Approved and started by Grace",
            "Approval requested by Ada",
            "Planned for 64 nodes in 6 batches by the API key ci, a key of Ada",
        ];
        assert_eq!(texts(&progress(commands)), expected);
        let mut cancelled = progress(vec![command("cancel", 6, "user", "Ada")]);
        cancelled.rollout.state = RolloutState::Cancelled;
        assert_eq!(texts(&cancelled)[0], "Cancelled by Ada");
        cancelled.commands.clear();
        assert_eq!(texts(&cancelled)[0], "Cancelled by hand");
    }

    #[test]
    fn a_batch_that_a_person_ended_did_not_fail() {
        let mut ended = progress(Vec::new());
        ended.batches[0].batch.number = 3;
        assert!(texts(&ended).contains(&"Batch 3 was ended by hand".to_owned()));
        let reason = "rolled back by hand; stopped before: 2 of 11 nodes did not switch in time";
        ended.rollout.reason = Some(reason.to_owned());
        assert!(texts(&ended).contains(&"Batch 3 did not pass".to_owned()));
    }

    #[test]
    fn an_automatic_stop_stays_in_the_history_with_its_reason() {
        let mut tried_again = progress(vec![
            command("start", 1, "user", "Ada"),
            command("resume", 4, "user", "Grace"),
            command("roll_back", 5, "user", "Grace"),
        ]);
        tried_again.stops = vec![StopRecord {
            event: "pause".to_owned(),
            at: at(3),
            reason: "2 of 11 nodes did not switch in time".to_owned(),
        }];
        let found = texts(&tried_again);
        let stopped = "Stopped automatically: 2 of 11 nodes did not switch in time";
        assert!(found.iter().any(|text| text == stopped), "{found:?}");
        let mut automatic = progress(Vec::new());
        automatic.stops = vec![StopRecord {
            event: "roll_back".to_owned(),
            at: at(5),
            reason: String::new(),
        }];
        let found = texts(&automatic);
        assert!(
            found
                .iter()
                .any(|text| text == "Rollback begun automatically")
        );
        let twice = found.iter().any(|text| text == "The rollback began");
        assert!(!twice, "{found:?}");
    }
}
