//! Creation of an enrolment token; its secret is shown once.

use crate::frame::form::{self, Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, when};
use crate::view::phrase::count;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::NewEnrolmentToken;
use control_wire::ProjectId;
use jiff::SignedDuration;
use std::sync::Arc;

/// Offered lifetimes in hours, with their labels.
const LIFETIMES: &[(i64, &str)] = &[
    (1, "An hour"),
    (24, "A day"),
    (7 * 24, "A week"),
    (90 * 24, "90 days"),
];

#[derive(Template)]
#[template(path = "enrolment_token_new.html")]
struct NewTokenPage {
    frame: Frame,
    project: ProjectId,
    form: Form,
    lifetimes: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "enrolment_token_made.html")]
struct CreatedPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    secret: String,
    server: String,
    ends: RelativeTime,
    labels: Vec<String>,
}

/// The form.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let fields = Fields::filled(&[("max_uses", "1"), ("hours", "24")]);
    respond(&ui, &caller, project, Form::new(&caller.visit.csrf, fields)).await
}

/// Creates the token, and shows its secret once.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match read(&fields, &caller) {
        Ok(new) => match ui
            .app
            .create_enrolment_token(&caller.call, project, new)
            .await
        {
            Ok((token, secret)) => {
                let token = token.value;
                let title = NavEntry::EnrolmentTokens.titled("New enrolment token");
                let labels = token.labels.pairs().iter();
                return Ok(shown(&CreatedPage {
                    frame: Frame::project(&ui, &caller, project, title).await?,
                    project,
                    heading: format!(
                        "Token {} admits {}.",
                        token.name,
                        count(token.max_uses, "node")
                    ),
                    secret: secret.reveal().to_owned(),
                    server: ui.server_url(&caller.visit),
                    ends: when(token.expires_at, caller.visit.now),
                    labels: labels
                        .map(|(name, value)| format!("{name}:{value}"))
                        .collect(),
                }));
            }
            Err(error) => Faults::from_error(error)?,
        },
        Err(faults) => faults,
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, project, form)
        .await
        .map(unprocessable)
}

fn read(fields: &Fields, caller: &Caller) -> Result<NewEnrolmentToken, Faults> {
    let uses = fields.get("max_uses").trim().parse::<i64>();
    let uses = uses.map_err(|_| Faults::from_field("max_uses", "is not a whole number"))?;
    let hours = fields.get("hours").parse::<i64>().ok();
    let hours = hours.filter(|hours| LIFETIMES.iter().any(|(known, _)| known == hours));
    let hours = hours.ok_or_else(|| Faults::from_field("hours", "is not one of the choices"))?;
    Ok(NewEnrolmentToken {
        name: fields.get("name").trim().to_owned(),
        max_uses: Some(uses),
        labels: form::labels(fields)?,
        expires_at: Some(caller.visit.now + SignedDuration::from_hours(hours)),
    })
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    form: Form,
) -> Result<Response, Failure> {
    let title = NavEntry::EnrolmentTokens.titled("New enrolment token");
    let lifetimes = LIFETIMES.iter();
    Ok(shown(&NewTokenPage {
        frame: Frame::project(ui, caller, project, title).await?,
        project,
        form,
        lifetimes: lifetimes
            .map(|(hours, words)| (hours.to_string(), (*words).to_owned()))
            .collect(),
    }))
}
