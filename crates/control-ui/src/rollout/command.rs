//! Operators' commands on a rollout: buttons, confirmation pages, handlers.

use crate::frame::form::Faults;
use crate::frame::show;
use crate::frame::{Frame, NavEntry};
use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::rollout::bundle_name;
use crate::rollout::words::moved;
use crate::ui::Ui;
use crate::view::component::{Icon, icon};
use crate::view::phrase::{count, number, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::{Actor, Rollout, RolloutCommand, RolloutState};
use control_wire::{ProjectId, RolloutId};
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

/// Buttons for the rollout's state; `moved` is the number of nodes that run its bundle.
pub(crate) fn actions(rollout: &Rollout, actor: &Actor, moved: i64) -> Vec<Action> {
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

fn label(command: RolloutCommand, rollout: &Rollout, moved: i64) -> String {
    match command {
        RolloutCommand::Start => "Start".to_owned(),
        RolloutCommand::Approve => format!("Approve for {}", count(rollout.nodes, "node")),
        RolloutCommand::Pause => "Pause".to_owned(),
        RolloutCommand::Resume => "Try the batch again".to_owned(),
        RolloutCommand::Cancel if rollout.started_at.is_none() => "Cancel it".to_owned(),
        RolloutCommand::Cancel => "End here".to_owned(),
        RolloutCommand::RollBack if moved == 0 => "Roll back".to_owned(),
        RolloutCommand::RollBack => format!("Roll back {}", count(moved, "node")),
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
    let moved = moved(&progress);
    let title = format!("Rollout of {bundle}");
    let frame = Frame::project(&ui, &caller, project, NavEntry::Rollouts.titled(&title)).await?;
    Ok(show(&ConfirmPage {
        frame,
        project,
        id,
        csrf: caller.visit.csrf.clone(),
        name: command.name(),
        heading: question(command, rollout, &bundle, moved),
        effects: effects(command, rollout, &bundle, moved),
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

fn question(command: RolloutCommand, rollout: &Rollout, bundle: &str, moved: i64) -> String {
    let nodes = count(rollout.nodes, "node");
    match command {
        RolloutCommand::Start => format!("Start the rollout of “{bundle}” to {nodes}?"),
        RolloutCommand::Approve => format!("Approve “{bundle}” for {nodes}?"),
        RolloutCommand::Pause => format!("Pause the rollout of “{bundle}”?"),
        RolloutCommand::Resume => format!("Go on with the rollout of “{bundle}”?"),
        RolloutCommand::Cancel => format!("End the rollout of “{bundle}” here?"),
        RolloutCommand::RollBack if moved == 0 => format!("Roll back “{bundle}”?"),
        RolloutCommand::RollBack => format!(
            "Bring {} back to what {} ran before?",
            count(moved, "node"),
            pick(moved, "it", "they")
        ),
    }
}

fn effects(command: RolloutCommand, rollout: &Rollout, bundle: &str, moved: i64) -> Vec<String> {
    let left = rollout.nodes - moved;
    match command {
        RolloutCommand::Start | RolloutCommand::Approve => vec![format!(
            "{} in {} get “{bundle}”, one batch after the other. The first batch is ordered at once.",
            count(rollout.nodes, "node"),
            count(rollout.batches(), "batch")
        )],
        RolloutCommand::Pause => vec![
            "No further batch is opened. Nodes keep their bundles and keep serving.".to_owned(),
            "It can be resumed, and its batch then restarts.".to_owned(),
        ],
        RolloutCommand::Resume => vec![
            "The interrupted batch restarts: its time begins again, and so do the gate's counts."
                .to_owned(),
        ],
        RolloutCommand::Cancel => vec![
            format!(
                "{} {} “{bundle}”; {} {} what {} run now. Nothing is ordered.",
                count(moved, "node"),
                pick(moved, "keeps", "keep"),
                number(left),
                pick(left, "keeps", "keep"),
                pick(left, "it", "they"),
            ),
            "A rollout that has ended cannot be resumed or rolled back. Start a new one.".to_owned(),
        ],
        RolloutCommand::RollBack if moved == 0 => vec![
            format!(
                "No node runs “{bundle}” by this rollout. Nodes that were ordered to run it are ordered to run what they ran before."
            ),
            "The rollout ends with that, and cannot be resumed.".to_owned(),
        ],
        RolloutCommand::RollBack => vec![
            format!(
                "{} that {} “{bundle}” {} ordered to run what {} ran before this rollout, all at once.",
                count(moved, "node"),
                pick(moved, "runs", "run"),
                pick(moved, "is", "are"),
                pick(moved, "it", "they"),
            ),
            "Offline nodes roll back when they return. The rollout ends with that, and cannot be resumed."
                .to_owned(),
        ],
    }
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
        RolloutCommand::Pause => "The rollout is paused. Nodes keep their bundles.",
        RolloutCommand::Resume => "The rollout goes on.",
        RolloutCommand::Cancel => "The rollout has ended. Nodes keep their bundles.",
        RolloutCommand::RollBack => "Nodes are ordered back.",
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
            let offered = actions(&rollout(state, None), &Actor::System, 32);
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
        let names: Vec<&str> = actions(&own, &actor, 0)
            .iter()
            .map(|action| action.name)
            .collect();
        assert_eq!(names, ["cancel"]);
    }

    #[test]
    fn a_button_says_what_happens_with_the_number() {
        let paused = rollout(RolloutState::Paused, None);
        let first = &actions(&paused, &Actor::System, 32)[0];
        assert_eq!(
            (first.label.as_str(), first.class),
            ("Roll back 32 nodes", "danger")
        );
        let reported = effects(RolloutCommand::Cancel, &paused, "cart", 32);
        assert_eq!(
            reported[0],
            "32 nodes keep “cart”; 32 keep what they run now. Nothing is ordered."
        );
    }
}
