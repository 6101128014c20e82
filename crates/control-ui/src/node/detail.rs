//! Page of a node: ordered and active bundle, traffic, events.

use crate::frame::show as shown;
use crate::frame::{Frame, NavEntry, foot};
use crate::node::standing::status;
use crate::node::traffic::{RouteRow, routes};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{AbsoluteTime, RelativeTime, Status, moment, when};
use crate::view::diagnostic::in_one_line;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{DriftFilter, Page, PageOrder};
use control_domain::{Access, DriftState, Node, NodeStanding};
use control_wire::{BundleId, NodeId, NodeStatus, ProjectId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of events on the page.
const MAX_EVENTS: i64 = 50;

#[derive(Template)]
#[template(path = "node.html")]
struct NodePage {
    frame: Frame,
    project: ProjectId,
    id: NodeId,
    csrf: String,
    /// Version of the node's row, for the form of its labels.
    version: i64,
    name: String,
    status: Status,
    heading: String,
    explanation: &'static str,
    /// Link to the form for a rollout, for a node without an order.
    rollout_form: Option<String>,
    /// Bundles of the node: ordered, active, last good, staged.
    bundles: Vec<BundleRow>,
    labels: Vec<(String, String)>,
    requested: Vec<(String, String)>,
    diagnostics: Vec<String>,
    seen: Option<RelativeTime>,
    ordered: Option<RelativeTime>,
    enrolled: RelativeTime,
    /// Version of the node's program.
    software: String,
    cpu: String,
    is_duplicated: bool,
    is_rotating: bool,
    routes: Vec<RouteRow>,
    events: Vec<EventRow>,
    /// Sentence on the order of the events, and whether there are more.
    events_order: &'static str,
    may_write: bool,
    foot: Option<String>,
}

struct EventRow {
    at: AbsoluteTime,
    kind: String,
    message: String,
}

struct BundleRow {
    label: &'static str,
    bundle: Option<(BundleId, String)>,
}

/// The page of a node.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, NodeId)>,
) -> Result<Response, Failure> {
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let found = app.node(call, project, id).await?;
    let (node, version) = (found.value, found.version);
    let title = node.name.to_string();
    let frame = Frame::project(&ui, &caller, project, NavEntry::Nodes.titled(&title)).await?;
    let one = Page {
        after: None,
        limit: 1,
        order: PageOrder::Oldest,
    };
    let open = DriftFilter {
        state: Some(DriftState::Open),
        node: Some(id),
    };
    let has_drift = !app.drifts(call, project, &open, one).await?.is_empty();
    let standing = node.standing(has_drift, app.heartbeat_interval, now);
    let (events, events_order) = events(&ui, &caller, project, id).await?;
    let report = node.report.as_ref();
    let empty = NodeStatus::default();
    let reported = report.map_or(&empty, |report| &report.status);
    let ordered = node.order.map(|order| order.bundle);
    let tenant = node.tenant;
    Ok(shown(&NodePage {
        frame: frame.live("/events?pulse").with_form(),
        project,
        id,
        csrf: caller.visit.csrf.clone(),
        status: status(standing).pill(),
        heading: heading(&title, standing, reported.active, ordered),
        rollout_form: Some(format!("/projects/{project}/rollouts/new")).filter(|_| {
            standing == NodeStanding::Unordered && caller.may(Access::WRITE_ROLLOUTS, tenant)
        }),
        explanation: explanation(standing, reported.active.is_some()),
        name: title,
        bundles: bundles(&ui, &caller, project, &node, reported).await?,
        labels: pairs(node.labels.pairs()),
        requested: node
            .requested_labels
            .as_ref()
            .map_or_else(Vec::new, |own| pairs(own.pairs())),
        diagnostics: reported.diagnostics.clone(),
        seen: report.map(|report| when(report.seen_at, now)),
        ordered: node.order.map(|order| when(order.made_at, now)),
        enrolled: when(node.created_at, now),
        version,
        software: report
            .and_then(|report| report.version.clone())
            .unwrap_or_default(),
        cpu: report.map_or_else(String::new, |report| format!("{:.0} %", report.cpu_percent)),
        is_duplicated: node.duplicated_since(now).is_some(),
        is_rotating: node.rotating,
        routes: routes(report.and_then(|report| report.traffic.as_ref())),
        events,
        events_order,
        may_write: caller.may(Access::WRITE_NODES, tenant),
        foot: foot(
            &caller,
            Access::WRITE_NODES,
            tenant,
            "label nodes, change their keys and delete them",
        ),
    }))
}

fn pairs(labels: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let pairs = labels.iter();
    pairs
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

async fn bundles(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    node: &Node,
    reported: &NodeStatus,
) -> Result<Vec<BundleRow>, Failure> {
    let ordered = node.order.map(|order| order.bundle);
    let all = [
        ordered,
        reported.active,
        reported.staged,
        reported.last_good,
    ];
    let wanted: BTreeSet<BundleId> = all.into_iter().flatten().collect();
    let names = ui.app.bundle_names(&caller.call, project, &wanted).await?;
    let row = |label, bundle: Option<BundleId>| BundleRow {
        label,
        bundle: bundle.map(|id| {
            let name = names.get(&id).cloned();
            (
                id,
                name.unwrap_or_else(|| "a bundle of another project".to_owned()),
            )
        }),
    };
    let mut rows = vec![
        row("Should run", ordered),
        row("Runs", reported.active),
        row("Last good", reported.last_good),
    ];
    if reported.staged.is_some() && reported.staged != reported.active {
        rows.push(row("Has fetched", reported.staged));
    }
    Ok(rows)
}

/// Heading for a node that runs the bundle `active`.
fn heading(
    name: &str,
    standing: NodeStanding,
    active: Option<BundleId>,
    ordered: Option<BundleId>,
) -> String {
    match standing {
        NodeStanding::AsOrdered => format!("{name} serves what it should."),
        NodeStanding::Moving => format!("{name} has not confirmed its new bundle yet."),
        NodeStanding::Drifted if active.is_none() => {
            format!("{name} runs no bundle, although one is assigned to it.")
        }
        NodeStanding::Drifted if active == ordered => {
            format!("{name} has edited files of its bundle on its disk.")
        }
        NodeStanding::Drifted => format!("{name} runs a bundle that is not assigned to it."),
        NodeStanding::Refused => format!("{name} rejected its bundle."),
        NodeStanding::Unordered => format!("{name} has no bundle yet."),
        NodeStanding::Silent => format!("{name} is offline."),
        NodeStanding::Enrolled => format!("{name} has not reported yet."),
    }
}

/// The newest events of a node, and a sentence on their order.
async fn events(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    id: NodeId,
) -> Result<(Vec<EventRow>, &'static str), Failure> {
    let recent = Page {
        after: None,
        limit: MAX_EVENTS + 1,
        order: PageOrder::Newest,
    };
    let mut found = ui
        .app
        .node_events(&caller.call, project, id, None, recent)
        .await?;
    let shown = usize::try_from(MAX_EVENTS).unwrap_or(usize::MAX);
    let order = if shown < found.len() {
        "Newest 50, by the node’s clock; the API lists older ones"
    } else {
        "By the node’s clock, newest first"
    };
    found.truncate(shown);
    // The message of an activation is the bundle's identifier.
    let bundle = |message: &str| message.parse::<BundleId>().ok();
    let ids = found.iter().filter_map(|(_, event)| bundle(&event.message));
    let ids: BTreeSet<BundleId> = ids.collect();
    let names = ui.app.bundle_names(&caller.call, project, &ids).await?;
    let now = caller.visit.now;
    let rows = found.into_iter().map(|(_, event)| {
        let name = bundle(&event.message).and_then(|id| names.get(&id));
        EventRow {
            at: moment(event.at, now),
            message: match name {
                Some(name) => format!("“{name}”"),
                None => in_one_line(&event.message),
            },
            kind: event.kind,
        }
    });
    Ok((rows.collect(), order))
}

/// The sentence below the heading.
fn explanation(standing: NodeStanding, has_bundle: bool) -> &'static str {
    match standing {
        NodeStanding::AsOrdered | NodeStanding::Drifted => "",
        NodeStanding::Moving => "It fetches the bundle, checks it, and answers with a heartbeat.",
        NodeStanding::Refused if has_bundle => "It runs its former bundle. The reason is below.",
        NodeStanding::Refused => "It runs no bundle yet. The reason is below.",
        NodeStanding::Unordered => {
            "It serves the configuration of its own file until a rollout gives it a bundle."
        }
        NodeStanding::Silent => {
            "It missed three heartbeats. It may serve all the same, with what it ran last: look at its machine and \
             at the network between it and this server."
        }
        NodeStanding::Enrolled => {
            "It was registered and has sent no heartbeat. Its log shows whether it reaches this server."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standing_has_a_sentence_with_the_name() {
        let bundle = Some(BundleId(uuid::Uuid::nil()));
        for standing in NodeStanding::ALL {
            let heading = heading("fra-1", *standing, bundle, bundle);
            assert!(
                heading.starts_with("fra-1 ") && heading.ends_with('.'),
                "{heading}"
            );
        }
    }

    #[test]
    fn a_drifted_node_says_how_it_differs() {
        let [own, other] = [1, 2].map(|id| Some(BundleId(uuid::Uuid::from_u128(id))));
        for (active, expected) in [
            (
                None,
                "fra-1 runs no bundle, although one is assigned to it.",
            ),
            (own, "fra-1 has edited files of its bundle on its disk."),
            (other, "fra-1 runs a bundle that is not assigned to it."),
        ] {
            let heading = heading("fra-1", NodeStanding::Drifted, active, own);
            assert_eq!(heading, expected);
        }
    }
}
