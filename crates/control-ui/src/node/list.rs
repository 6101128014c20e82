//! List of a project's nodes.

use crate::frame::show;
use crate::frame::{Frame, NavEntry, foot};
use crate::node::standing::{Share, Standings, status};
use crate::node::traffic::Served;
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, more, when};
use crate::view::phrase::{count, list_of, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{DriftFilter, NodeFilter, Page, PageOrder, Versioned};
use control_domain::{Access, DriftState, LabelSelector, Node, NodeStanding, TrafficPeriod};
use control_wire::{BundleId, NodeId, ProjectId};
use form_urlencoded::byte_serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// Number of nodes per page.
const PAGE_ROWS: usize = 100;
/// Maximum number of words in a filter.
const MAX_WORDS: usize = 16;
/// Maximum number of drifts read to tell drifted nodes from moving ones.
const DRIFTS_READ: i64 = 500;

#[derive(Template)]
#[template(path = "nodes.html")]
struct NodesPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    total: i64,
    shares: Vec<Share>,
    asked: NodeListFilter,
    rows: Vec<Row>,
    more: NextPage,
    may_enrol: bool,
    foot: Option<String>,
}

/// Filter of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NodeListFilter {
    All,
    Standing(NodeStanding),
    /// Labels that the nodes have, or do not have.
    Labels(Vec<LabelWord>),
    /// Part of the node's name.
    Name(String),
    /// Active bundle, with its name.
    Bundle(BundleId, String),
}

/// A word of the filter: `region:fra`, or `-region:fra` for nodes without it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelWord {
    label: String,
    value: String,
    is_excluded: bool,
}

impl LabelWord {
    fn parse(word: &str) -> Option<Self> {
        let (is_excluded, pair) = match word.strip_prefix('-') {
            Some(pair) => (true, pair),
            None => (false, word),
        };
        let (label, value) = pair.split_once(':')?;
        let word = Self {
            label: label.to_owned(),
            value: value.to_owned(),
            is_excluded,
        };
        (!label.is_empty()).then_some(word)
    }

    fn pair(&self) -> String {
        format!("{}:{}", self.label, self.value)
    }

    fn selector(&self) -> LabelSelector {
        let Self {
            label,
            value,
            is_excluded,
        } = self;
        if *is_excluded {
            LabelSelector::differs(label, value)
        } else {
            LabelSelector::equals(label, value)
        }
    }
}

struct Row {
    id: NodeId,
    name: String,
    status: Status,
    bundle: String,
    seen: Option<RelativeTime>,
    version: String,
    served: Served,
}

impl NodeListFilter {
    /// Parses `?standing=` of the chips, or `?q=` of the text field: part of a name, or words such
    /// as `label:value` and `-label:value` that must all hold.
    fn new(standing: &str, text: Option<&str>) -> Self {
        if let Some(standing) = NodeStanding::from_name(standing) {
            return Self::Standing(standing);
        }
        let Some(text) = text else {
            return Self::All;
        };
        let words = text.split_whitespace().take(MAX_WORDS);
        let words: Option<Vec<LabelWord>> = words.map(LabelWord::parse).collect();
        words.map_or_else(|| Self::Name(text.to_owned()), Self::Labels)
    }

    /// Returns true if the chip of this standing is selected.
    fn is_standing(&self, name: &str) -> bool {
        matches!(self, Self::Standing(standing) if standing.name() == name)
    }

    /// Text of the filter's field.
    fn text(&self) -> String {
        match self {
            Self::All | Self::Standing(_) | Self::Bundle(..) => String::new(),
            Self::Labels(words) => {
                let words = words.iter().map(|word| {
                    let sign = if word.is_excluded { "-" } else { "" };
                    format!("{sign}{}", word.pair())
                });
                words.collect::<Vec<_>>().join(" ")
            }
            Self::Name(name) => name.clone(),
        }
    }

    /// Query of the next page, without its position.
    fn query(&self) -> String {
        let encoded: String = byte_serialize(self.text().as_bytes()).collect();
        match self {
            Self::All => String::new(),
            Self::Standing(standing) => format!("standing={standing}&"),
            Self::Labels(_) | Self::Name(_) => format!("q={encoded}&"),
            Self::Bundle(bundle, _) => format!("bundle={bundle}&"),
        }
    }
}

/// Shows the nodes that match the filter.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let frame = Frame::project(&ui, &caller, project, NavEntry::Nodes.titled("Nodes")).await?;
    let (app, call) = (&ui.app, &caller.call);
    let query = &caller.visit.query;
    let asked = match query.get("bundle").parse::<BundleId>() {
        Ok(bundle) => {
            let name = app.bundle(call, project, bundle).await?.value.name;
            NodeListFilter::Bundle(bundle, name.to_string())
        }
        Err(_) => NodeListFilter::new(query.get("standing"), query.given("q")),
    };
    let standings = Standings::new(&app.count_standings(call, project).await?);
    let after = query.get("after").parse::<Uuid>().ok();
    let mut found = find(&ui, &caller, project, &asked, after).await?;
    let has_more = PAGE_ROWS < found.len();
    found.truncate(PAGE_ROWS);
    let last = found.last().filter(|_| has_more).map(|node| node.value.id);
    // Names are listed in their own order: a narrower part of a name leads to further ones.
    let is_by_name = matches!(asked, NodeListFilter::Name(_));
    let last = last.filter(|_| !is_by_name);
    let is_part = has_more || after.is_some() && !is_by_name;
    let next = last.map(|last| format!("?{}after={last}", asked.query()));
    let tenant = app.project(call, project).await?.value.tenant();
    Ok(show(&NodesPage {
        frame: frame.live("/events?pulse").with_form(),
        project,
        heading: heading(&asked, &standings, found.len(), is_part),
        total: standings.total(),
        shares: standings.shares(),
        rows: rows(&ui, &caller, project, &found).await?,
        asked,
        more: more(next, "Show the next nodes"),
        may_enrol: caller.may(Access::WRITE_NODES, tenant),
        foot: foot(
            &caller,
            Access::WRITE_NODES,
            tenant,
            "enrol nodes, label and delete them",
        ),
    }))
}

async fn find(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    asked: &NodeListFilter,
    after: Option<Uuid>,
) -> Result<Vec<Versioned<Node>>, Failure> {
    let (app, call) = (&ui.app, &caller.call);
    let limit = i64::try_from(PAGE_ROWS).unwrap_or(i64::MAX) + 1;
    let page = Page {
        after,
        limit,
        order: PageOrder::Oldest,
    };
    Ok(match asked {
        NodeListFilter::All => {
            app.nodes(call, project, &NodeFilter::default(), page)
                .await?
        }
        NodeListFilter::Standing(standing) => {
            app.nodes_standing(call, project, *standing, page).await?
        }
        NodeListFilter::Labels(words) => {
            let selectors = words.iter().map(LabelWord::selector);
            let filter = NodeFilter {
                selector: selectors.fold(LabelSelector::default(), LabelSelector::and),
                ..NodeFilter::default()
            };
            app.nodes(call, project, &filter, page).await?
        }
        NodeListFilter::Bundle(bundle, _) => {
            let filter = NodeFilter {
                bundle: Some(*bundle),
                ..NodeFilter::default()
            };
            app.nodes(call, project, &filter, page).await?
        }
        NodeListFilter::Name(part) => app.nodes_named_like(call, project, part, limit).await?,
    })
}

/// Nodes with an open drift.
async fn drifting(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
) -> Result<BTreeSet<NodeId>, Failure> {
    let open = DriftFilter {
        state: Some(DriftState::Open),
        node: None,
    };
    let mut page = Page {
        after: None,
        limit: DRIFTS_READ,
        order: PageOrder::Oldest,
    };
    let mut nodes = BTreeSet::new();
    loop {
        let drifts = ui.app.drifts(&caller.call, project, &open, page).await?;
        nodes.extend(drifts.iter().map(|drift| drift.value.node));
        page.after = drifts.last().map(|last| last.value.id.0);
        if page.after.is_none() {
            return Ok(nodes);
        }
    }
}

async fn rows(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    found: &[Versioned<Node>],
) -> Result<Vec<Row>, Failure> {
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let drifting = drifting(ui, caller, project).await?;
    let reports = found.iter().filter_map(|node| node.value.report.as_ref());
    let bundles: BTreeSet<BundleId> = reports.filter_map(|report| report.status.active).collect();
    let names = app.bundle_names(call, project, &bundles).await?;
    let shown = found.iter().map(|node| node.value.id).collect();
    let hour = TrafficPeriod::Hour;
    let requests = app.node_requests(call, project, hour, &shown).await?;
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
            served: requests.get(&node.id).map(Served::from).unwrap_or_default(),
        }
    });
    Ok(rows.collect())
}

/// Heading for the `shown` nodes of the page; `is_part` says whether there are further pages.
fn heading(asked: &NodeListFilter, standings: &Standings, shown: usize, is_part: bool) -> String {
    let shown = i64::try_from(shown).unwrap_or(i64::MAX);
    let nodes = if is_part {
        format!("More than {}", count(shown, "node"))
    } else {
        count(shown, "node")
    };
    let verb = pick(shown, "has", "have");
    match asked {
        NodeListFilter::All => standings.heading(),
        NodeListFilter::Standing(standing) => {
            let nodes = standings.nodes(*standing);
            let what = verb_phrase(*standing, nodes < 2);
            match nodes {
                0 => format!("No node {what}."),
                _ => format!("{} {what}.", count(nodes, "node")),
            }
        }
        NodeListFilter::Labels(words) if shown == 0 => {
            format!("No node {}.", labelled(words, true))
        }
        NodeListFilter::Labels(words) => format!("{nodes} {}.", labelled(words, shown == 1)),
        NodeListFilter::Bundle(_, name) if shown == 0 => format!("No node runs “{name}”."),
        NodeListFilter::Bundle(_, name) => {
            format!("{nodes} {} “{name}”.", pick(shown, "runs", "run"))
        }
        NodeListFilter::Name(part) if shown == 0 => format!("No node’s name has “{part}” in it."),
        NodeListFilter::Name(part) => {
            let narrow = if is_part {
                "; a longer part of the name shows fewer"
            } else {
                ""
            };
            format!(
                "{nodes} {verb} “{part}” in {} name{narrow}.",
                pick(shown, "its", "their")
            )
        }
    }
}

/// Phrase such as `have the label region:fra, and not tier:edge`.
fn labelled(words: &[LabelWord], is_one: bool) -> String {
    let pairs = |is_excluded: bool| {
        let words = words.iter();
        let own = words.filter(move |word| word.is_excluded == is_excluded);
        own.map(LabelWord::pair).collect::<Vec<_>>()
    };
    let (had, excluded) = (pairs(false), pairs(true));
    let noun = |pairs: &[String]| if pairs.len() == 1 { "label" } else { "labels" };
    let [has, is] = if is_one {
        ["has", "is"]
    } else {
        ["have", "are"]
    };
    if had.is_empty() {
        let noun = noun(&excluded);
        return format!("{is} without the {noun} {}", list_of(&excluded));
    }
    let had = format!("{has} the {} {}", noun(&had), list_of(&had));
    match excluded.as_slice() {
        [] => had,
        excluded => format!("{had}, and not {}", list_of(excluded)),
    }
}

fn verb_phrase(standing: NodeStanding, is_one: bool) -> &'static str {
    match (standing, is_one) {
        (NodeStanding::AsOrdered, true) => "serves what it should",
        (NodeStanding::AsOrdered, false) => "serve what they should",
        (NodeStanding::Moving, true) => "is moving to a new bundle",
        (NodeStanding::Moving, false) => "are moving to a new bundle",
        (NodeStanding::Drifted, true) => "differs from its assigned bundle",
        (NodeStanding::Drifted, false) => "differ from their assigned bundles",
        (NodeStanding::Refused, true) => "rejected its bundle",
        (NodeStanding::Refused, false) => "rejected their bundles",
        (NodeStanding::Unordered, true) => "has no bundle",
        (NodeStanding::Unordered, false) => "have no bundle",
        (NodeStanding::Silent, true) => "is offline",
        (NodeStanding::Silent, false) => "are offline",
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
            ("", None, 1, "The only node is offline."),
            ("silent", None, 1, "1 node is offline."),
            (
                "drifted",
                None,
                0,
                "No node differs from its assigned bundle.",
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
                "No node has the label region:fra.",
            ),
            (
                "",
                Some("region:fra tier:edge  -zone:a -zone:b"),
                2,
                "2 nodes have the labels region:fra and tier:edge, and not zone:a and zone:b.",
            ),
            (
                "",
                Some("-region:fra"),
                1,
                "1 node is without the label region:fra.",
            ),
            ("", Some("edge 7"), 0, "No node’s name has “edge 7” in it."),
            ("", Some("edge"), 1, "1 node has “edge” in its name."),
        ] {
            let asked = NodeListFilter::new(standing, text);
            assert_eq!(heading(&asked, &standings, shown, false), expected);
            if let Some(text) = text {
                assert_eq!(
                    NodeListFilter::new("", Some(&asked.text())),
                    asked,
                    "{text}"
                );
            }
        }
    }
}
