//! Revocation of a bundle: confirmation page and command.

use crate::frame::confirmation::confirmation;
use crate::frame::form::Faults;
use crate::frame::{Frame, NavEntry};
use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use crate::view::phrase::{count, pick};
use axum::extract::State;
use axum::response::Response;
use control_wire::{BundleId, ProjectId};
use std::sync::Arc;

/// Confirmation page that lists the effects with numbers.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, BundleId)>,
) -> Result<Response, Failure> {
    let bundle = ui.app.bundle(&caller.call, project, id).await?.value;
    let active = ui.app.count_nodes(&caller.call, project).await?.active;
    let nodes = active
        .iter()
        .find(|(own, _)| *own == id)
        .map_or(0, |(_, nodes)| *nodes);
    let frame = Frame::project(
        &ui,
        &caller,
        project,
        NavEntry::Bundles.titled("Revoke a bundle"),
    )
    .await?;
    let back = format!("/projects/{project}/bundles/{id}");
    Ok(confirmation(
        frame,
        Confirm {
            over: Link {
                text: "Bundles".to_owned(),
                path: format!("/projects/{project}/bundles"),
            },
            heading: format!("Revoke {}?", bundle.name),
            effects: effects(nodes),
            action: format!("{back}/revoke"),
            back,
            csrf: caller.visit.csrf.clone(),
            button: "Revoke it".to_owned(),
        },
    ))
}

fn effects(nodes: i64) -> Vec<String> {
    let first = match nodes {
        0 => "No node runs it.".to_owned(),
        _ => format!(
            "{} {} it, and {} to {}.",
            count(nodes, "node"),
            pick(nodes, "runs", "run"),
            pick(nodes, "reverts", "revert"),
            pick(nodes, "its former bundle", "their former bundles"),
        ),
    };
    vec![
        first,
        "Rollouts of it stop and roll back. It can never be assigned again; a new bundle of the same files can.".to_owned(),
    ]
}

/// Revokes the bundle.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, BundleId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.revoke_bundle(&caller.call, project, id).await {
        Ok(revoked) => Note::good(format!("{} is revoked.", revoked.value.name)),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/projects/{project}/bundles/{id}"), ui.cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_how_many_nodes_revert() {
        assert_eq!(effects(0)[0], "No node runs it.");
        assert_eq!(
            effects(1)[0],
            "1 node runs it, and reverts to its former bundle."
        );
    }
}
