//! Search in a project: nodes, bundles, services, hosts and routes by part of the name.

use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{Icon, icon};
use crate::view::phrase::{count, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{Page, PageOrder, ServiceFilter};
use control_domain::TrafficPeriod;
use control_wire::ProjectId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of hits per kind.
const MAX_SHOWN: usize = 20;
/// Number of bundles or services read at once, and number of reads: the newest bundles and the
/// oldest services, up to 20 000.
const ROWS_PER_READ: i64 = 500;
const MAX_READS: usize = 40;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    heading: String,
    /// Path of this page, for its form.
    action: String,
    text: String,
    hits: Vec<Hit>,
    /// Set if there are hits that are not shown.
    is_cut: bool,
}

/// Hits of all kinds.
#[derive(Default)]
struct Hits {
    shown: Vec<Hit>,
    is_cut: bool,
}

impl Hits {
    /// Adds the hits of one kind.
    fn add(&mut self, hits: impl IntoIterator<Item = Hit>) {
        let mut hits = hits.into_iter();
        self.shown.extend(hits.by_ref().take(MAX_SHOWN));
        self.is_cut |= hits.next().is_some();
    }
}

struct Hit {
    icon: Icon,
    kind: &'static str,
    name: String,
    href: String,
    detail: String,
}

/// Shows the hits for the text in `?q=`.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let frame = Frame::project(&ui, &caller, project, NavEntry::Overview.titled("Search")).await?;
    let text = caller.visit.query.given("q").unwrap_or_default();
    let hits = match text {
        "" => Hits::default(),
        text => find(&ui, &caller, project, text).await?,
    };
    Ok(shown(&SearchPage {
        frame,
        heading: heading(text, hits.shown.len(), hits.is_cut),
        action: format!("/projects/{project}/search"),
        text: text.to_owned(),
        hits: hits.shown,
        is_cut: hits.is_cut,
    }))
}

/// Nodes, bundles, services and routes with `text` in their names, at most [`MAX_SHOWN`] per kind.
async fn find(ui: &Ui, caller: &Caller, project: ProjectId, text: &str) -> Result<Hits, Failure> {
    let lower = text.to_lowercase();
    let matches = |name: &str| name.to_lowercase().contains(&lower);
    let base = format!("/projects/{project}");
    let mut hits = Hits::default();
    hits.add(find_nodes(ui, caller, project, &base, text).await?);
    hits.add(find_bundles(ui, caller, project, &base, matches).await?);
    hits.add(find_services(ui, caller, project, &base, matches).await?);
    let routes = route_names(ui, caller, project).await?.into_iter();
    let routes = routes.filter(|name| matches(name));
    hits.add(routes.map(|name| Hit {
        icon: icon("traffic"),
        kind: "Route",
        name,
        href: format!("{base}/traffic?period=day"),
        detail: "Requests in 24 hours".to_owned(),
    }));
    Ok(hits)
}

async fn find_nodes(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    base: &str,
    text: &str,
) -> Result<Vec<Hit>, Failure> {
    let limit = i64::try_from(MAX_SHOWN)
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    let found = ui.app.nodes_named_like(&caller.call, project, text, limit);
    let nodes = found.await?.into_iter();
    let hits = nodes.map(|node| Hit {
        icon: icon("node"),
        kind: "Node",
        name: node.value.name.to_string(),
        href: format!("{base}/nodes/{}", node.value.id),
        detail: String::new(),
    });
    Ok(hits.collect())
}

async fn find_bundles(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    base: &str,
    matches: impl Fn(&str) -> bool,
) -> Result<Vec<Hit>, Failure> {
    let (mut found, mut before) = (Vec::new(), None);
    for _ in 0..MAX_READS {
        let bundles = ui
            .app
            .newest_bundles(&caller.call, project, before, ROWS_PER_READ);
        let bundles = bundles.await?;
        before = bundles.last().map(|last| last.value.id);
        let bundles = bundles.into_iter().map(|bundle| bundle.value);
        found.extend(bundles.filter(|bundle| matches(bundle.name.as_str())));
        if before.is_none() || MAX_SHOWN < found.len() {
            break;
        }
    }
    let hits = found.into_iter().map(|bundle| Hit {
        icon: icon("bundle"),
        kind: "Bundle",
        name: bundle.name.to_string(),
        href: format!("{base}/bundles/{}", bundle.id),
        detail: format!("…{}", short(bundle.id)),
    });
    Ok(hits.collect())
}

/// Services with the text in their name or host.
async fn find_services(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    base: &str,
    matches: impl Fn(&str) -> bool,
) -> Result<Vec<Hit>, Failure> {
    let mut page = Page {
        after: None,
        limit: ROWS_PER_READ,
        order: PageOrder::Oldest,
    };
    let filter = ServiceFilter::default();
    let mut found = Vec::new();
    for _ in 0..MAX_READS {
        let services = ui
            .app
            .services(&caller.call, project, &filter, page)
            .await?;
        page.after = services.last().map(|last| last.value.id.0);
        let services = services.into_iter().map(|service| service.value);
        found.extend(services.filter(|service| {
            matches(service.name.as_str()) || service.host.as_deref().is_some_and(&matches)
        }));
        if page.after.is_none() || MAX_SHOWN < found.len() {
            break;
        }
    }
    let hits = found.into_iter().map(|service| Hit {
        icon: icon("service"),
        kind: "Service",
        name: service.name.to_string(),
        href: format!("{base}/services/{}", service.id),
        detail: service.host.unwrap_or_default(),
    });
    Ok(hits.collect())
}

/// Names of routes with requests in the last 24 hours. A day's figures end with its last complete
/// hour, so the current hour's are added.
async fn route_names(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
) -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::new();
    for period in [TrafficPeriod::Hour, TrafficPeriod::Day] {
        let traffic = ui.app.project_traffic(&caller.call, project, period, None);
        names.extend(traffic.await?.routes.into_iter().map(|route| route.name));
    }
    Ok(names)
}

fn heading(text: &str, hits: usize, is_cut: bool) -> String {
    let hits = i64::try_from(hits).unwrap_or(i64::MAX);
    if is_cut {
        return format!(
            "More than {} have “{text}” in their name.",
            count(hits, "thing")
        );
    }
    match (text, hits) {
        ("", _) => "Search for a node, a bundle, a service, a host or a route.".to_owned(),
        (text, 0) => format!("Nothing has “{text}” in its name."),
        (text, 1) => format!("1 thing has “{text}” in its name."),
        (text, _) => format!("{} have “{text}” in their name.", count(hits, "thing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_says_what_was_found() {
        assert_eq!(heading("fra", 0, false), "Nothing has “fra” in its name.");
        assert_eq!(heading("fra", 1, false), "1 thing has “fra” in its name.");
        assert_eq!(
            heading("fra", 2, false),
            "2 things have “fra” in their name."
        );
        let cut = "More than 20 things have “fra” in their name.";
        assert_eq!(heading("fra", 20, true), cut);
    }
}
