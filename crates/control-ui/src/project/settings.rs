//! Settings of a project: its name, and when a second person has to approve.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, Place, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use control_domain::{Access, ApprovalRule, PolicyChange, ProjectPolicy};
use control_wire::{OrgId, ProjectId};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "project_settings.html")]
struct SettingsPage {
    frame: Frame,
    project: ProjectId,
    org: OrgId,
    heading: &'static str,
    /// A weaker rule that waits for a second administrator.
    waiting: Option<&'static str>,
    policy: Form,
    name: Form,
    rules: Vec<(String, String)>,
    may_rename: bool,
    may_administer: bool,
    foot: Option<String>,
}

/// The settings, and their forms.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
) -> Result<Response, Failure> {
    respond(&ui, &caller, id, None).await
}

/// `refused`: the form of the name with its faults.
async fn respond(
    ui: &Ui,
    caller: &Caller,
    id: ProjectId,
    refused: Option<Form>,
) -> Result<Response, Failure> {
    let frame = Frame::project(ui, caller, id, (Place::ProjectSettings, "Settings")).await?;
    let project = ui.app.project(&caller.call, id).await?.value;
    let (csrf, name) = (&caller.visit.csrf, project.name.to_string());
    let ProjectPolicy { rules, weaker } = &project.policy;
    let waiting = weaker.as_ref().map(|weaker| weaker.rules.approve);
    let chosen = waiting.unwrap_or(rules.approve);
    let named = || Form::new(csrf, Fields::filled(&[("name", &name)]));
    let write = (Access::ADMINISTER, project.tenant());
    Ok(shown(&SettingsPage {
        frame,
        project: id,
        org: project.org,
        heading: heading(rules.approve),
        waiting: waiting.map(words),
        policy: Form::new(csrf, Fields::filled(&[("approve", chosen.name())])),
        name: refused.unwrap_or_else(named),
        rules: ApprovalRule::ALL
            .iter()
            .map(|rule| (rule.name().to_owned(), words(*rule).to_owned()))
            .collect(),
        may_rename: caller.may(Access::WRITE_PROJECTS, project.tenant()),
        may_administer: caller.may(write.0, write.1),
        foot: foot(caller, write, "change the rule of approval"),
    }))
}

fn heading(rule: ApprovalRule) -> &'static str {
    match rule {
        ApprovalRule::None => "One person alone may start a rollout.",
        ApprovalRule::Risky => "A risky change needs a second person.",
        ApprovalRule::All => "Every change needs a second person.",
    }
}

fn words(rule: ApprovalRule) -> &'static str {
    match rule {
        ApprovalRule::None => "Where a rollout asks for it",
        ApprovalRule::Risky => "Where the change is risky, too",
        ApprovalRule::All => "Always",
    }
}

/// Asks for a rule of approval.
pub(crate) async fn set_policy(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let rule = ApprovalRule::from_name(fields.get("approve")).ok_or_else(Failure::not_found)?;
    let change = PolicyChange {
        approve: Some(rule),
        ..PolicyChange::default()
    };
    let note = match ui.app.ask_policy(&caller.call, id, change).await {
        Ok(project) if project.value.policy.rules.approve == rule => {
            Note::good("The rule holds from now on.")
        }
        Ok(_) => Note::good(
            "A weaker rule needs two: it holds once another administrator asks for the same.",
        ),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/projects/{id}/policy"), ui.cookie))
}

/// Gives the project another name.
pub(crate) async fn rename(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let name = fields.get("name").trim().to_owned();
    match ui.app.rename_project(&caller.call, id, &name).await {
        Ok(_) => {
            let note = Note::good(format!("The project is called {name} now."));
            Ok(note.at(&format!("/projects/{id}/policy"), ui.cookie))
        }
        Err(error) => {
            let form = Form::refused(&caller.visit.csrf, fields, Faults::from_error(error)?);
            let mut response = respond(&ui, &caller, id, Some(form)).await?;
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(response)
        }
    }
}
