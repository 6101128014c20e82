//! List of the user's projects.

use crate::frame::show;
use crate::frame::{Frame, NavEntry};
use crate::node::standing::Standings;
use crate::project::traffic_figures::{Figure, figures, heading as traffic_heading};
use crate::request::failure::Failure;
use crate::request::note::redirect;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{Bar, NextPage, more};
use crate::view::listing;
use crate::view::phrase::{count, few, pick, sentence};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{ListFilter, PageOrder, Versioned};
use control_domain::{Access, Org, Project, TrafficPeriod};
use control_wire::OrgId;
use std::sync::Arc;
use uuid::Uuid;

/// Maximum number of organizations on the page, and of projects each.
const PAGE_ROWS: usize = 50;
/// Maximum number of projects with charts; further ones show figures in a sentence, so that the
/// page stays below 100 KB.
const MAX_CHARTED: usize = 20;

#[derive(Template)]
#[template(path = "projects.html")]
struct ProjectsPage {
    frame: Frame,
    heading: String,
    orgs: Vec<OrgCard>,
    more: NextPage,
}

struct OrgCard {
    org: Org,
    projects: Vec<ProjectCard>,
    /// Link to further projects.
    more: NextPage,
    may_create: bool,
}

struct ProjectCard {
    project: Project,
    sentence: String,
    bar: Option<Bar>,
    /// Sentence on the last hour's requests; empty without nodes.
    traffic: String,
    /// Figures compared with a week before; empty without requests.
    figures: Vec<Figure>,
    is_troubled: bool,
}

/// Shows the projects, or the overview of the user's only one.
pub(crate) async fn list(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let query = &caller.visit.query;
    let own = query.get("org").parse::<OrgId>().ok();
    let (found, last) = match own {
        Some(own) => (vec![ui.app.org(&caller.call, own).await?], None),
        None => orgs(&ui, &caller).await?,
    };
    let mut orgs = Vec::new();
    for org in found {
        // The position in the query is of organizations, or of projects if there is one
        // organization.
        let after = if own.is_some() {
            query.get("after")
        } else {
            ""
        };
        orgs.push(org_card(&ui, &caller, org.value, after).await?);
    }
    let cards = orgs.iter_mut().flat_map(|org| &mut org.projects);
    for card in cards.skip(MAX_CHARTED) {
        card.figures.clear();
    }
    let all = orgs.iter().flat_map(|org| &org.projects);
    let total = all.clone().count();
    let only = all.clone().next().filter(|_| total == 1);
    let is_whole = own.is_none() && query.get("all").is_empty() && query.get("after").is_empty();
    if let Some(only) = only
        && is_whole
        && caller.visit.note.is_none()
    {
        return Ok(redirect(&format!("/projects/{}", only.project.id)));
    }
    let troubled = all.filter(|card| card.is_troubled).count();
    let heading = heading(total, troubled);
    let frame = Frame::personal(&ui, &caller, NavEntry::Projects.titled("Projects")).await?;
    Ok(show(&ProjectsPage {
        frame,
        heading,
        orgs,
        more: listing::next(last, "Show further organizations"),
    }))
}

/// A page of the user's organizations, and the identifier of the last one if there are more.
async fn orgs(ui: &Ui, caller: &Caller) -> Result<(Vec<Versioned<Org>>, Option<Uuid>), Failure> {
    let page = listing::page(
        caller.visit.query.get("after"),
        PageOrder::Oldest,
        PAGE_ROWS,
    );
    let all = ListFilter::default();
    let mut found = ui.app.orgs(&caller.call, &all, page).await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |org| org.value.id.0);
    Ok((found, last))
}

/// Projects of an organization after the project `after`.
async fn org_card(ui: &Ui, caller: &Caller, org: Org, after: &str) -> Result<OrgCard, Failure> {
    let page = listing::page(after, PageOrder::Oldest, PAGE_ROWS);
    let all = ListFilter::default();
    let mut found = ui.app.projects(&caller.call, org.id, &all, page).await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |project| project.value.id.0);
    let mut projects = Vec::new();
    for project in found {
        projects.push(card(ui, caller, project.value).await?);
    }
    let further = last.map(|last| format!("/?org={}&after={last}", org.id));
    Ok(OrgCard {
        may_create: caller.may(Access::WRITE_PROJECTS, org.tenant()),
        more: more(further, "Show further projects"),
        org,
        projects,
    })
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
        words = traffic_heading(&traffic.total, hour, caller.visit.now);
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
