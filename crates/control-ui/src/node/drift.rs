//! List of a project's drifts.

pub(crate) mod detail;

use crate::frame::form::Faults;
use crate::frame::{Frame, NavEntry, foot, show};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, Tone, more, when};
use crate::view::phrase::{count, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::DriftRemedy;
use control_domain::{Access, Drift, DriftResolution, DriftState, NodeStanding};
use control_wire::{BundleId, DriftId, NodeId, ProjectId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Number of drifts per page.
const SHOWN_COUNT: usize = 50;

#[derive(Template)]
#[template(path = "drift.html")]
struct DriftPage {
    frame: Frame,
    project: ProjectId,
    csrf: String,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    may_write: bool,
    foot: Option<String>,
}

struct Row {
    id: DriftId,
    node: NodeId,
    name: String,
    status: Status,
    since: RelativeTime,
    ordered: NamedBundle,
    found: Option<NamedBundle>,
    is_open: bool,
}

struct NamedBundle {
    id: BundleId,
    name: String,
}

impl Row {
    /// Returns true if the node runs the ordered bundle, but with edited files.
    fn is_edited(&self) -> bool {
        let found = self.found.as_ref();
        found.is_some_and(|bundle| bundle.id == self.ordered.id)
    }

    /// The bundle that the node may keep. Edited files are not loaded, so there is nothing to keep.
    fn kept(&self) -> Option<BundleId> {
        let found = self.found.as_ref().filter(|_| !self.is_edited());
        found.map(|bundle| bundle.id)
    }
}

/// Shows the drifts, open ones first, then the newest.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let frame = Frame::project(&ui, &caller, project, NavEntry::Drift.titled("Drift")).await?;
    let (app, call) = (&ui.app, &caller.call);
    let before = caller.visit.query.get("before").parse::<DriftId>().ok();
    let limit = i64::try_from(SHOWN_COUNT).unwrap_or(i64::MAX) + 1;
    let mut found = app.newest_drifts(call, project, before, limit).await?;
    let has_more = SHOWN_COUNT < found.len();
    found.truncate(SHOWN_COUNT);
    let last = found.last().filter(|_| has_more).map(|last| last.value.id);
    let drifts: Vec<Drift> = found.into_iter().map(|found| found.value).collect();
    let nodes: BTreeSet<NodeId> = drifts.iter().map(|drift| drift.node).collect();
    let nodes = app.node_names(call, project, &nodes).await?;
    let bundles = drifts
        .iter()
        .flat_map(|drift| [Some(drift.desired), drift.active]);
    let bundles: BTreeSet<BundleId> = bundles.flatten().collect();
    let bundles = app.bundle_names(call, project, &bundles).await?;
    let rows = drifts
        .iter()
        .map(|drift| row(drift, &nodes, &bundles, &caller));
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by_key(|row| !row.is_open);
    let standings = app.count_standings(call, project).await?;
    let open = standings
        .get(&NodeStanding::Drifted)
        .copied()
        .unwrap_or_default();
    let tenant = app.project(call, project).await?.value.tenant();
    Ok(show(&DriftPage {
        frame: frame.live("/events?pulse"),
        project,
        csrf: caller.visit.csrf.clone(),
        heading: heading(open),
        rows,
        more: more(
            last.map(|last| format!("?before={last}")),
            "Show older drifts",
        ),
        may_write: caller.may(Access::WRITE_NODES, tenant),
        foot: foot(
            &caller,
            Access::WRITE_NODES,
            tenant,
            "assign the bundle again, or keep what nodes run",
        ),
    }))
}

/// A drift with the names of node and bundles.
fn row(
    drift: &Drift,
    nodes: &BTreeMap<NodeId, String>,
    bundles: &BTreeMap<BundleId, String>,
    caller: &Caller,
) -> Row {
    let bundle = |id: BundleId| {
        let name = bundles.get(&id).cloned();
        NamedBundle {
            id,
            name: name.unwrap_or_else(|| "an unknown bundle".to_owned()),
        }
    };
    let name = nodes.get(&drift.node).cloned();
    Row {
        id: drift.id,
        node: drift.node,
        name: name.unwrap_or_else(|| "a deleted node".to_owned()),
        status: status(drift),
        since: when(drift.opened_at, caller.visit.now),
        ordered: bundle(drift.desired),
        found: drift.active.map(bundle),
        is_open: drift.state == DriftState::Open,
    }
}

fn status(drift: &Drift) -> Status {
    match drift.resolution {
        None => Status::new(Tone::Warn, "drift", "Differs"),
        Some(DriftResolution::Automatic) => Status::new(Tone::Ok, "ok", "Resolved by itself"),
        Some(DriftResolution::Manual) => Status::new(Tone::Ok, "ok", "Resolved by hand"),
        Some(DriftResolution::Rollout) => Status::new(Tone::Ok, "ok", "By a rollout"),
    }
}

fn heading(open: i64) -> String {
    match open {
        0 => "No node differs from its assigned bundle.".to_owned(),
        _ => format!(
            "{} {}.",
            count(open, "node"),
            pick(
                open,
                "differs from its assigned bundle",
                "differ from their assigned bundles"
            )
        ),
    }
}

/// Orders the assigned bundle again, or accepts the current one.
pub(crate) async fn resolve(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, DriftId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let (remedy, sentence) = match fields.get("remedy") {
        "accept" => {
            let Ok(seen) = fields.get("bundle").parse::<BundleId>() else {
                let fault = Faults::from_field("bundle", "is not one that the page showed");
                let page = format!("/projects/{project}/drift/{id}");
                return Ok(fault.note().at(&page, ui.cookie));
            };
            let sentence = "The node’s current bundle is assigned to it now.";
            (DriftRemedy::Accept(Some(seen)), sentence)
        }
        _ => (
            DriftRemedy::Reorder,
            "The bundle is assigned to the node again.",
        ),
    };
    let note = match ui
        .app
        .resolve_drift(&caller.call, project, id, remedy)
        .await
    {
        Ok(_) => Note::good(sentence),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/projects/{project}/drift"), ui.cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_counts_nodes_that_differ() {
        assert_eq!(heading(0), "No node differs from its assigned bundle.");
        assert_eq!(heading(1), "1 node differs from its assigned bundle.");
        assert_eq!(heading(2), "2 nodes differ from their assigned bundles.");
    }
}
