//! List of a project's rollouts.

use crate::frame::show;
use crate::frame::{Frame, NavEntry, foot};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::rollout::words::status;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, more, when};
use crate::view::phrase::{ago, count, few, number, pick, sentence};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::{Access, Rollout, RolloutState};
use control_wire::{BundleId, ProjectId, RolloutId};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Number of rollouts per page.
const PAGE_ROWS: usize = 50;

#[derive(Template)]
#[template(path = "rollouts.html")]
struct RolloutsPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    may_roll_out: bool,
    foot: Option<String>,
}

struct Row {
    id: RolloutId,
    bundle: String,
    status: Status,
    batch: String,
    nodes: String,
    made: RelativeTime,
    is_open: bool,
}

/// Shows the rollouts, unfinished ones first, then the newest.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let frame =
        Frame::project(&ui, &caller, project, NavEntry::Rollouts.titled("Rollouts")).await?;
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let before = caller.visit.query.get("before").parse::<RolloutId>().ok();
    let limit = i64::try_from(PAGE_ROWS).unwrap_or(i64::MAX) + 1;
    let mut found = app.newest_rollouts(call, project, before, limit).await?;
    let has_more = PAGE_ROWS < found.len();
    found.truncate(PAGE_ROWS);
    let last = found.last().filter(|_| has_more).map(|last| last.value.id);
    let rollouts: Vec<Rollout> = found.into_iter().map(|found| found.value).collect();
    let wanted: BTreeSet<BundleId> = rollouts.iter().map(|rollout| rollout.bundle).collect();
    let names = app.bundle_names(call, project, &wanted).await?;
    let mut rows: Vec<Row> = rollouts
        .iter()
        .map(|rollout| {
            let name = names.get(&rollout.bundle).cloned();
            row(rollout, name.unwrap_or_else(|| "unknown".to_owned()), now)
        })
        .collect();
    rows.sort_by_key(|row| !row.is_open);
    let tenant = app.project(call, project).await?.value.tenant();
    Ok(show(&RolloutsPage {
        frame: frame.live("/events"),
        project,
        heading: heading(&rollouts, now),
        rows,
        more: more(
            last.map(|last| format!("?before={last}")),
            "Show older rollouts",
        ),
        may_roll_out: caller.may(Access::WRITE_ROLLOUTS, tenant),
        foot: foot(&caller, Access::WRITE_ROLLOUTS, tenant, "start rollouts"),
    }))
}

fn row(rollout: &Rollout, bundle: String, now: Timestamp) -> Row {
    let batch = rollout.batch.as_ref().map(|batch| batch.number);
    Row {
        id: rollout.id,
        bundle,
        status: status(rollout),
        batch: batch.map_or_else(String::new, |batch| {
            format!("{batch} of {}", rollout.batches())
        }),
        nodes: number(rollout.nodes),
        made: when(rollout.created_at, now),
        is_open: !rollout.state.is_final(),
    }
}

/// Heading for `rollouts`, sorted newest first.
fn heading(rollouts: &[Rollout], now: Timestamp) -> String {
    let in_state = |states: &[RolloutState]| {
        let found = rollouts.iter().filter(|one| states.contains(&one.state));
        i64::try_from(found.count()).unwrap_or(i64::MAX)
    };
    let stopped = in_state(&[RolloutState::Paused, RolloutState::AwaitingApproval]);
    let moving = in_state(&[
        RolloutState::Running,
        RolloutState::Failed,
        RolloutState::RollingBack,
    ]);
    if 0 < stopped {
        let what = count(stopped, "rollout").replacen(&stopped.to_string(), &few(stopped), 1);
        return sentence(&format!(
            "{what} {} for a person",
            pick(stopped, "waits", "wait")
        ));
    }
    if 0 < moving {
        let what = count(moving, "rollout").replacen(&moving.to_string(), &few(moving), 1);
        return sentence(&format!("{what} {} under way", pick(moving, "is", "are")));
    }
    let ended = rollouts
        .iter()
        .filter_map(|one| Some((one.ended_at?, one.state)));
    match ended.max_by_key(|(at, _)| *at) {
        None if rollouts.is_empty() => "There has been no rollout yet.".to_owned(),
        None => "No rollout is under way.".to_owned(),
        Some((at, state)) => {
            let end = match state {
                RolloutState::Completed => "completed",
                RolloutState::RolledBack => "was rolled back",
                RolloutState::Planned
                | RolloutState::AwaitingApproval
                | RolloutState::Running
                | RolloutState::Paused
                | RolloutState::Failed
                | RolloutState::RollingBack
                | RolloutState::Cancelled => "was cancelled",
            };
            format!(
                "No rollout is under way; the last one {end} {}.",
                ago(at, now)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::words::tests::rollout;

    #[test]
    fn the_heading_names_what_waits_then_what_moves_then_the_last_end() {
        let now = Timestamp::from_second(7_200).unwrap();
        let done = Rollout {
            ended_at: Some(Timestamp::UNIX_EPOCH),
            ..rollout(RolloutState::Completed, None)
        };
        let running = rollout(RolloutState::Running, None);
        let paused = rollout(RolloutState::Paused, None);
        for (rollouts, expected) in [
            (vec![], "There has been no rollout yet."),
            (
                vec![done.clone()],
                "No rollout is under way; the last one completed 2 hours ago.",
            ),
            (
                vec![running.clone(), done.clone()],
                "One rollout is under way.",
            ),
            (
                vec![running, paused.clone(), paused],
                "Two rollouts wait for a person.",
            ),
        ] {
            assert_eq!(heading(&rollouts, now), expected);
        }
    }
}
