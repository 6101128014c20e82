//! Rotation of a node's key.

use crate::frame::form::Faults;
use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::KeyRotation;
use control_wire::{NodeId, ProjectId};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "node_key.html")]
struct RotatePage {
    frame: Frame,
    project: ProjectId,
    id: NodeId,
    name: String,
    csrf: String,
    is_rotating: bool,
}

#[derive(Template)]
#[template(path = "node_key_made.html")]
struct CreatedPage {
    frame: Frame,
    project: ProjectId,
    id: NodeId,
    name: String,
    heading: String,
    secret: String,
    is_immediate: bool,
}

/// Confirmation page with the options of a rotation.
pub(crate) async fn ask(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, NodeId)>,
) -> Result<Response, Failure> {
    let node = ui.app.node(&caller.call, project, id).await?.value;
    Ok(shown(&RotatePage {
        frame: Frame::project(&ui, &caller, project, NavEntry::Nodes.titled("Another key")).await?,
        project,
        id,
        name: node.name.to_string(),
        csrf: caller.visit.csrf.clone(),
        is_rotating: node.rotating,
    }))
}

/// Creates a key, and shows it once.
pub(crate) async fn rotate(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, NodeId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let (call, is_immediate) = (&caller.call, fields.get("when") == "now");
    let rotation = if is_immediate {
        KeyRotation::Immediate
    } else {
        KeyRotation::AtFirstUse
    };
    let name = ui.app.node(call, project, id).await?.value.name.to_string();
    match ui.app.rotate_node_key(call, project, id, rotation).await {
        Ok((_, key)) => Ok(shown(&CreatedPage {
            frame: Frame::project(&ui, &caller, project, NavEntry::Nodes.titled("New key")).await?,
            project,
            id,
            heading: format!("{name} has a new key."),
            name,
            secret: key.reveal().to_owned(),
            is_immediate,
        })),
        Err(error) => {
            let note = Faults::from_error(error)?.note();
            Ok(note.at(&format!("/projects/{project}/nodes/{id}"), ui.cookie))
        }
    }
}
