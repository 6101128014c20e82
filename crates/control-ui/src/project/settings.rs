//! Settings of a project: name and policy.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, foot, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::phrase::list_of;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::{
    Access, ApprovalRule, Freezes, PolicyChange, PolicyRules, ProjectPolicy, WeakerRules,
};
use control_wire::{OrgId, ProjectId, UserId};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "project_settings.html")]
struct SettingsPage {
    frame: Frame,
    project: ProjectId,
    org: OrgId,
    heading: &'static str,
    /// Requested weaker rules that wait for a second administrator.
    waiting: Option<Waiting>,
    /// The rules in force, in a sentence.
    standing: String,
    policy: Form,
    name: Form,
    rules: Vec<(String, String)>,
    version: String,
    may_rename: bool,
    may_administer: bool,
    foot: Option<String>,
}

/// Weaker rules that one administrator requested.
struct Waiting {
    /// The requested rules in one line.
    asked: String,
    /// Differences from the rules in force.
    differences: Vec<String>,
    /// Whether the user may agree as the second administrator.
    may_agree: bool,
    /// Value for the form that agrees.
    approve: &'static str,
    refuses: bool,
    freezes: String,
}

/// Shows the settings.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
) -> Result<Response, Failure> {
    respond(&ui, &caller, id, None, None).await
}

/// Renders the page; `policy` and `refused` are the forms of policy and name with their faults.
async fn respond(
    ui: &Ui,
    caller: &Caller,
    id: ProjectId,
    policy: Option<Form>,
    refused: Option<Form>,
) -> Result<Response, Failure> {
    let frame =
        Frame::project(ui, caller, id, NavEntry::ProjectSettings.titled("Settings")).await?;
    let found = ui.app.project(&caller.call, id).await?;
    let (project, version) = (found.value, found.version.to_string());
    let (csrf, name) = (&caller.visit.csrf, project.name.to_string());
    let ProjectPolicy { rules, weaker } = &project.policy;
    let choices: Vec<(String, String)> = ApprovalRule::ALL
        .iter()
        .map(|rule| (rule.name().to_owned(), words(*rule).to_owned()))
        .collect();
    let own_name = Fields::filled(&[("version", &version), ("name", &name)]);
    let own_rules = filled(rules).with("version", &version);
    let form = |refused: Option<Form>, stored: Fields, names: &[(String, String)]| match refused {
        Some(form) => form.beside(&stored, names),
        None => Form::new(csrf, stored),
    };
    let tenant = project.tenant();
    Ok(shown(&SettingsPage {
        frame,
        project: id,
        org: project.org,
        heading: heading(rules.approve),
        waiting: weaker
            .as_ref()
            .map(|weaker| waiting(rules, weaker, caller.call.actor.user())),
        standing: sentence_of(rules),
        policy: form(policy, own_rules, &choices),
        name: form(refused, own_name, &[]),
        rules: choices,
        version,
        may_rename: caller.may(Access::WRITE_PROJECTS, project.tenant()),
        may_administer: caller.may(Access::ADMINISTER, tenant),
        foot: foot(caller, Access::ADMINISTER, tenant, "change the policy"),
    }))
}

fn waiting(rules: &PolicyRules, weaker: &WeakerRules, reader: Option<UserId>) -> Waiting {
    let WeakerRules {
        rules: asked,
        asked_by,
    } = weaker;
    Waiting {
        asked: sentence_of(asked),
        differences: differences(rules, asked),
        may_agree: reader.is_some_and(|reader| reader != *asked_by),
        approve: asked.approve.name(),
        refuses: asked.refuse_warnings,
        freezes: asked.freezes.texts().join("\n"),
    }
}

/// The requested rules that differ, each with the one in force.
fn differences(rules: &PolicyRules, asked: &PolicyRules) -> Vec<String> {
    let (old, new) = (parts_of(rules), parts_of(asked));
    let pairs = old.into_iter().zip(new).filter(|(old, new)| old != new);
    let texts = pairs.map(|(old, new)| format!("{new}, in place of: {old}"));
    texts.collect()
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
        ApprovalRule::None => "If a rollout requests it",
        ApprovalRule::Risky => "Also if the change is risky",
        ApprovalRule::All => "Always",
    }
}

/// Values of the form; one freeze per line.
fn filled(rules: &PolicyRules) -> Fields {
    let freezes = rules.freezes.texts().join("\n");
    let refuses = if rules.refuse_warnings { "yes" } else { "" };
    Fields::filled(&[
        ("approve", rules.approve.name()),
        ("refuse_warnings", refuses),
        ("freeze", &freezes),
    ])
}

/// The rules in one line.
fn sentence_of(rules: &PolicyRules) -> String {
    parts_of(rules).join("; ")
}

/// Approval, warnings and freezes, each as a clause.
fn parts_of(rules: &PolicyRules) -> [String; 3] {
    let warnings = if rules.refuse_warnings {
        "bundles with warnings are refused"
    } else {
        "bundles with warnings pass"
    };
    let freezes = rules.freezes.texts();
    let freezes = if freezes.is_empty() {
        "changes at any time".to_owned()
    } else {
        format!("no changes {} UTC", list_of(&freezes))
    };
    let approval = match rules.approve {
        ApprovalRule::None => "approval where a rollout asks for it",
        ApprovalRule::Risky => "approval of risky changes",
        ApprovalRule::All => "approval of every change",
    };
    [approval.to_owned(), warnings.to_owned(), freezes]
}

fn read(fields: &Fields) -> Result<PolicyChange, Faults> {
    let rule = ApprovalRule::from_name(fields.get("approve"));
    let lines = fields.get("freeze").lines().map(str::trim);
    let freezes = Freezes::parse(lines.filter(|line| !line.is_empty()));
    Ok(PolicyChange {
        approve: Some(rule.ok_or_else(|| Faults::from_field("approve", "is not chosen"))?),
        refuse_warnings: Some(!fields.get("refuse_warnings").is_empty()),
        freezes: Some(freezes.map_err(Faults::from_refusal)?),
    })
}

/// Requests a policy.
pub(crate) async fn set_policy(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match read(&fields) {
        Ok(change) => match ui
            .app
            .ask_policy(&caller.versioned(&fields), id, change)
            .await
        {
            Ok(project) => {
                let note = match project.value.policy.weaker {
                    None => Note::good("The policy is in force now."),
                    Some(_) => Note::good(
                        "A weaker policy needs two: it is in force once another administrator requests the same.",
                    ),
                };
                return Ok(note.at(&format!("/projects/{id}/policy"), ui.cookie));
            }
            Err(error) => Faults::from_error(error)?,
        },
        Err(faults) => faults,
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, id, Some(form), None)
        .await
        .map(unprocessable)
}

/// Renames the project.
pub(crate) async fn rename(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let name = fields.get("name").trim().to_owned();
    let call = caller.versioned(&fields);
    match ui.app.rename_project(&call, id, &name).await {
        Ok(_) => {
            let note = Note::good(format!("The project is called {name} now."));
            Ok(note.at(&format!("/projects/{id}/policy"), ui.cookie))
        }
        Err(error) => {
            let form = Form::refused(&caller.visit.csrf, fields, Faults::from_error(error)?);
            respond(&ui, &caller, id, None, Some(form))
                .await
                .map(unprocessable)
        }
    }
}
