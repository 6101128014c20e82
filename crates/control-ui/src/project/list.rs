//! The projects of the person that is signed in.

use crate::frame::show;
use crate::frame::{Frame, NavEntry};
use crate::node::standing::Standings;
use crate::project::traffic_figures::{Figure, figures, heading as traffic_heading};
use crate::request::failure::Failure;
use crate::request::note::see;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::Bar;
use crate::view::phrase::{count, few, pick, sentence};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{ListFilter, Page, PageOrder};
use control_domain::{Access, Org, Project, TrafficPeriod};
use std::sync::Arc;

/// Organizations and projects that the page shows, each.
const MAX_SHOWN: i64 = 100;
/// Projects with charts; further ones have their figures as a sentence, so that the page stays below 100 KB.
const MAX_CHARTED: usize = 20;

#[derive(Template)]
#[template(path = "projects.html")]
struct ProjectsPage {
    frame: Frame,
    heading: String,
    orgs: Vec<OrgCard>,
}

struct OrgCard {
    org: Org,
    projects: Vec<ProjectCard>,
    may_create: bool,
}

struct ProjectCard {
    project: Project,
    sentence: String,
    bar: Option<Bar>,
    /// Requests of the last hour in a sentence; empty without a node.
    traffic: String,
    /// The same as figures compared with the week before; empty without a request.
    figures: Vec<Figure>,
    is_troubled: bool,
}

/// The projects with their sentences; the overview of the only one.
pub(crate) async fn list(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let page = Page {
        after: None,
        limit: MAX_SHOWN,
        order: PageOrder::Oldest,
    };
    let mut orgs = Vec::new();
    for org in ui
        .app
        .orgs(&caller.call, &ListFilter::default(), page)
        .await?
    {
        let found = ui
            .app
            .projects(&caller.call, org.value.id, &ListFilter::default(), page)
            .await?;
        let mut projects = Vec::new();
        for project in found {
            projects.push(card(&ui, &caller, project.value).await?);
        }
        orgs.push(OrgCard {
            may_create: caller.may(Access::WRITE_PROJECTS, org.value.tenant()),
            org: org.value,
            projects,
        });
    }
    let cards = orgs.iter_mut().flat_map(|org| &mut org.projects);
    for card in cards.skip(MAX_CHARTED) {
        card.figures.clear();
    }
    let all = orgs.iter().flat_map(|org| &org.projects);
    let total = all.clone().count();
    let only = all.clone().next().filter(|_| total == 1);
    if let Some(only) = only
        && caller.visit.query.get("all").is_empty()
        && caller.visit.note.is_none()
    {
        return Ok(see(&format!("/projects/{}", only.project.id)));
    }
    let troubled = all.filter(|card| card.is_troubled).count();
    let heading = heading(total, troubled);
    let frame = Frame::personal(&ui, &caller, NavEntry::Projects.titled("Projects")).await?;
    Ok(show(&ProjectsPage {
        frame,
        heading,
        orgs,
    }))
}

async fn card(ui: &Ui, caller: &Caller, project: Project) -> Result<ProjectCard, Failure> {
    let counts = ui.app.count_standings(&caller.call, project.id).await?;
    let standings = Standings::new(&counts);
    let has_nodes = 0 < standings.total();
    let (mut words, mut shown) = (String::new(), Vec::new());
    if has_nodes {
        let hour = TrafficPeriod::Hour;
        let traffic = ui.app.traffic_totals(&caller.call, project.id, hour);
        let traffic = traffic.await?;
        words = traffic_heading(&traffic.total, hour);
        if 0 < traffic.total.counted.requests {
            shown = figures(&traffic.total, &traffic.steps, hour);
        }
    }
    Ok(ProjectCard {
        bar: has_nodes.then(|| standings.bar()),
        traffic: words,
        figures: shown,
        is_troubled: standings.is_troubled(),
        sentence: standings.heading(),
        project,
    })
}

fn heading(projects: usize, troubled: usize) -> String {
    let (projects, troubled) = (signed(projects), signed(troubled));
    if projects == 0 {
        return "There is no project yet.".to_owned();
    }
    if troubled == 0 {
        return format!(
            "{} {} what {} should.",
            count(projects, "project"),
            pick(projects, "serves", "serve"),
            pick(projects, "it", "they")
        );
    }
    if projects == 1 {
        return "The project needs attention.".to_owned();
    }
    sentence(&format!(
        "{} of {} {} attention",
        few(troubled),
        count(projects, "project"),
        pick(troubled, "needs", "need")
    ))
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_counts_projects_that_need_attention() {
        assert_eq!(heading(0, 0), "There is no project yet.");
        assert_eq!(heading(1, 0), "1 project serves what it should.");
        assert_eq!(heading(3, 0), "3 projects serve what they should.");
        assert_eq!(heading(1, 1), "The project needs attention.");
        assert_eq!(heading(3, 1), "One of 3 projects needs attention.");
        assert_eq!(heading(3, 2), "Two of 3 projects need attention.");
    }
}
