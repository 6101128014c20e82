//! Page of a drift: the settings that differ from the order.

use super::{Row, row};
use crate::bundle::difference::{SettingRow, setting_rows};
use crate::frame::{Frame, NavEntry, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, when};
use crate::view::phrase::{count, number, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{Comparison, Error};
use control_domain::Access;
use control_wire::{BundleId, DriftId, ProjectId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of settings shown.
const MAX_SETTINGS: usize = 100;

#[derive(Template)]
#[template(path = "drift_detail.html")]
struct DriftPage {
    frame: Frame,
    project: ProjectId,
    csrf: String,
    heading: String,
    row: Row,
    resolved: Option<RelativeTime>,
    /// Sentence on the difference between the two bundles.
    difference: String,
    settings: Vec<SettingRow>,
    /// Link to the complete comparison.
    comparison: String,
    /// Number of settings that are not shown, as text; empty if all are.
    more: String,
    may_write: bool,
    foot: Option<String>,
}

/// Shows a drift, with a choice of the bundle that the node should run.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, DriftId)>,
) -> Result<Response, Failure> {
    let frame = Frame::project(&ui, &caller, project, NavEntry::Drift.titled("Drift")).await?;
    let (app, call) = (&ui.app, &caller.call);
    let drift = app.drift(call, project, id).await?.value;
    let nodes = BTreeSet::from([drift.node]);
    let nodes = app.node_names(call, project, &nodes).await?;
    let bundles: BTreeSet<BundleId> = drift.active.into_iter().chain([drift.desired]).collect();
    let bundles = app.bundle_names(call, project, &bundles).await?;
    let row = row(&drift, &nodes, &bundles, &caller);
    let compared = match drift.active {
        Some(active) if !row.is_edited() => {
            let compared = app.compare_bundles(call, project, active, drift.desired);
            match compared.await {
                Ok(compared) => Some(compared),
                // A bundle without an archive, or one that the checks of this release refuse.
                Err(Error::Refused(_)) => None,
                Err(error) => return Err(error.into()),
            }
        }
        _ => None,
    };
    let all = compared.as_ref().map(total);
    let settings = compared.map(|compared| setting_rows(&compared.settings, MAX_SETTINGS));
    let settings = settings.unwrap_or_default();
    let found = drift.active.unwrap_or(drift.desired);
    let tenant = drift.tenant;
    Ok(shown(&DriftPage {
        frame,
        project,
        csrf: caller.visit.csrf.clone(),
        heading: heading(&row),
        resolved: drift.resolved_at.map(|at| when(at, caller.visit.now)),
        difference: difference(&row, all),
        more: match all.unwrap_or_default() - settings.len() {
            0 => String::new(),
            more => number(i64::try_from(more).unwrap_or(i64::MAX)),
        },
        settings,
        comparison: format!(
            "/projects/{project}/bundles/{found}/diff?before={}",
            drift.desired
        ),
        row,
        may_write: caller.may(Access::WRITE_NODES, tenant),
        foot: foot(
            &caller,
            Access::WRITE_NODES,
            tenant,
            "assign the bundle again, or keep what the node runs",
        ),
    }))
}

/// Number of changed settings, including those that are not listed.
fn total(compared: &Comparison) -> usize {
    compared.settings.len() + compared.omitted
}

fn heading(row: &Row) -> String {
    let Row { name, ordered, .. } = row;
    match &row.found {
        _ if !row.is_open => format!("{name} no longer differs from its assigned bundle."),
        None => format!("{name} runs nothing instead of “{}”.", ordered.name),
        Some(_) if row.is_edited() => {
            format!(
                "{name} runs “{}”, but its files were edited on the disk.",
                ordered.name
            )
        }
        Some(found) => format!(
            "{name} runs “{}” instead of “{}”.",
            found.name, ordered.name
        ),
    }
}

/// Sentence on the difference; `all` is the number of changed settings, `None` without a
/// comparison.
fn difference(row: &Row, all: Option<usize>) -> String {
    match (&row.found, all) {
        (None, _) if !row.is_open => "It ran no bundle, so there is nothing to compare.".to_owned(),
        (Some(_), _) if row.is_edited() && !row.is_open => {
            "Files of the bundle were edited on the node’s disk.".to_owned()
        }
        (None, _) => "It runs no bundle, so there is nothing to compare.".to_owned(),
        (Some(_), _) if row.is_edited() => {
            "The node does not load the edited files, and reports no contents. Assigned again, it is written again."
                .to_owned()
        }
        (Some(_), None) => {
            "The two cannot be compared: one has no archive, or the checks of this release refuse it."
                .to_owned()
        }
        (Some(_), Some(0)) => "All settings in force are equal.".to_owned(),
        (Some(_), Some(all)) => {
            let all = i64::try_from(all).unwrap_or(i64::MAX);
            format!(
                "{} {}.",
                count(all, "setting"),
                pick(all, "differs", "differ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::drift::NamedBundle;
    use crate::view::component::{Status, Tone};
    use control_wire::NodeId;
    use jiff::Timestamp;
    use uuid::Uuid;

    #[test]
    fn the_heading_says_what_runs_in_place_of_the_order() {
        let (ordered, other) = (BundleId(Uuid::from_u128(1)), BundleId(Uuid::from_u128(2)));
        let named = |id, name: &str| NamedBundle {
            id,
            name: name.to_owned(),
        };
        for (found, is_open, expected, reported) in [
            (
                Some(named(other, "cart")),
                true,
                "edge-1 runs “cart” instead of “spring”.",
                "2 settings differ.",
            ),
            (
                Some(named(ordered, "spring")),
                true,
                "edge-1 runs “spring”, but its files were edited on the disk.",
                "The node does not load the edited files",
            ),
            (
                None,
                true,
                "edge-1 runs nothing instead of “spring”.",
                "It runs no bundle",
            ),
            (
                Some(named(other, "cart")),
                false,
                "edge-1 no longer differs from its assigned bundle.",
                "2 settings differ.",
            ),
        ] {
            let row = Row {
                id: DriftId(Uuid::nil()),
                node: NodeId(Uuid::nil()),
                name: "edge-1".to_owned(),
                status: Status::new(Tone::Warn, "drift", "Differs"),
                since: when(Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH),
                ordered: named(ordered, "spring"),
                found,
                is_open,
            };
            assert_eq!(heading(&row), expected);
            // Edited files are not loaded, so a node cannot keep them.
            let kept = row.found.as_ref().map(|found| found.id);
            assert_eq!(row.kept(), kept.filter(|found| *found == other));
            let difference = difference(&row, Some(2));
            assert!(difference.starts_with(reported), "{difference}");
        }
    }
}
