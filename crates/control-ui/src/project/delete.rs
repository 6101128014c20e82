//! Deletion of a project: the page lists what is deleted with it, and asks for the project's name.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::phrase::{count, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_wire::ProjectId;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "project_delete.html")]
struct DeletePage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    /// Sentence on nodes that prevent the deletion; empty if there are none.
    in_the_way: String,
    form: Form,
}

/// Confirmation page.
pub(crate) async fn ask(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
) -> Result<Response, Failure> {
    let form = Form::new(&caller.visit.csrf, Fields::default());
    respond(&ui, &caller, id, form).await
}

/// Deletes the project.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let project = ui.app.project(&caller.call, id).await?.value;
    let name = project.name.to_string();
    let faults = if fields.get("name").trim() == name {
        match ui.app.delete_project(&caller.call, id).await {
            Ok(()) => {
                let note = Note::good(format!("The project {name} is deleted."));
                return Ok(note.at("/", ui.cookie));
            }
            Err(error) => Faults::from_error(error)?,
        }
    } else {
        Faults::from_field("name", "is not the name of this project")
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, id, form).await.map(unprocessable)
}

async fn respond(ui: &Ui, caller: &Caller, id: ProjectId, form: Form) -> Result<Response, Failure> {
    let title = NavEntry::ProjectSettings.titled("Delete the project");
    let frame = Frame::project(ui, caller, id, title).await?;
    let project = ui.app.project(&caller.call, id).await?.value;
    let nodes = ui.app.count_nodes(&caller.call, id).await?.total;
    Ok(shown(&DeletePage {
        frame,
        project: id,
        heading: format!("Delete {}?", project.name),
        in_the_way: in_the_way(nodes),
        form,
    }))
}

fn in_the_way(nodes: i64) -> String {
    match nodes {
        0 => String::new(),
        nodes => format!(
            "It has {}: delete {} first. A project with nodes is not deleted.",
            count(nodes, "node"),
            pick(nodes, "it", "them"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_that_block_a_deletion_are_named() {
        assert_eq!(in_the_way(0), "");
        assert!(in_the_way(1).starts_with("It has 1 node: delete it "));
        assert!(in_the_way(12).contains("delete them first"));
    }
}
