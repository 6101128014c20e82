//! Operators' commands on a rollout: buttons, confirmation pages, handlers.

use crate::frame::form::Faults;
use crate::frame::show;
use crate::frame::{Frame, NavEntry};
use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::rollout::bundle_name;
use crate::rollout::words::{Moved, moved};
use crate::ui::Ui;
use crate::view::component::{Icon, icon};
use crate::view::phrase::{count, date_time, number, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::{Actor, ApprovalRule, PolicyRules, Rollout, RolloutCommand, RolloutState};
use control_wire::{ProjectId, RolloutId};
use jiff::Timestamp;
use std::sync::Arc;

/// A button on the page of a rollout.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    /// Last segment of the command's path.
    pub(crate) name: &'static str,
    pub(crate) icon: Option<Icon>,
    pub(crate) label: String,
    /// Style class: `primary`, `danger`, or empty.
    pub(crate) class: &'static str,
    /// Whether the command needs a confirmation page.
    pub(crate) asks: bool,
}

#[derive(Template)]
#[template(path = "rollout_command.html")]
struct ConfirmPage {
    frame: Frame,
    project: ProjectId,
    id: RolloutId,
    csrf: String,
    name: &'static str,
    bundle_name: String,
    heading: String,
    effects: Vec<String>,
    button: String,
    class: &'static str,
}

/// Buttons for the rollout's state.
pub(crate) fn actions(rollout: &Rollout, actor: &Actor, moved: Moved) -> Vec<Action> {
    use RolloutCommand::{Approve, Cancel, Pause, Resume, RollBack, Start};
    let own = rollout.submitted_person.is_some() && rollout.submitted_person == actor.user();
    let commands: &[RolloutCommand] = match rollout.state {
        RolloutState::Planned => &[Start, Cancel],
        RolloutState::AwaitingApproval if own => &[Cancel],
        RolloutState::AwaitingApproval => &[Approve, Cancel],
        RolloutState::Running => &[Pause, RollBack, Cancel],
        RolloutState::Paused => &[RollBack, Resume, Cancel],
        RolloutState::Completed
        | RolloutState::Failed
        | RolloutState::RollingBack
        | RolloutState::RolledBack
        | RolloutState::Cancelled => &[],
    };
    let actions = commands.iter().map(|command| Action {
        name: command.name(),
        icon: (*command == RollBack).then(|| icon("back")),
        label: label(*command, rollout, moved),
        class: match (command, rollout.state) {
            (Start | Approve, _) => "primary",
            (RollBack, RolloutState::Paused) => "danger",
            _ => "",
        },
        asks: matches!(command, RollBack | Cancel),
    });
    actions.collect()
}

fn label(command: RolloutCommand, rollout: &Rollout, moved: Moved) -> String {
    match command {
        RolloutCommand::Start if rollout.strategy.needs_approval => "Ask for approval".to_owned(),
        RolloutCommand::Start => "Start".to_owned(),
        RolloutCommand::Approve => format!("Approve for {}", count(rollout.nodes, "node")),
        RolloutCommand::Pause => "Pause".to_owned(),
        RolloutCommand::Resume => "Try the batch again".to_owned(),
        RolloutCommand::Cancel if rollout.started_at.is_none() => "Cancel it".to_owned(),
        RolloutCommand::Cancel => "Cancel the rest".to_owned(),
        RolloutCommand::RollBack if moved.ordered == 0 => "Roll back".to_owned(),
        RolloutCommand::RollBack => format!("Roll back {}", count(moved.ordered, "node")),
    }
}

/// Confirmation page that lists the effects with numbers.
pub(crate) async fn confirm(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id, name)): Path<(ProjectId, RolloutId, String)>,
) -> Result<Response, Failure> {
    let command = RolloutCommand::from_name(&name).ok_or_else(Failure::not_found)?;
    let progress = ui.app.rollout(&caller.call, project, id).await?.value;
    let rollout = &progress.rollout;
    let bundle = bundle_name(&ui, &caller, rollout).await?;
    let moved = moved(
        &progress,
        ui.app.rollout_reach(&caller.call, project, id).await?,
    );
    let policy = ui.app.project(&caller.call, project).await?.value.policy;
    let effects = match command {
        RolloutCommand::Start | RolloutCommand::Approve | RolloutCommand::Resume => {
            moving_effects(command, rollout, &bundle, &policy.rules, caller.visit.now)
        }
        RolloutCommand::Pause | RolloutCommand::Cancel | RolloutCommand::RollBack => {
            ending_effects(command, rollout, &bundle, moved)
        }
    };
    let title = format!("Rollout of {bundle}");
    let frame = Frame::project(&ui, &caller, project, NavEntry::Rollouts.titled(&title)).await?;
    Ok(show(&ConfirmPage {
        frame,
        project,
        id,
        csrf: caller.visit.csrf.clone(),
        name: command.name(),
        heading: question(command, rollout, &bundle, moved),
        effects,
        button: label(command, rollout, moved),
        class: match command {
            RolloutCommand::RollBack | RolloutCommand::Cancel => "danger",
            RolloutCommand::Start
            | RolloutCommand::Approve
            | RolloutCommand::Pause
            | RolloutCommand::Resume => "primary",
        },
        bundle_name: bundle,
    }))
}

fn question(command: RolloutCommand, rollout: &Rollout, bundle: &str, moved: Moved) -> String {
    let nodes = count(rollout.nodes, "node");
    match command {
        RolloutCommand::Start => format!("Start the rollout of “{bundle}” to {nodes}?"),
        RolloutCommand::Approve => format!("Approve “{bundle}” for {nodes}?"),
        RolloutCommand::Pause => format!("Pause the rollout of “{bundle}”?"),
        RolloutCommand::Resume => format!("Go on with the rollout of “{bundle}”?"),
        RolloutCommand::Cancel => format!("Cancel the rest of the rollout of “{bundle}”?"),
        RolloutCommand::RollBack if moved.ordered == 0 => format!("Roll back “{bundle}”?"),
        RolloutCommand::RollBack => format!(
            "Roll back {} to {}?",
            count(moved.ordered, "node"),
            former_bundles(moved.ordered)
        ),
    }
}

/// Effects of a command by which the rollout orders nodes.
fn moving_effects(
    command: RolloutCommand,
    rollout: &Rollout,
    bundle: &str,
    rules: &PolicyRules,
    now: Timestamp,
) -> Vec<String> {
    let is_resumed = command == RolloutCommand::Resume;
    if let Some(end) = rules.freezes.end(now) {
        let verb = if is_resumed { "resumed" } else { "started" };
        let until = date_time(end, now);
        return vec![format!(
            "The project’s policy allows no change until {until}: it cannot be {verb} before."
        )];
    }
    if is_resumed {
        let restart =
            "The interrupted batch restarts: its time begins again, and so do the gate's counts.";
        return vec![restart.to_owned()];
    }
    let mut effects = Vec::new();
    if command == RolloutCommand::Start {
        let is_needed = rollout.strategy.needs_approval || rules.approve == ApprovalRule::All;
        if is_needed {
            effects.push(
                "Another person must approve it first; nothing is sent to a node before."
                    .to_owned(),
            );
        } else if rules.approve == ApprovalRule::Risky {
            let risky = "If the change is risky, another person must approve it first.";
            effects.push(risky.to_owned());
        }
    }
    effects.push(format!(
        "{} in {} get “{bundle}”, one batch after the other. {}",
        count(rollout.nodes, "node"),
        count(rollout.batches(), "batch"),
        first_order(rollout, rules, effects.is_empty(), now)
    ));
    effects
}

/// Sentence on the time of the first orders; `is_direct` is false if an approval comes before them.
fn first_order(rollout: &Rollout, rules: &PolicyRules, is_direct: bool, now: Timestamp) -> String {
    let earliest = rollout.not_before.filter(|at| now < *at);
    // The earliest time may lie within a freeze.
    let earliest = earliest.map(|at| rules.freezes.end(at).unwrap_or(at));
    match earliest {
        Some(at) => format!("No batch starts before {}.", date_time(at, now)),
        None if is_direct => "The first batch starts at once.".to_owned(),
        None => "The first batch starts when the rollout is started.".to_owned(),
    }
}

/// Effects of a command by which the rollout orders no further nodes.
fn ending_effects(
    command: RolloutCommand,
    rollout: &Rollout,
    bundle: &str,
    moved: Moved,
) -> Vec<String> {
    if command == RolloutCommand::RollBack {
        return roll_back_effects(bundle, moved);
    }
    if command == RolloutCommand::Pause {
        return vec![
            "No further batch is opened. Nodes keep their bundles and keep serving; nodes that were sent the bundle still switch to it."
                .to_owned(),
            "It can be resumed, and its batch then restarts.".to_owned(),
        ];
    }
    vec![
        kept(rollout, bundle, moved),
        "A cancelled rollout cannot be resumed or rolled back. Start a new one.".to_owned(),
    ]
}

/// Sentence on the nodes at the end of a cancelled rollout.
fn kept(rollout: &Rollout, bundle: &str, moved: Moved) -> String {
    let (has, left) = (moved.ready + moved.silent, moved.unordered(rollout));
    let keep = |nodes: i64, what: &str| {
        let verb = pick(nodes, "keeps", "keep");
        format!("{} {verb} {what}", count(nodes, "node"))
    };
    let unreported = moved.unreported();
    let assigned = pick(
        unreported,
        "still has it assigned",
        "still have it assigned",
    );
    let what = format!("what {} now", pick(left, "it runs", "they run"));
    let parts = [
        (has, keep(has, &format!("“{bundle}”"))),
        (
            unreported,
            format!("{} {assigned}", count(unreported, "node")),
        ),
        (left, keep(left, &what)),
    ];
    let parts = parts.into_iter().filter(|(nodes, _)| 0 < *nodes);
    let parts: Vec<String> = parts.map(|(_, text)| text).collect();
    format!("{}. Nothing further is sent.", parts.join("; "))
}

fn former_bundles(nodes: i64) -> &'static str {
    pick(nodes, "its former bundle", "their former bundles")
}

fn roll_back_effects(bundle: &str, moved: Moved) -> Vec<String> {
    let ordered = moved.ordered;
    if ordered == 0 {
        return vec![
            format!("No node was sent “{bundle}”, so none reverts."),
            "The rollout ends with that, and cannot be resumed.".to_owned(),
        ];
    }
    let mut effects = vec![format!(
        "{} that {} sent “{bundle}” {} to {}, all at once.",
        count(ordered, "node"),
        pick(ordered, "was", "were"),
        pick(ordered, "reverts", "revert"),
        former_bundles(ordered),
    )];
    let unreported = moved.unreported();
    if 0 < unreported {
        effects.push(format!(
            "{} of them {} not reported that {} it.",
            number(unreported),
            pick(unreported, "has", "have"),
            pick(unreported, "it runs", "they run"),
        ));
    }
    effects.push("A node without a former bundle keeps this one.".to_owned());
    effects.push(
        "Offline nodes revert when they return. The rollout ends with that, and cannot be resumed."
            .to_owned(),
    );
    effects
}

/// Executes the command, and redirects to the rollout.
pub(crate) async fn carry_out(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id, name)): Path<(ProjectId, RolloutId, String)>,
) -> Result<Response, Failure> {
    let command = RolloutCommand::from_name(&name).ok_or_else(Failure::not_found)?;
    let done = ui
        .app
        .command_rollout(&caller.call, project, id, command)
        .await;
    let note = match done {
        Ok(changed) => Note::good(outcome(command, changed.value.state)),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/projects/{project}/rollouts/{id}"), ui.cookie))
}

fn outcome(command: RolloutCommand, state: RolloutState) -> &'static str {
    match command {
        RolloutCommand::Start if state == RolloutState::AwaitingApproval => {
            "You asked for approval. Another person must give it."
        }
        RolloutCommand::Start => "The rollout has started.",
        RolloutCommand::Approve => "You approved the rollout, and it has started.",
        RolloutCommand::Pause => {
            "The rollout is paused. Nodes that were sent the bundle still switch to it."
        }
        RolloutCommand::Resume => "The rollout goes on.",
        RolloutCommand::Cancel => {
            "The rollout has ended. Nodes keep the bundles that are assigned to them."
        }
        RolloutCommand::RollBack => "Nodes revert to their former bundles.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::words::tests::rollout;
    use control_wire::UserId;
    use uuid::Uuid;

    #[test]
    fn only_commands_that_the_state_allows_are_offered() {
        for (state, expected) in [
            (RolloutState::Planned, &["start", "cancel"][..]),
            (RolloutState::AwaitingApproval, &["approve", "cancel"][..]),
            (RolloutState::Running, &["pause", "rollback", "cancel"][..]),
            (RolloutState::Paused, &["rollback", "resume", "cancel"][..]),
            (RolloutState::Completed, &[][..]),
        ] {
            let offered = actions(&rollout(state, None), &Actor::System, Moved::default());
            let names: Vec<&str> = offered.iter().map(|action| action.name).collect();
            assert_eq!(names, expected, "{state}");
        }
    }

    #[test]
    fn the_person_that_asked_is_not_offered_to_approve() {
        let person = UserId(Uuid::from_u128(1));
        let mut own = rollout(RolloutState::AwaitingApproval, None);
        own.submitted_person = Some(person);
        let actor = Actor::User {
            id: person,
            session: control_wire::SessionId(Uuid::nil()),
            instance_admin: false,
            roles: std::collections::BTreeMap::new(),
            project_roles: std::collections::BTreeMap::new(),
            locked: std::collections::BTreeSet::new(),
            is_fresh: true,
            owns_account: true,
        };
        let names: Vec<&str> = actions(&own, &actor, Moved::default())
            .iter()
            .map(|action| action.name)
            .collect();
        assert_eq!(names, ["cancel"]);
    }

    /// 33 of 64 nodes are ordered, and 22 of these run the bundle.
    const MOVED: Moved = Moved {
        ordered: 33,
        ready: 22,
        silent: 0,
    };

    fn rules(freezes: &[&str], approve: ApprovalRule) -> PolicyRules {
        PolicyRules {
            approve,
            refuse_warnings: false,
            freezes: control_domain::Freezes::parse(freezes.iter().copied()).unwrap(),
        }
    }

    #[test]
    fn a_button_says_what_happens_with_the_number() {
        let paused = rollout(RolloutState::Paused, None);
        let first = &actions(&paused, &Actor::System, MOVED)[0];
        assert_eq!(
            (first.label.as_str(), first.class),
            ("Roll back 33 nodes", "danger")
        );
        let ended = ending_effects(RolloutCommand::Cancel, &paused, "cart", MOVED);
        assert_eq!(
            ended[0],
            "22 nodes keep “cart”; 11 nodes still have it assigned; 31 nodes keep what they run now. \
             Nothing further is sent."
        );
    }

    #[test]
    fn a_rollback_names_the_nodes_that_were_ordered_and_did_not_report() {
        let canary = Moved {
            ordered: 1,
            ..Moved::default()
        };
        let paused = rollout(RolloutState::Paused, None);
        let heading = question(RolloutCommand::RollBack, &paused, "cart", canary);
        assert_eq!(heading, "Roll back 1 node to its former bundle?");
        let effects = roll_back_effects("cart", canary);
        assert_eq!(
            effects[..2],
            [
                "1 node that was sent “cart” reverts to its former bundle, all at once.",
                "1 of them has not reported that it runs it.",
            ]
        );
        let none = roll_back_effects("cart", Moved::default());
        assert_eq!(none[0], "No node was sent “cart”, so none reverts.");
    }

    #[test]
    fn a_start_names_the_time_of_its_first_orders() {
        let noon: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        let evening: Timestamp = "2026-11-23T18:30:00Z".parse().unwrap();
        let open = rules(&[], ApprovalRule::None);
        // A Monday.
        let evenings = rules(&["Mon 18:00-Mon 20:00"], ApprovalRule::None);
        let noons = rules(&["Mon 11:00-Mon 13:00"], ApprovalRule::None);
        let all = rules(&[], ApprovalRule::All);
        for (not_before, rules, expected) in [
            (None, &open, "The first batch starts at once."),
            (Some(evening), &open, "No batch starts before 18:30 UTC."),
            (
                Some(evening),
                &evenings,
                "No batch starts before 20:00 UTC.",
            ),
            (
                None,
                &noons,
                "allows no change until 13:00 UTC: it cannot be started before.",
            ),
            (
                None,
                &all,
                "The first batch starts when the rollout is started.",
            ),
        ] {
            let mut planned = rollout(RolloutState::Planned, None);
            planned.not_before = not_before;
            let effects = moving_effects(RolloutCommand::Start, &planned, "cart", rules, noon);
            let last = effects.last().unwrap();
            assert!(last.ends_with(expected), "{last}");
        }
    }
}
