//! The nodes of a project.

use crate::frame::show;
use crate::frame::{Frame, Place, foot};
use crate::node::standing::{Share, Standings, status};
use crate::node::traffic::Served;
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{More, Status, When, more, when};
use crate::view::phrase::{count, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{DriftFilter, NodeFilter, Page, PageOrder, Versioned};
use control_domain::{Access, DriftState, LabelSelector, Node, NodeStanding};
use control_wire::{BundleId, NodeId, ProjectId};
use form_urlencoded::byte_serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// Nodes of one page.
const SHOWN: usize = 100;
/// Drifts read at most, to separate drifted nodes from moving ones.
const MAX_DRIFTS: i64 = 200;

#[derive(Template)]
#[template(path = "nodes.html")]
struct NodesPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    total: i64,
    shares: Vec<Share>,
    asked: Asked,
    rows: Vec<Row>,
    more: More,
    may_enrol: bool,
    foot: Option<String>,
}

/// Filter of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    All,
    Standing(NodeStanding),
    /// A label and its value.
    Label(String, String),
    /// A part of a name.
    Name(String),
}

struct Row {
    id: NodeId,
    name: String,
    status: Status,
    bundle: String,
    seen: Option<When>,
    version: String,
    served: Served,
}

impl Asked {
    /// `?standing=` of the chips; `?q=` of the field: a part of a name, or `label:value`.
    fn new(standing: &str, text: Option<&str>) -> Self {
        if let Some(standing) = NodeStanding::from_name(standing) {
            return Self::Standing(standing);
        }
        match text.map(|text| (text, text.split_once(':'))) {
            None => Self::All,
            Some((_, Some((label, value)))) => Self::Label(label.to_owned(), value.to_owned()),
            Some((name, None)) => Self::Name(name.to_owned()),
        }
    }

    /// Returns true if the chip of this standing is chosen.
    fn is_standing(&self, name: &str) -> bool {
        matches!(self, Self::Standing(standing) if standing.name() == name)
    }

    /// The text of the field.
    fn text(&self) -> String {
        match self {
            Self::All | Self::Standing(_) => String::new(),
            Self::Label(label, value) => format!("{label}:{value}"),
            Self::Name(name) => name.clone(),
        }
    }

    /// The query of the next page, without its beginning.
    fn query(&self) -> String {
        let encoded: String = byte_serialize(self.text().as_bytes()).collect();
        match self {
            Self::All => String::new(),
            Self::Standing(standing) => format!("standing={standing}&"),
            Self::Label(..) | Self::Name(_) => format!("q={encoded}&"),
        }
    }
}

/// The nodes, filtered by the words of the address.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let frame = Frame::project(&ui, &caller, project, (Place::Nodes, "Nodes")).await?;
    let (app, call) = (&ui.app, &caller.call);
    let query = &caller.visit.query;
    let asked = Asked::new(query.get("standing"), query.given("q"));
    let standings = Standings::new(&app.count_standings(call, project).await?);
    let after = query.get("after").parse::<Uuid>().ok();
    let mut found = find(&ui, &caller, project, (&asked, after)).await?;
    let has_more = SHOWN < found.len();
    found.truncate(SHOWN);
    let last = found.last().filter(|_| has_more).map(|node| node.value.id);
    let next = last.map(|last| format!("?{}after={last}", asked.query()));
    let tenant = app.project(call, project).await?.value.tenant();
    let write = (Access::WRITE_NODES, tenant);
    Ok(show(&NodesPage {
        frame: frame.live("/events?pulse"),
        project,
        heading: heading(
            &asked,
            &standings,
            (found.len(), has_more || after.is_some()),
        ),
        total: standings.total(),
        shares: standings.shares(),
        rows: rows(&ui, &caller, project, &found).await?,
        asked,
        more: more(next, "Show the next nodes"),
        may_enrol: caller.may(write.0, write.1),
        foot: foot(&caller, write, "enrol nodes, label and delete them"),
    }))
}

async fn find(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    (asked, after): (&Asked, Option<Uuid>),
) -> Result<Vec<Versioned<Node>>, Failure> {
    let (app, call) = (&ui.app, &caller.call);
    let limit = i64::try_from(SHOWN).unwrap_or(i64::MAX) + 1;
    let page = Page {
        after,
        limit,
        order: PageOrder::Oldest,
    };
    Ok(match asked {
        Asked::All => {
            app.nodes(call, project, &NodeFilter::default(), page)
                .await?
        }
        Asked::Standing(standing) => app.nodes_standing(call, project, *standing, page).await?,
        Asked::Label(label, value) => {
            let filter = NodeFilter {
                selector: LabelSelector::equals(label, value),
                ..NodeFilter::default()
            };
            app.nodes(call, project, &filter, page).await?
        }
        Asked::Name(part) => app.nodes_named_like(call, project, part, limit - 1).await?,
    })
}

async fn rows(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    found: &[Versioned<Node>],
) -> Result<Vec<Row>, Failure> {
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let page = Page {
        after: None,
        limit: MAX_DRIFTS,
        order: PageOrder::Oldest,
    };
    let open = DriftFilter {
        state: Some(DriftState::Open),
        node: None,
    };
    let drifts = app.drifts(call, project, &open, page).await?;
    let drifting: BTreeSet<NodeId> = drifts.iter().map(|drift| drift.value.node).collect();
    let reports = found.iter().filter_map(|node| node.value.report.as_ref());
    let bundles: BTreeSet<BundleId> = reports.filter_map(|report| report.status.active).collect();
    let names = app.bundle_names(call, project, &bundles).await?;
    let rows = found.iter().map(|found| {
        let node = &found.value;
        let report = node.report.as_ref();
        let active = report.and_then(|report| report.status.active);
        let has_drift = drifting.contains(&node.id);
        let standing = node.standing(has_drift, app.heartbeat_interval, now);
        let version = report.and_then(|report| report.version.clone());
        Row {
            id: node.id,
            name: node.name.to_string(),
            status: status(standing),
            bundle: active
                .map(|id| {
                    names
                        .get(&id)
                        .cloned()
                        .unwrap_or_else(|| "unknown".to_owned())
                })
                .unwrap_or_default(),
            seen: report.map(|report| when(report.seen_at, now)),
            version: version.unwrap_or_default(),
            served: Served::new(report.and_then(|report| report.traffic.as_ref())),
        }
    });
    Ok(rows.collect())
}

/// Heading for `shown` nodes of the page; `is_part` if there are further pages.
fn heading(asked: &Asked, standings: &Standings, (shown, is_part): (usize, bool)) -> String {
    let shown = i64::try_from(shown).unwrap_or(i64::MAX);
    let nodes = if is_part {
        format!("More than {}", count(shown, "node"))
    } else {
        count(shown, "node")
    };
    let verb = pick(shown, "has", "have");
    match asked {
        Asked::All => standings.heading(),
        Asked::Standing(standing) => {
            let nodes = standings.nodes(*standing);
            let what = verb_phrase(*standing, nodes < 2);
            match nodes {
                0 => format!("No node {what}."),
                _ => format!("{} {what}.", count(nodes, "node")),
            }
        }
        Asked::Label(label, value) if shown == 0 => {
            format!("No node has the label {label} with the value {value}.")
        }
        Asked::Label(label, value) => format!("{nodes} {verb} the label {label}:{value}."),
        Asked::Name(part) if shown == 0 => format!("No node’s name has “{part}” in it."),
        Asked::Name(part) => format!(
            "{nodes} {verb} “{part}” in {} name.",
            pick(shown, "its", "their")
        ),
    }
}

fn verb_phrase(standing: NodeStanding, is_one: bool) -> &'static str {
    match (standing, is_one) {
        (NodeStanding::AsOrdered, true) => "serves what it should",
        (NodeStanding::AsOrdered, false) => "serve what they should",
        (NodeStanding::Moving, true) => "is moving to a new order",
        (NodeStanding::Moving, false) => "are moving to a new order",
        (NodeStanding::Drifted, true) => "runs a bundle that it was not ordered to run",
        (NodeStanding::Drifted, false) => "run a bundle that they were not ordered to run",
        (NodeStanding::Refused, true) => "refuses its order",
        (NodeStanding::Refused, false) => "refuse their order",
        (NodeStanding::Unordered, true) => "has no order",
        (NodeStanding::Unordered, false) => "have no order",
        (NodeStanding::Silent, true) => "is silent",
        (NodeStanding::Silent, false) => "are silent",
        (NodeStanding::Enrolled, true) => "has not reported yet",
        (NodeStanding::Enrolled, false) => "have not reported yet",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_in_the_heading() {
        let standings = Standings::new(&[(NodeStanding::Silent, 1)].into());
        for (standing, text, shown, expected) in [
            ("", None, 1, "The only node is silent."),
            ("silent", None, 1, "1 node is silent."),
            (
                "drifted",
                None,
                0,
                "No node runs a bundle that it was not ordered to run.",
            ),
            (
                "",
                Some("region:fra"),
                2,
                "2 nodes have the label region:fra.",
            ),
            (
                "",
                Some("region:fra"),
                0,
                "No node has the label region with the value fra.",
            ),
            ("", Some("edge"), 1, "1 node has “edge” in its name."),
        ] {
            let asked = Asked::new(standing, text);
            assert_eq!(heading(&asked, &standings, (shown, false)), expected);
        }
    }
}
