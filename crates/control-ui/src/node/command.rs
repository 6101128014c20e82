//! Operators' commands on a node: labels, approval, deletion.

use crate::frame::confirmation::confirmation;
use crate::frame::form::{self, Faults};
use crate::frame::{Frame, NavEntry};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use axum::extract::State;
use axum::response::Response;
use control_app::Call;
use control_wire::{NodeId, ProjectId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Replaces the node's labels by those of the form.
pub(crate) async fn label(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, NodeId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let note = match form::labels(&fields) {
        Ok(wanted) => {
            let call = caller.versioned(&fields);
            set_labels(&ui, &call, project, id, wanted).await?
        }
        Err(faults) => faults.note(),
    };
    Ok(note.at(&page(project, id), ui.cookie))
}

async fn set_labels(
    ui: &Ui,
    call: &Call,
    project: ProjectId,
    id: NodeId,
    wanted: BTreeMap<String, String>,
) -> Result<Note, Failure> {
    let node = ui.app.node(call, project, id).await?.value;
    let gone = node.labels.pairs().keys();
    let gone = gone.filter(|name| !wanted.contains_key(*name));
    let mut changes: BTreeMap<String, Option<String>> =
        gone.map(|name| (name.clone(), None)).collect();
    changes.extend(wanted.into_iter().map(|(name, value)| (name, Some(value))));
    Ok(match ui.app.label_node(call, project, id, changes).await {
        Ok(_) => Note::good("The labels are set."),
        Err(error) => Faults::from_error(error)?.note(),
    })
}

/// Approves a node that requested labels beyond its token's.
pub(crate) async fn approve(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, NodeId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let grants = fields.get("labels") == "grant";
    let note = match ui.app.approve_node(&caller.call, project, id, grants).await {
        Ok(_) if grants => Note::good("The node has the requested labels."),
        Ok(_) => Note::good("The node keeps the labels of its token."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&page(project, id), ui.cookie))
}

/// The confirmation page of deleting a node.
pub(crate) async fn ask_deletion(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, NodeId)>,
) -> Result<Response, Failure> {
    let node = ui.app.node(&caller.call, project, id).await?.value;
    let frame = Frame::project(
        &ui,
        &caller,
        project,
        NavEntry::Nodes.titled("Delete a node"),
    )
    .await?;
    let back = page(project, id);
    Ok(confirmation(
        frame,
        Confirm {
            over: Link {
                text: "Nodes".to_owned(),
                path: format!("/projects/{project}/nodes"),
            },
            heading: format!("Delete {}?", node.name),
            effects: vec![
                "Its key is refused from now on, and its reports and events are deleted."
                    .to_owned(),
                "The proxy itself keeps serving its bundle. To return, it must enrol again."
                    .to_owned(),
            ],
            action: format!("{back}/delete"),
            back,
            csrf: caller.visit.csrf.clone(),
            button: "Delete it".to_owned(),
        },
    ))
}

/// Deletes a node.
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, NodeId)>,
) -> Result<Response, Failure> {
    let (note, path) = match ui.app.delete_node(&caller.call, project, id).await {
        Ok(()) => {
            let path = format!("/projects/{project}/nodes");
            (Note::good("The node is deleted."), path)
        }
        Err(error) => (Faults::from_error(error)?.note(), page(project, id)),
    };
    Ok(note.at(&path, ui.cookie))
}

fn page(project: ProjectId, id: NodeId) -> String {
    format!("/projects/{project}/nodes/{id}")
}
