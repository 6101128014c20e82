//! Creation of a project.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_wire::OrgId;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "project_new.html")]
struct NewProjectPage {
    frame: Frame,
    org: OrgId,
    form: Form,
}

/// Shows the form.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    respond(
        &ui,
        &caller,
        org,
        Form::new(&caller.visit.csrf, Fields::default()),
    )
    .await
}

/// Creates the project.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let name = fields.get("name").trim().to_owned();
    match ui.app.create_project(&caller.call, org, &name).await {
        Ok(made) => {
            let note = Note::good(format!("Project {} is created.", made.value.name));
            Ok(note.at(&format!("/projects/{}", made.value.id), ui.cookie))
        }
        Err(error) => {
            let faults = Faults::from_error(error)?;
            let form = Form::refused(&caller.visit.csrf, fields, faults);
            respond(&ui, &caller, org, form).await.map(unprocessable)
        }
    }
}

async fn respond(ui: &Ui, caller: &Caller, org: OrgId, form: Form) -> Result<Response, Failure> {
    Ok(shown(&NewProjectPage {
        frame: Frame::org(ui, caller, org, NavEntry::Projects.titled("New project")).await?,
        org,
        form,
    }))
}
