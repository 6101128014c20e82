//! Form for a bundle of the project's services and upstreams.

use crate::bundle::editor::made_note;
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{BundleSource, ListenAddresses, NewBundle};
use control_wire::ProjectId;
use std::sync::Arc;

/// Initial values of the form.
const DEFAULTS: &[(&str, &str)] = &[("name", "services"), ("http", "0.0.0.0:8080")];

#[derive(Template)]
#[template(path = "bundle_of_services.html")]
struct ServicesBundlePage {
    frame: Frame,
    project: ProjectId,
    form: Form,
}

/// Shows the form.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let form = Form::new(&caller.visit.csrf, Fields::filled(DEFAULTS));
    respond(&ui, &caller, project, form).await
}

/// Creates the bundle.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let address = |name: &str| fields.given(name).map(|text| text.trim().to_owned());
    let new = NewBundle {
        name: fields.get("name").trim().to_owned(),
        source: BundleSource::Services(ListenAddresses {
            http: address("http"),
            https: address("https"),
        }),
    };
    let faults = match ui.app.create_bundle(&caller.call, project, new).await {
        Ok(made) => {
            let note = made_note(&made.value.name.to_string(), made.value.state);
            let path = format!("/projects/{project}/bundles/{}", made.value.id);
            return Ok(note.at(&path, ui.cookie));
        }
        Err(error) => Faults::from_error(error)?
            .renamed("services.http", "http")
            .renamed("services.https", "https"),
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, project, form)
        .await
        .map(unprocessable)
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    form: Form,
) -> Result<Response, Failure> {
    let title = NavEntry::Bundles.titled("New bundle of services");
    Ok(shown(&ServicesBundlePage {
        frame: Frame::project(ui, caller, project, title).await?,
        project,
        form,
    }))
}
